"""The pocket model: a small causal model of our own, its corpus, its recipe, and how it writes."""
