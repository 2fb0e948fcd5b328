"""Methods in which a language model proposes actions."""
