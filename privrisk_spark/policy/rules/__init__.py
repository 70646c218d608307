"""Rules of a policy that take several keys together; each fault names the key to mend."""
