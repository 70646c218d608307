"""The mathematics: numpy arrays in, numpy arrays out; no engine, no I/O, no hidden state."""
