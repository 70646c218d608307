"""Published experiments run again: what was claimed beside what is found."""
