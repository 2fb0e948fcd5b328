"""Methods in which a language model writes programs: heuristics, rewards and policies."""
