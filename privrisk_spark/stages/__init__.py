"""Frames in, frames out: Spark's side of each chapter, without arithmetic of its own."""
