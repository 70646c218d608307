"""Privacy-budget accounts: their rules, their storages, and what several releases cost together."""
