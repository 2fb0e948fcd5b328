"""The ways in which a role asks a model to choose among options: which a model has, and which is best for it.

=================== ============== ==================================================================
way                 verb           probabilities of the options
=================== ============== ==================================================================
decision            decide         those that a decision model returns
structured          generate       share of k answers, each restricted to one of the options
label               label or score softmax over the log-probabilities of letters that number the options
similarity          embed          softmax over similarities of embeddings
likelihood          score          softmax over the options' log-probabilities after the prompt
likelihood-unlisted score          the same, after a prompt that does not list the options
text                generate       share of k free answers that name the option
text-unlisted       generate       the same, after a prompt that does not list the options
=================== ============== ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeVar, get_args

from hunch.core import UsageError
from hunch.lm.base import LanguageModel, Verb
from hunch.lm.hearing import note_way

Way = Literal[
    "decision",
    "structured",
    "label",
    "similarity",
    "likelihood",
    "likelihood-unlisted",
    "text",
    "text-unlisted",
]
WAYS: Final[tuple[Way, ...]] = get_args(Way)
VERBS: Final[dict[Way, tuple[Verb, ...]]] = {
    "decision": ("decide",),
    "structured": ("generate",),
    "label": ("label", "score"),  # letters can be scored like any other options
    "similarity": ("embed",),
    "likelihood": ("score",),
    "likelihood-unlisted": ("score",),
    "text": ("generate",),
    "text-unlisted": ("generate",),
}
"""Kinds of request by way; the model must support at least one."""
DESCRIPTIONS: Final[dict[Way, str]] = {
    "decision": "it decides by itself",
    "structured": "each answer is restricted to one of the options",
    "label": "the probability of each option's letter, or of its one word",
    "similarity": "similarity of embeddings",
    "likelihood": "the probability of each option's text",
    "likelihood-unlisted": "the probability of each option's text, after a prompt without a list",
    "text": "free answers, each read as one of the options",
    "text-unlisted": "free answers to a prompt without a list, each read as one of the options",
}
"""Each way in words."""
NATIVE: Final = "native"
WRITTEN: Final = "written"
CALLING: Final[dict[str, str]] = {
    NATIVE: "calls of tools in the server's own form",
    WRITTEN: "calls of tools as JSON in the answer's text",
}
"""The ways of calling tools, in words."""
SERVED: Final[tuple[Way, ...]] = ("structured", "label", "text")
"""Order of preference for models that chat, and for others behind a server that restricts answers. Structured
answers put more weight on the right option than letters do, whatever the number of options
(``benchmarks/ways.py``), so the order does not depend on it."""
JUDGED: Final[tuple[Way, ...]] = ("label", "structured", "text")
"""The same for verdicts. A small model writes one verdict on nearly everything, whereas its probability of
Yes still differs (``benchmarks/judging.py``)."""
LOCAL: Final[tuple[Way, ...]] = ("likelihood", "text", "label", "similarity")
"""Order of preference for models that continue text, which are asked as the papers do, and for encoders.
Similarity is last: embeddings of a model that was not trained as an encoder say little."""


def has_way(lm: LanguageModel, way: Way) -> bool:
    """Return whether a model can be asked in this way."""
    if way == "structured" and "choices" not in getattr(lm, "takes", frozenset()):
        return False
    return not lm.verbs.isdisjoint(VERBS[way])


def ways_of(lm: LanguageModel, among: Iterable[Way] = WAYS) -> tuple[Way, ...]:
    """Return the ways in which a model can be asked, of those given."""
    return tuple(way for way in among if has_way(lm, way))


def best_way(
    lm: LanguageModel,
    among: Iterable[Way] = WAYS,
    *,
    needed_by: str = "Choosing",
    for_probabilities: bool = False,
    served: tuple[Way, ...] = SERVED,
) -> Way:
    """Return the best way of asking a model, of those given: the one rule behind ``auto``.

    The first of these that the model has:

    1. the way that the model declares as its ``best_way``: stand-ins and recordings declare that they are
       read as the model that they stand for. Where probabilities are asked for, it does not count;
    2. its native decision;
    3. ``served``, by default :data:`SERVED`: structured answers, letters, free text; for a model that chats,
       or one that restricts answers and does not score;
    4. :data:`LOCAL`: likelihood, free text, letters, similarity;
    5. any other.

    Args:
        lm: The model.
        among: The ways that the role has.
        needed_by: What needs it, for the error message.
        for_probabilities: True if the answer is a probability of each option, as in
            :func:`hunch.lm.scoring.choose.choose`, and not a proposal.
        served: The order of the third rule.

    Raises:
        UsageError: if the model can be asked in none of these ways.
    """
    possible = ways_of(lm, among)
    if not possible:
        raise UsageError(_cannot(lm, needed_by, tuple(among)))
    order: list[Way] = []
    declared: Way | None = getattr(lm, "best_way", None)
    if declared is not None and not for_probabilities:
        order.append(declared)
    order.append("decision")
    chats = bool(getattr(lm, "answer_tokens", 0))
    if chats or (has_way(lm, "structured") and "score" not in lm.verbs):
        order += served
    order += LOCAL
    order += possible
    return next(way for way in order if way in possible)


def require_way(lm: LanguageModel, way: Way, among: Iterable[Way] = WAYS, *, needed_by: str) -> None:
    """Check that a model can be asked in a way.

    Args:
        lm: The model.
        way: The way.
        among: The ways that the role has, for the error message.
        needed_by: What needs it, for the error message.

    Raises:
        UsageError: if it cannot; the message names the ways that it has.
    """
    among = tuple(among)
    if way not in among:
        raise UsageError(f"A way of asking is one of auto, {', '.join(among)}, not {way!r}.")
    if not has_way(lm, way):
        raise UsageError(_cannot(lm, needed_by, (way,), ways_of(lm, among)))


def way_for(
    lm: LanguageModel,
    way: Way | Literal["auto"],
    among: Iterable[Way] = WAYS,
    *,
    role: str,
    needed_by: str,
    for_probabilities: bool = False,
    served: tuple[Way, ...] = SERVED,
) -> Way:
    """Return the way in which a role asks a model, and note it for whoever watches.

    Args:
        lm: The model.
        way: The way that is set; auto takes the best one of the model (:func:`best_way`).
        among: The ways that the role has.
        role: The role, a key of :data:`hunch.lm.hearing.ANSWERS`.
        needed_by: What needs it, for the error message.
        for_probabilities: As for :func:`best_way`.
        served: As for :func:`best_way`.

    Raises:
        UsageError: if the model can be asked in none of these ways, or not in the one that is set.
    """
    among = tuple(among)
    if way == "auto":
        chosen = best_way(lm, among, needed_by=needed_by, for_probabilities=for_probabilities, served=served)
    else:
        require_way(lm, way, among, needed_by=needed_by)
        chosen = way
    note_way(lm, role, chosen, automatic=way == "auto")
    return chosen


Named = TypeVar("Named", bound=str)
"""The names of ways that a role has, as literals."""


def one_way(asked: str, way: str, ways: tuple[Named, ...]) -> Named:
    """Return a way as one of those that a role has.

    Args:
        asked: Who is asked, at the beginning of a sentence.
        way: The name of the way.
        ways: The names of all ways of the role.

    Raises:
        UsageError: if the role has no such way.
    """
    for possible in ways:
        if possible == way:
            return possible
    raise UsageError(f"{asked} is asked by {', '.join(ways)}, not {way!r}.")


def _cannot(lm: LanguageModel, needed_by: str, asked: tuple[Way, ...], possible: tuple[Way, ...] = ()) -> str:
    """Say in a sentence that a model lacks the ways asked for, what they need, and the ways that it has."""
    needs = sorted({verb for way in asked for verb in VERBS[way]})
    what = f"the way {asked[0]}" if len(asked) == 1 else "one of the ways " + ", ".join(asked)
    if asked == ("structured",) and "generate" in lm.verbs:
        lacks = "answers restricted to options, which chat models behind a server, llama.cpp and hf: have"
    else:
        lacks = f"the verb {' or '.join(needs)}"
    has = f"it can be asked by {', '.join(possible)}" if possible else "it can be asked in no such way"
    lacking: dict[str, str] = getattr(getattr(lm, "model", lm), "lacking", {})
    why = next((f" Tried when it was loaded: {lacking[verb]}" for verb in needs if lacking.get(verb)), "")
    return f"{needed_by} in {what} needs {lacks}; {lm.name} does not have it: {has}.{why}"
