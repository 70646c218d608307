"""The order of stages of each job, and every Spark action of it."""
