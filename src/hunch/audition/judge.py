"""The reward judge: does the model distinguish episodes that met the objective from others?

Prompt and reader are those of Kwon's method (:class:`hunch.roles.reward.judge.Judge`). Half of the episodes
met the objective. Wrong verdicts are asked for again, to tell recurring errors from noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hunch.audition import frontier
from hunch.audition.question import USUAL, Bed, Manner, NoQuestionError, Role, Scores
from hunch.core import Transition, World
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import LanguageModel
from hunch.lm.ways import one_way
from hunch.rl.episodes import play
from hunch.rl.rollout import TextEnvironment, episode_seed
from hunch.roles.reward.judge import JUDGING, Judge, JudgeConfig, JudgeWay

BEDS = (Bed("hunch/MatrixGame-v0"), Bed("hunch/Ultimatum-v0", {}, "pool_seed"))
AGAIN = 12
"""Maximum number of wrong verdicts that are asked for again."""
ATTEMPTS = 50
"""Maximum number of episodes played per question, until there are enough with both outcomes."""


def verdicts(
    lm: LanguageModel, drawn: Sequence[Sequence[Transition]], seed: int, manner: Manner = USUAL
) -> Scores:
    """Return for each episode whether the verdict is right; no verdict counts as wrong."""
    config = JudgeConfig(
        way=judging(manner.way),
        objective="" if manner.blank else None,
        max_tokens=manner.max_tokens,
        temperature=1.0,
        patience=None,
    )
    judge = Judge(lm, config)
    judge.begin(World(), seed)
    prompts = [judge.question(steps[0].state.task, account(steps)) for steps in drawn]
    truth = np.array([steps[-1].success for steps in drawn])
    given = judge.judged(prompts)
    first = _said(given)
    right = first == truth
    wrong = np.flatnonzero(~right & (first >= 0))
    repeated = wrong[:AGAIN]
    again = _said(judge.judged([prompts[i] for i in repeated])) != truth[repeated]
    states = judge.way not in ("text", "structured")  # a written yes or no has no probability
    return Scores(
        right.astype(float),
        list(range(len(drawn))),
        {
            "true positives": _share(first[truth] == 1),
            "false positives": _share(first[~truth] == 1),
            "no verdict": float(np.mean(first < 0)),
            "lasting errors": _lasting(again, 1 - float(right.mean())),
            # A judge's Yes is listed first.
            **frontier.shares(
                first=float(np.sum(first[wrong] == 1)),
                last=float(np.sum(first[wrong] == 0)),
                unread=float(np.sum(first < 0)),
                wrong=float(np.sum(~right)),
                questions=int(np.sum(~right)),
            ),
        },
        stated=np.array([verdict for verdict in given if verdict is not None]) if states else None,
        came=truth[first >= 0].astype(float) if states else None,
        unread=float(np.mean(first < 0)),
    )


def _share(held: NDArray[np.bool_]) -> float:
    """Return the share of true values; nan of none, where few questions are all of one kind."""
    return float(held.mean()) if len(held) else float("nan")


def judging(way: str) -> JudgeWay:
    """Return a way of asking a judge.

    Raises:
        UsageError: if a judge cannot be asked in this way.
    """
    known: tuple[JudgeWay, ...] = get_args(JudgeWay)
    return one_way("A judge", way, known)


def _lasting(again: np.ndarray[Any, Any], wrong: float) -> float:
    """Return 0 if verdicts wrong once are wrong again as often as any, which is noise, and 1 if always."""
    if not len(again):
        return float("nan")
    return max(0.0, float(again.mean() - wrong) / (1 - wrong)) if wrong < 1 else 1.0


def by_words(drawn: Sequence[Sequence[Transition]], seed: int) -> Scores:
    """Return the lexical stand-in's scores: yes if the account's end shares many words with the objective."""
    shared = np.array([_overlap(steps[0].state.task, Judge.words(steps[-1])[-1]) for steps in drawn])
    truth = np.array([steps[-1].success for steps in drawn])
    return Scores(((shared > np.median(shared)) == truth).astype(float), list(range(len(drawn))))


def account(steps: Sequence[Transition]) -> list[str]:
    """Return the account of an episode, as the judge reads it."""
    return [steps[0].state.observation, *chain.from_iterable(map(Judge.words, steps))]


def _said(verdicts: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return 1 for yes, 0 for no, -1 for no verdict."""
    return np.array([-1 if v is None else int(v >= 0.5) for v in verdicts], dtype=np.int64)


def _overlap(objective: str, text: str) -> float:
    wanted = set(words(objective))
    return len(wanted & set(words(text))) / max(len(wanted), 1)


def episodes(bed: Bed, n: int, seed: int) -> list[list[Transition]]:
    """Play until there are n episodes, half of which met the objective, in an order drawn by the seed.

    The solver plays every other episode, with a tenth of its actions random; random play fills the rest.
    Where one outcome is rare, there are fewer episodes, of which half met the objective all the same: a
    judge that says the same of each is right in half of them.

    Raises:
        NoQuestionError: if no episode met the objective, or each one did: then a judge has nothing to tell
            apart.
    """
    env, rng = bed.make(seed), np.random.default_rng(seed)
    wanted = {True: n // 2, False: n - n // 2}
    kept: list[list[Transition]] = []
    for steps in _played(env, rng, seed, ATTEMPTS * n):
        if wanted[steps[-1].success] > 0:
            wanted[steps[-1].success] -= 1
            kept.append(steps)
        if not any(wanted.values()):
            break
    for success, lacking in wanted.items():
        if lacking and not any(steps[-1].success == success for steps in kept):
            raise NoQuestionError(f"{'No' if success else 'Each'} episode that was played met the objective.")
    if any(wanted.values()):
        met = [steps for steps in kept if steps[-1].success]
        failed = [steps for steps in kept if not steps[-1].success]
        fewer = min(len(met), len(failed))
        kept = met[:fewer] + failed[:fewer]
    return [kept[i] for i in rng.permutation(len(kept))]


def _played(
    env: TextEnvironment, rng: np.random.Generator, seed: int, most: int
) -> Iterator[list[Transition]]:
    for number in range(most):
        skill = 0.9 if number % 2 else 0.0

        def act(state: object, skill: float = skill) -> str:
            options = state.options  # type: ignore[attr-defined]
            plan = env.unwrapped.oracle() if rng.random() < skill else None  # type: ignore[attr-defined]
            return plan[0] if plan else str(rng.choice(options))

        yield list(play(env, act, episode_seed(seed, 2, number)))


JUDGE = Role(
    "judge",
    "share of episodes judged rightly, half of which met the objective",
    ("generate", "score", "label", "decide"),
    BEDS,
    episodes,
    verdicts,
    by_words,
    ways=JUDGING,
    blank="the objective",
)
