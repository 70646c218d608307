"""Apache Spark: the session and its settings, frame schemas, Arrow batches in tasks, sources."""
