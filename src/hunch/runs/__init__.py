"""One run: the loop, the folder on disk, resuming, and several seeds in parallel."""
