"""Theorems of intuitionistic propositional logic as environments."""
