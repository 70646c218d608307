"""Attacks on a release: links, inference, membership and learned distances."""
