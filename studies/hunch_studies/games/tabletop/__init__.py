"""True rules of small two-player games: tic-tac-toe, connect four, Kuhn and Leduc poker, Squall."""
