"""Local recoding: a level vector per class of records, not one for the table."""
