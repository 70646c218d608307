"""Tables of lake formats: which plain Parquet files a version of one has, and what of them is not in the files."""
