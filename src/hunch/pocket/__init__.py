"""The pocket model, a small causal model trained by this project: its weights and decoder."""

from hunch.lm.registry import Backend

BACKEND = Backend(
    "pocket",
    "hunch.pocket.model:load",
    frozenset({"generate", "score", "embed"}),
    "our own small causal model, for prompts of examples; made by 'hunch pretrain pocket'",
    imports=("hunch.lm.backends.packing", "hunch.lm.scoring.engine"),
)
