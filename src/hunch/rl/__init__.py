"""Reinforcement learning without language models."""
