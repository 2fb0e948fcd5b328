"""Action priors: what a language model proposes to do next."""
