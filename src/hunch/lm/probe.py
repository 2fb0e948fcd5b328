"""Probes a model for ``hunch lm SPEC``: whether it answers, which requests it supports, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from hunch.core import EvidenceLevel, HunchError, UsageError
from hunch.lm.asking import AskConfig, Asking, room
from hunch.lm.base import LanguageModel, Verb
from hunch.lm.decision import DecisionQuestion
from hunch.lm.registry import build
from hunch.lm.speech import Sampling

PROMPT = "You are in a kitchen. You see a fridge and a mug.\nYour task is to: take the mug.\n{}\nAction:"
OPTIONS = ("go to the fridge", "open the fridge", "take the mug", "look")
LABELS = ("A", "B", "C", "D")
REQUESTS: dict[Verb, int] = {"generate": 4, "score": 8, "label": 8, "embed": 32, "decide": 8}


@dataclass(frozen=True, slots=True)
class Description:
    """A model's properties, and measurements of its answers.

    Attributes:
        answers: True if the model could be loaded and answered; otherwise ``problem`` has the reason.
        parameters: Number of weights; 0 for a rule.
        dim: Length of an embedding; 0 if the model does not embed.
        context: Maximum number of tokens that the model reads; None if unknown.
        speed: Requests per second by kind, one at a time and uncached: ``generate`` up to 16 tokens (a chat
            model whole answers), ``score``, ``label`` and ``decide`` with four options, ``embed`` a short
            text.
        tokens_per_second: Tokens per second that ``generate`` writes; 0 if the model does not count them.
        logprobs: True if the model returns probabilities of texts, by ``score`` or ``label``.
        prompting: How texts and messages are presented to the model.
        answer: The quoted answer to a small question, or a note that it was empty.
        doubts: What moves the answers of a decision model though it should not, in words.
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
    tokens_per_second: float = 0.0
    logprobs: bool = False
    prompting: str = ""
    answer: str = ""
    doubts: str = ""


def describe(spec: str, **options: Any) -> Description:
    """Load a model, try each kind of request without a cache, and describe the model.

    Raises:
        UsageError: for an unknown spec or option. Other failures are described in the result.
    """
    try:
        _, model = build(spec, options)
        verbs = tuple(verb for verb in get_args(Verb) if verb in model.verbs)
        speed: dict[Verb, float] = {verb: _speed(model, verb) for verb in verbs if verb in REQUESTS}
        tokens = _tokens_per_second(model) if "generate" in verbs else 0.0
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
        tokens_per_second=tokens,
        logprobs=bool({"score", "label"} & model.verbs),
        prompting=getattr(model, "prompting", "") if model.verbs != {"embed"} else "",
        answer=_answer(model) if "generate" in verbs else _decision(model) if "decide" in verbs else "",
        doubts="; ".join(f"the server {doubt}" for doubt in getattr(model, "leaks", list)()),
    )


def _answer(model: LanguageModel) -> str:
    """Return what the model says to a small question, or that it says nothing."""
    listed = "\n".join(f"- {option}" for option in OPTIONS)
    ((said,),) = model.generate([PROMPT.format(listed)], sampling=Asking(model, AskConfig()).sampling)
    return repr(said) if said.strip() else "none: the text is empty"


def _decision(model: LanguageModel) -> str:
    """Return the most probable option of a small choice, with its probability."""
    question = DecisionQuestion("choice", "Which action comes next?", OPTIONS)
    ((probabilities,),) = model.decide([PROMPT.format("").removesuffix("Action:")], [[question]])
    if probabilities is None:
        return "none: the model refused to answer"
    favourite = int(probabilities.argmax())
    return f"{OPTIONS[favourite]!r} with probability {probabilities[favourite]:.2f}"


def _speed(model: LanguageModel, verb: Verb) -> float:
    """Return requests per second, after one warm-up request."""
    ends = () if getattr(model, "answer_tokens", 0) else ("\n",)
    ask: Callable[[str], object] = {
        "generate": lambda prompt: model.generate([prompt], sampling=Sampling(room(model, 16), stop=ends)),
        "score": lambda prompt: model.score([prompt], [OPTIONS]),
        "label": lambda prompt: model.label([prompt], [LABELS]),
        "embed": lambda prompt: model.embed([prompt]),
        "decide": lambda prompt: model.decide(
            [prompt], [[DecisionQuestion("choice", "Which action comes next?", OPTIONS)]]
        ),
    }[verb]
    ask(PROMPT.format("\n".join(f"- {option}" for option in OPTIONS)))
    start = time.perf_counter()
    for number in range(REQUESTS[verb]):
        ask(PROMPT.format(f"You have looked {number} times."))
    return REQUESTS[verb] / (time.perf_counter() - start)


def _tokens_per_second(model: LanguageModel) -> float:
    """Return the tokens per second that it writes, one text at a time; 0 if it does not count them."""
    before, start = getattr(model, "tokens_written", 0), time.perf_counter()
    model.generate([PROMPT.format("Say what you see.")], sampling=Sampling(room(model, 32), stop=()))
    return float(getattr(model, "tokens_written", 0) - before) / (time.perf_counter() - start)
