"""The case study of a planned attack (Xia et al. 2015, §7)."""
