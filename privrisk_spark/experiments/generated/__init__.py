"""Generated tables, all of them SYNTHETIC: populations, registries, clustered tables."""
