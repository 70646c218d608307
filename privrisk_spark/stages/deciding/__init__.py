"""Each record's disclosure is decided, by a search or by a rule."""
