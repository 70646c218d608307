"""What is measured of a table before there is a policy for it."""
