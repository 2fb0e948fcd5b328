"""Small causal models trained by this project: their decoder, and the weights of one of them."""

from hunch.lm.base import Backend

BACKEND = Backend(
    "pocket",
    "hunch.pocket.model:load",
    frozenset({"generate", "score", "embed", "see"}),
    "our own small models, for prompts of examples or for pictures; made by 'hunch pretrain pocket'",
    imports=("hunch.lm.backends.packing", "hunch.lm.scoring.engine"),
    check="hunch.pocket.model:place_of",
)
