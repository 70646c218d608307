"""What an intruder finds who knows attributes of people: whose a row is, what its sensitive value is, who is in it."""
