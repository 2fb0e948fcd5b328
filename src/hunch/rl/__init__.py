"""Reinforcement learning with no language model in it."""
