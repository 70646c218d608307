"""Optional subjects next to the core: attacks, and sharing in networks. The core imports none of them."""
