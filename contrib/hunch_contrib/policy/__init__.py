"""Methods that train a policy: a perceptron on embeddings, or a language model."""
