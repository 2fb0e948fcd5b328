"""The action prior role: p(a|s), a model's view of which admissible action comes next."""
