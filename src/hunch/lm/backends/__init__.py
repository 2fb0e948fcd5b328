"""The built-in models, one file per kind, and the code that they share."""
