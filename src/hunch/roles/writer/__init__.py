"""The writer role: a model writes programs, and a search chooses their parents."""
