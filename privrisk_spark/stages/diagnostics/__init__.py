"""What is found out about decisions beyond their risk: after linkage, against the true dictionary, where they jump."""
