"""A run: the loop, its folder on disk, resume, and several seeds side by side."""
