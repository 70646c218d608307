"""Optional subjects next to the core, which imports none of them: attacks, networks, perturbative methods."""
