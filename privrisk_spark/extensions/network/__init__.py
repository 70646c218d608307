"""Sharing in social networks: whom a member shows which attributes."""
