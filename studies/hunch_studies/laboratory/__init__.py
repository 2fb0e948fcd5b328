"""The laboratory of the pocket models: their corpora, tokenizers and training."""
