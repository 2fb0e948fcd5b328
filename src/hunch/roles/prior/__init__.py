"""The action prior role: p(a|s), a language model's distribution over the next admissible action."""
