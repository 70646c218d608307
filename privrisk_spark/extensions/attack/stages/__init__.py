"""Attacks on a protected table: whose rows it holds, and which of them an intruder finds."""
