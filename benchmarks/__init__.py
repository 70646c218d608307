"""Benchmarks: every figure is a ratio to the leanest single-process program that gives the same answer."""
