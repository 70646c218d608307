"""Worked examples of the sources, computed again by the kernels: what is printed beside what is found."""
