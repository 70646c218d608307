"""Assessing a table: what is measured, how it is explained, and the page that shows it."""
