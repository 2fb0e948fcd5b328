"""Methods in which a language model provides the reward."""
