"""Values become pages, charts and sentences."""
