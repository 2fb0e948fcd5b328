"""The policy role: a distribution over actions that acts and is judged."""
