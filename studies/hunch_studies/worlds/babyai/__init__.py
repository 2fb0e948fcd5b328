"""BabyAI in words: descriptions of a level, an oracle, and the environments."""
