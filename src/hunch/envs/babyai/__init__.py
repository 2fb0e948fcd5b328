"""BabyAI in words: what is seen and said of a level, a way to its end, and the environments."""
