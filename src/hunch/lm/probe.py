"""What ``hunch lm SPEC`` shows: whether a model answers, with which verbs, how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hunch.core import EvidenceLevel, HunchError, UsageError
from hunch.lm.base import LanguageModel, Sampling, Verb
from hunch.lm.registry import build

PROMPT = "You are in a kitchen. You see a fridge and a mug.\nYour task is to: take the mug.\n{}\nAction:"
OPTIONS = ("go to the fridge", "open the fridge", "take the mug", "look")
REQUESTS: dict[Verb, int] = {"generate": 4, "score": 8, "embed": 32}


@dataclass(frozen=True, slots=True)
class Description:
    """What a model says about itself, and what it was seen to do.

    Attributes:
        answers: Whether it could be loaded and answered; else ``problem`` says why not.
        parameters: Number of weights, 0 for a rule.
        dim: Length of an embedding, 0 where it does not embed.
        context: The most tokens that it reads, None where there is no such limit.
        speed: Requests per second, one at a time and uncached: samples of up to 16 tokens for ``generate``,
            prompts with four options for ``score``, short texts for ``embed``.
        load_seconds: How long loading took.
    """

    name: str
    answers: bool
    problem: str = ""
    evidence: EvidenceLevel | None = None
    revision: str = ""
    verbs: tuple[Verb, ...] = ()
    parameters: int = 0
    dim: int = 0
    context: int | None = None
    speed: dict[Verb, float] = field(default_factory=dict)
    load_seconds: float = 0.0


def describe(spec: str, **options: Any) -> Description:
    """Load a model, ask each of its verbs a little, without any cache, and describe it.

    Raises:
        UsageError: for an unknown spec or option. A model that fails is described, not raised.
    """
    start = time.perf_counter()
    try:
        _, model = build(spec, options)
        loaded = time.perf_counter() - start
        verbs = tuple(verb for verb in REQUESTS if verb in model.verbs)
        speed = {verb: _speed(model, verb) for verb in verbs}
    except UsageError:
        raise
    except HunchError as error:
        return Description(spec, answers=False, problem=str(error))
    return Description(
        model.name,
        answers=True,
        evidence=model.evidence,
        revision=model.revision,
        verbs=verbs,
        parameters=getattr(model, "parameters", 0),
        dim=model.dim,
        context=getattr(model, "context", None),
        speed=speed,
        load_seconds=loaded,
    )


def _speed(model: LanguageModel, verb: Verb) -> float:
    """Return requests per second, after one to warm up."""
    ask: Callable[[str], object] = {
        "generate": lambda prompt: model.generate([prompt], sampling=Sampling(max_tokens=16)),
        "score": lambda prompt: model.score([prompt], [OPTIONS]),
        "embed": lambda prompt: model.embed([prompt]),
    }[verb]
    ask(PROMPT.format("\n".join(f"- {option}" for option in OPTIONS)))
    start = time.perf_counter()
    for number in range(REQUESTS[verb]):
        ask(PROMPT.format(f"You have looked {number} times."))
    return REQUESTS[verb] / (time.perf_counter() - start)
