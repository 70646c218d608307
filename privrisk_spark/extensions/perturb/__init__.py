"""Perturbative methods: values are masked, which makes them hard to link and guarantees nothing."""
