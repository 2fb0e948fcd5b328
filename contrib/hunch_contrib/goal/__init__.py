"""Methods in which a language model suggests goals."""
