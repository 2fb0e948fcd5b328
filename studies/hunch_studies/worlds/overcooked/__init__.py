"""Overcooked in words: its rules, its descriptions, and the environments."""
