"""Classes of a table and its release are counted once, and measured."""
