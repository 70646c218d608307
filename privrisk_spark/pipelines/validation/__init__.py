"""The inspection of what a run needs, before it: every error is found at once, and nothing is written."""
