"""Players of two-player games, and what a game's code is worth to them."""
