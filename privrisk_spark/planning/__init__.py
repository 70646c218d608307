"""From a policy and its hierarchies to what kernels and stages take; nothing is read and nothing is run."""
