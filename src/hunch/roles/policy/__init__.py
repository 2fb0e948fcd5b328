"""The policy role: a distribution over actions that is drawn from and trained."""
