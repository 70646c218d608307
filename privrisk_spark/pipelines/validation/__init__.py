"""What a run needs, looked at before it: every fault is found at once, and nothing is written."""
