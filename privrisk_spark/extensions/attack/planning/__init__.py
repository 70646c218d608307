"""What an attack asks for, planned; and its findings."""
