"""Readers of answers that others recorded and published."""
