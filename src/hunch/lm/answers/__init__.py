"""Answers of models: in memory, on disk, recorded and exported."""
