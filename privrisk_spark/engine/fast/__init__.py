"""What only saves seconds at the start of a run on one machine."""
