"""What a checkpoint of the transformers library brings along to ``generate``: its settings, and its ends.

A folder may hold a ``generation_config.json`` with top_p, a repetition penalty, suppressed tokens and the
like. The library fills every setting that a call leaves open from there, and a setting such as ``min_p`` has
no value that a call could state to turn it off. So the whole file is put aside while we generate: otherwise
tokens are drawn from another distribution than the one whose log-probabilities we report.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

MARKS: Final = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
"""All that is kept of the settings of a checkpoint: they say what its tokens mean, not how they are drawn."""
EVERY_TOKEN: Final = {"do_sample": True, "top_k": 0, "top_p": 1.0}
"""Sampling from the whole distribution. The library's own default is a ``top_k`` of 50."""


def without_settings(stated: Any) -> Any:
    """Return generation settings with the special tokens of the given ones, and nothing else of them."""
    from transformers import GenerationConfig  # takes a second

    return GenerationConfig(**{mark: getattr(stated, mark, None) for mark in MARKS})


@contextmanager
def only_stated(network: Any) -> Iterator[None]:
    """Within the block, ``generate`` uses the settings that a call states, and none of the checkpoint's.

    Args:
        network: A model of the transformers library, or one that wraps it, such as a PEFT model.
    """
    # A wrapper may hand its own settings to the model inside, so each module that has some is covered.
    owners = [module for module in network.modules() if "generation_config" in vars(module)]
    stated = {module: module.generation_config for module in owners}
    for module, settings in stated.items():
        module.generation_config = without_settings(settings)
    try:
        yield
    finally:
        for module, settings in stated.items():
            module.generation_config = settings


def end_tokens(network: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a text: the tokenizer's end token and those that the checkpoint states."""
    stated = network.generation_config.eos_token_id
    ends = stated if isinstance(stated, list) else [stated]
    return frozenset({tokenizer.eos_token_id, *ends} - {None})
