"""What a run found, as frozen values with units: for a program and for a person."""
