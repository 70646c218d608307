"""Experiments of F12 chapters 3 to 5 on the kernels, with what was claimed and what is found."""
