"""Methods in which a language model plans: it chooses the skill that runs next."""
