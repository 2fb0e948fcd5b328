"""Environments made for a study."""
