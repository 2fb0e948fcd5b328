"""The action prior and the policy: does the model choose actions that lead to the goal?

Both use the prompts and readers of DQN-Prior, and share the answers. The ability is the probability of the
actions that bring the goal nearer; of a model that writes its proposals, it is their share among k of them.
Whether one of k does (recall@k) is a column: if few actions are listed, k proposals name nearly all.

A model that states probabilities should be right in seven of ten states in which its favourite has the
probability 0.7. This is measured where one action is right: several right ones would share it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hunch.audition import frontier
from hunch.audition.question import USUAL, Bed, Manner, Moment, Role, Scores, moments, too_long
from hunch.core import FloatArray, State, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.usage import Metered
from hunch.lm.ways import VERBS, WAYS
from hunch.roles.prior.base import ROUNDING, DistributionPrior, Proposal
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.kinds import PriorConfig, build_prior

K = 5
"""Number of proposals, as in DQN-Prior."""
BEDS = (
    Bed("hunch/Household-Pick-v0", {"games": 40}, "pool_seed", manual=r"Your task is to: .*\n?"),
    Bed("hunch/Overcooked-Salad-v0"),
    Bed("hunch/FrozenLake-v0", manual=r"You are in a .*? that we aim to reach\. Input: "),
    Bed("hunch/Blocksworld-v0"),
)
ASKED = tuple(dict.fromkeys(verb for verbs in VERBS.values() for verb in verbs))


class States(NamedTuple):
    """States of a bed with the right actions, and the models' proposals, which both roles share."""

    bed: Bed
    moments: list[Moment]
    proposals: dict[tuple[LanguageModel, Manner], list[Proposal]]
    stated: dict[tuple[LanguageModel, Manner], list[FloatArray]]  # p(a|s) of models that state it
    cut: set[tuple[LanguageModel, Manner]]  # models that read only a part of some prompt


def states(bed: Bed, n: int, seed: int) -> States:
    """Draw n states with their right actions."""
    return States(bed, moments(bed, n, seed), {}, {}, set())


def accuracy(lm: LanguageModel, drawn: States, seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each state the probability of the right actions, or their share of the proposals."""
    proposals = _proposed(lm, drawn, seed, manner)
    right = [_weights(p, m) for p, m in zip(proposals, drawn.moments, strict=True)]
    alike: list[int] | None = None
    if (lm, manner) in drawn.stated:
        # p(good | s) itself: five draws from it have the same mean, and add the luck of the draw.
        stating = zip(drawn.stated[lm, manner], drawn.moments, strict=True)
        weight = np.array([p[_good(moment)].sum() for p, moment in stating])
    else:
        weight = np.array([weights.sum() for weights in right])
        places: dict[State, int] = {}
        alike = [places.setdefault(state, len(places)) for state in _asked(drawn, manner)]
    stated, came = _stated((lm, manner), drawn)
    episodes = [m.episode for m in drawn.moments]
    columns = _columns(proposals, right)
    columns |= _kinds(proposals, drawn.moments)
    unread = columns.get("unread", 0.0)
    return Scores(weight, episodes, columns, stated=stated, came=came, unread=unread, alike=alike)


def _proposed(lm: LanguageModel, drawn: States, seed: int, manner: Manner) -> list[Proposal]:
    """Return the proposals of a model, which is asked once for both roles.

    Raises:
        UsageError: if the other role had no score of them, because the model read a part of a prompt only.
    """
    key = lm, manner
    # Made for each role, because it notes in which way the model is asked.
    prior = build_prior(PriorConfig(way=manner.way, max_tokens=manner.max_tokens, patience=None), lm)
    if key not in drawn.proposals:
        asked = _asked(drawn, manner)
        before = _shortened(lm)
        drawn.proposals[key] = prior.propose(asked, K, np.random.default_rng(seed))
        if isinstance(prior, DistributionPrior):
            drawn.stated[key] = prior.probabilities(asked)  # kept, so the model is not asked again
        if _shortened(lm) > before:
            drawn.cut.add(key)
    elif key in drawn.cut:
        raise UsageError(too_long(lm))
    return drawn.proposals[key]


def _asked(drawn: States, manner: Manner) -> list[State]:
    """Return the states as a model reads them."""
    asked = [m.state for m in drawn.moments]
    return [aimless(state, drawn.bed.manual) for state in asked] if manner.blank else asked


def _shortened(lm: LanguageModel) -> int:
    return lm.usage.shortened if isinstance(lm, Metered) else 0


def _stated(key: tuple[LanguageModel, Manner], drawn: States) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the probability of the favourite in states with one right action, and whether it is that one."""
    if key not in drawn.stated:
        return None, None
    stated = list[float]()
    came = list[float]()
    for moment, p in zip(drawn.moments, drawn.stated[key], strict=True):
        if len(moment.good) == 1:
            favourite = int(p.argmax())
            stated.append(float(p[favourite]))
            came.append(float(moment.state.options[favourite] in moment.good))
    return np.array(stated), np.array(came)


def _good(moment: Moment) -> NDArray[np.bool_]:
    """Return whether each action of a state is right, shape (actions,)."""
    return np.array([option in moment.good for option in moment.state.options])


def _weights(proposal: Proposal, moment: Moment) -> FloatArray:
    """Return the weight of each candidate that is right, and 0 for the others or if no answer named one."""
    named = _good(moment)[proposal.indices] & (proposal.fallbacks != 1)
    weights: FloatArray = np.where(named, proposal.weights, 0.0)
    return weights


def _columns(proposals: list[Proposal], right: list[FloatArray]) -> dict[str, float]:
    """Return recall@k, Brier score of the favourite, whether errors last, and the share of unread answers."""
    sure = np.array([p.weights.max() for p in proposals])
    hit = np.array([shares[p.weights.argmax()] > 0 for p, shares in zip(proposals, right, strict=True)])
    unread = [p.fallbacks for p in proposals if p.fallbacks == p.fallbacks]
    return {
        "recall": float(np.mean([shares.sum() > 0 for shares in right])),
        "brier": float(((sure - hit) ** 2).mean()),
        "lasting errors": lasting(1 - np.array([shares.sum() for shares in right])),
        **({"unread": float(np.mean(unread))} if unread else {}),
    }


def _kinds(proposals: list[Proposal], drawn: list[Moment]) -> dict[str, float]:
    """Return the shares of the errors that name the action listed first or last, or cannot be read."""
    first = last = unread = wrong = 0.0
    questions = 0
    for proposal, moment in zip(proposals, drawn, strict=True):
        named = proposal.named(len(moment.state.options))  # 0 for the draws that cannot be read
        right = _good(moment)
        errors = np.where(right, 0.0, named)
        first += float(errors[0])
        last += float(errors[-1])
        unread += 1 - float(named.sum())
        wrong += 1 - float(named[right].sum())
        questions += named[right].sum() < 1 - ROUNDING
    return frontier.shares(first, last, unread, wrong, questions)


def lasting(wrong: FloatArray) -> float:
    """Return how similar K answers to one state are: 0 for independent errors, 1 if all or none are wrong.

    Args:
        wrong: Share of wrong answers in each state, shape (n,).
    """
    mean = wrong.mean()
    both = (wrong * (K * wrong - 1) / (K - 1)).mean()  # two different answers are wrong
    return float(np.clip((both - mean**2) / (mean - mean**2), 0, 1)) if 0 < mean < 1 else float("nan")


LEFT_OUT = "the task"
PRIOR = Role(
    "prior",
    "weight of its proposals that leads to the goal",
    ASKED,
    BEDS,
    states,
    accuracy,
    ways=WAYS,
    blank=LEFT_OUT,
)
POLICY = replace(PRIOR, name="policy", ability="share of its choices that lead to the goal")
