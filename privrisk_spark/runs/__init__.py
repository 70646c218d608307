"""One run: its progress and status, and its keys."""
