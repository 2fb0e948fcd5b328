"""ALFWorld-style household tasks: the engine's rules, its game files, and a generator of games."""
