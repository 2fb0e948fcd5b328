"""Overcooked in words: its rules, what is seen and said of them, and the environments."""
