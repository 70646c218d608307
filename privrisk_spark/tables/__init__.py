"""Tables: which files, rows and columns are read, and how they become integer codes."""
