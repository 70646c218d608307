"""Sharing in a social network: users as numbers, who is whose friend, whom to decide for, and what is shown."""
