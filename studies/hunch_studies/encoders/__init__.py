"""Encoders that only studies use, as controls; evidence L0."""

from hunch.lm.base import Backend

TFIDF = Backend(
    "tfidf",
    "hunch_studies.encoders.words:TfIdf",
    frozenset({"embed"}),
    "a bag of words weighted by rarity in household games: a lexical control",
    costly=False,
)
RANDOM_WORDS = Backend(
    "random-words",
    "hunch_studies.encoders.words:RandomWords",
    frozenset({"embed"}),
    "the mean of one random vector per word: a lexical control",
    costly=False,
)
RANDOM_NETWORK = Backend(
    "random-network",
    "hunch_studies.encoders.random_network:RandomNetwork",
    frozenset({"embed"}),
    "minilm's architecture with random weights: the control for its training",
    imports=("hunch.lm.backends.packing",),
)
EYES = Backend(
    "eyes",
    "hunch_studies.encoders.eyes:Eyes",
    frozenset({"embed", "see"}),
    "pictures by a small model's eyes or as pixels, texts as a bag of words",
    imports=("transformers",),
)
