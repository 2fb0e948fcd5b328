"""Questions for a role: environments with questions whose answers are known, and the scores of a model.

A *bed* is an environment for the questions of a role. The *ability* of a model on a bed is its mean
score over the questions; its interval is a bootstrap over episodes, because questions of one episode are
similar. Questions are drawn by seed, from pools that were not used to tune settings.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hunch.core import Episode, FloatArray, State, Transition, UsageError
from hunch.envs import make
from hunch.lm.base import LanguageModel, Verb
from hunch.lm.ways import Way, ways_of
from hunch.rl.episodes import play
from hunch.rl.rollout import TextEnvironment, episode_seed
from hunch.rl.success import over_episodes

POOL = 7_000
"""Offset of the seed for the pool of generated games, far from the pools of tuning and of studies."""
ERROR: Final = 0.05
"""Share of the intervals that miss the ability, over all rounds of questions."""
RESAMPLES = 2_000
SEARCHED = 2_000
"""Maximum number of distinct observations that a search for a successful episode visits."""


@dataclass(frozen=True)
class Bed:
    """An environment (a test bed) in which a role's questions are drawn.

    Attributes:
        env: Id of the environment.
        options: Options of the environment.
        pool: Name of the option that seeds the pool of games; empty if there is none.
        given: The environment, if it was made in Python.
        data: Recorded episodes whose actions count as right; they replace a solver.
        stored: True if the questions are stored in this package, so the environment need not be installed.
        needs: Requests of which a model must support at least one in this bed, besides those of the role.
        manual: Pattern of what observations say of the task and the rules, which the blank prompt leaves out;
            empty if they only describe what is there. None if that is not known: then the blank prompt
            leaves out the lines that repeat the task.
    """

    env: str
    options: Mapping[str, Any] = field(default_factory=dict)
    pool: str = ""
    given: TextEnvironment | None = None
    data: Sequence[Episode] = ()
    stored: bool = False
    needs: frozenset[Verb] = frozenset()
    manual: str | None = ""

    def make(self, seed: int) -> TextEnvironment:
        """Make the environment, with a different pool of games for each seed."""
        if self.given is not None:
            return copy.deepcopy(self.given)
        pool = {self.pool: POOL + seed} if self.pool else {}
        return make(self.env, **{**self.options, **pool})


@dataclass(frozen=True)
class Scores:
    """A model's scores on the questions of one bed.

    Attributes:
        values: Score of each question, from 0 to 1, shape (n,).
        groups: Episode of each question, shape (n,).
        columns: Further measures by name.
        each: Number of questions behind each score.
        stated: Probabilities that the model stated of events, shape (m,); None if it states none.
        came: Whether each event came true, shape (m,).
        unread: Share of the questions to which no answer could be read, from 0 to 1; their score is that of a
            wrong answer.
        alike: Number of what was asked in each question, shape (n,): equal requests have the same number, and
            the same answers, which were drawn. None if no answer is drawn, or each one for itself.
    """

    values: FloatArray
    groups: Sequence[int]
    columns: Mapping[str, float] = field(default_factory=dict)
    each: int = 1
    stated: FloatArray | None = None
    came: FloatArray | None = None
    unread: float = 0.0
    alike: Sequence[int] | None = None

    @property
    def ability(self) -> float:
        """The mean score, from 0 to 1."""
        return float(self.values.mean())

    @property
    def repetitive(self) -> bool:
        """True if at most half of the questions have answers of their own: more of them would tell little."""
        return self.alike is not None and 2 * len(set(self.alike)) <= len(self.values)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the ability, see :meth:`within`."""
        return self.within(ERROR)

    def within(self, error: float) -> tuple[float, float]:
        """Return the interval of the ability: a bootstrap over episodes, or over questions if there is one.

        If each episode is one success or failure, or all answers are right or all wrong, it is Wilson's over
        episodes: a bootstrap of equal values would leave no room for rare errors. Where equal requests have
        the same drawn answers, it reaches as far as the same over different requests.

        Args:
            error: Share of the intervals that miss the ability.
        """
        intervals = [self._over(self.groups, error)]
        if self.alike is not None:
            # A few answers to one request tell nothing of others: there is nothing to resample.
            intervals.append(self._over(self.alike, error) if len(set(self.alike)) > 1 else (0.0, 1.0))
        return min(low for low, _ in intervals), max(high for _, high in intervals)

    def _over(self, groups: Sequence[int], error: float) -> tuple[float, float]:
        """Return the interval over groups of scores."""
        sums, sizes = totals(self.values, groups)
        alike = sizes.max() == 1 or np.ptp(self.values) == 0
        if alike and np.isin(self.values, (0, 1)).all():
            interval = over_episodes([bool(total) for total in sums], error)
            return interval.low, interval.high
        return resampled(sums, sizes, error)


def totals(values: FloatArray, groups: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sum and the number of the values of each group, shapes (groups,).

    If there is one group, each value is a group of its own.
    """
    _, numbers = np.unique(groups, return_inverse=True)
    if numbers.max() == 0:
        numbers = np.arange(len(values))
    return np.bincount(numbers, values), np.bincount(numbers)


def resampled(sums: NDArray[Any], sizes: NDArray[Any], error: float = ERROR) -> tuple[float, float]:
    """Return the interval of a mean by a bootstrap over groups of values; see :func:`totals`."""
    drawn = np.random.default_rng(0).integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, (error / 2, 1 - error / 2))
    return float(low), float(high)


Draw: TypeAlias = Callable[[Bed, int, int], Any]
"""Function that draws n questions of a bed by a seed; a :class:`NoQuestionError` says why there are none."""


class NoQuestionError(UsageError):
    """An environment shows nothing about which a role could be asked."""


@dataclass(frozen=True)
class Manner:
    """How the questions of a role are put to a model.

    Attributes:
        way: The way of asking (:mod:`hunch.lm.ways`), one of those that the role has; auto takes the role's
            default for the model.
        blank: Leave out objective, task and manual, and nothing else. A model that scores no worse so does
            not use them: it prefers some answers whatever is asked.
        max_tokens: Maximum tokens of a written answer. Default: that of the role.
    """

    way: Way | Literal["auto"] = "auto"
    blank: bool = False
    max_tokens: int | None = None


USUAL: Final = Manner()


def too_long(lm: LanguageModel) -> str:
    """Return why a model that read only a part of a question has no score."""
    most = f"at most {lm.context} tokens, fewer" if lm.context else "fewer tokens"
    return f"it reads {most} than a question has"


def in_words(manner: Manner) -> None:
    """Check the manner of a role whose answers are texts, and whose questions have no objective apart.

    Raises:
        UsageError: if it is another way of asking, or the blank prompt.
    """
    if manner.way not in ("auto", "text") or manner.blank:
        raise UsageError("This role is asked for texts, and has no blank prompt.")


class Ask(Protocol):
    """Function that asks a model the drawn questions; its random choices use a seed."""

    def __call__(self, lm: LanguageModel, drawn: Any, seed: int, manner: Manner = USUAL, /) -> Scores:
        """Return the scores of the answers."""
        ...


@dataclass(frozen=True)
class Role:
    """A role for which a model can be tested.

    Attributes:
        name: Name of the role on the command line.
        ability: What the score is, in words.
        verbs: Kinds of request; a model must support at least one.
        beds: The environments of the role's questions.
        draw: Draws the questions, which are the same for all models.
        ask: Asks a model the questions.
        lexical: Spec of the stand-in that only compares words and supports one of ``verbs``; or a
            function that answers the drawn questions by word overlap or look-up, given a seed.
        ways: The ways in which the role asks.
        blank: What the blank prompt leaves out, in words; empty if the role has no such prompt, because its
            questions have neither an objective nor a manual.
    """

    name: str
    ability: str
    verbs: tuple[Verb, ...]
    beds: tuple[Bed, ...]
    draw: Draw
    ask: Ask
    lexical: str | Callable[[Any, int], Scores] = "bag-of-words"
    ways: tuple[Way, ...] = ("text",)
    blank: str = ""

    def ways_of(self, lm: LanguageModel) -> tuple[Way, ...]:
        """Return the ways in which the role can ask a model."""
        return ways_of(lm, self.ways)


class Moment(NamedTuple):
    """A state of an episode with its best actions.

    Attributes:
        state: The state.
        good: The actions after which the shortest path to success is shorter.
        left: Number of steps of the shortest path from the state.
        episode: Number of the episode.
        step: The step that was then taken.
    """

    state: State
    good: frozenset[str]
    left: int
    episode: int
    step: Transition


def moments(bed: Bed, n: int, seed: int, *, skill: float = 0.5, each: int = 4) -> list[Moment]:
    """Draw n states with known best actions.

    A player follows the solver in a share ``skill`` of the steps, or else acts at random. Without a solver
    the states are those of the recorded successful episodes, or of episodes that a search finds.

    Args:
        bed: The environment.
        n: Number of states.
        seed: Seed of episodes and draws.
        skill: Share of the steps in which the player follows the solver.
        each: Maximum number of states per episode.

    Raises:
        NoQuestionError: if no state has both right and wrong actions.
    """
    rng, drawn = np.random.default_rng(seed), list[Moment]()
    for seen in _episodes(bed, n, seed, rng, skill):
        drawn += [seen[i] for i in sorted(rng.permutation(len(seen))[:each])]
        if len(drawn) >= n:
            break
    if not drawn:
        raise NoQuestionError("No state was seen in which some actions are right and others are wrong.")
    return drawn[:n]


def _episodes(bed: Bed, n: int, seed: int, rng: np.random.Generator, skill: float) -> Iterator[list[Moment]]:
    """Yield the moments of one episode after the other."""
    if bed.data:
        won = [episode for episode in bed.data if episode[-1].success]
        yield from (_followed(won[i], number) for number, i in enumerate(rng.permutation(len(won))))
        return
    env = bed.make(seed)
    for number in range(n):
        seed_of_episode = episode_seed(seed, 1, number)
        if hasattr(env.unwrapped, "oracle"):
            yield list(_solved(env, rng, seed_of_episode, number, skill))
        elif steps := won_by_search(env, seed_of_episode):
            yield _followed(steps, number)


def _replayed(env: TextEnvironment, actions: Sequence[str], seed: int) -> list[Transition]:
    """Return the steps of these actions; success need not end an episode."""
    coming = iter(actions)
    return list(islice(play(copy.deepcopy(env), lambda state: next(coming), seed), len(actions)))


def _followed(steps: Sequence[Transition], number: int) -> list[Moment]:
    """Return the moments of a successful episode, in which its own actions count as right."""
    return [
        Moment(t.state, frozenset((t.action,)), len(steps) - i, number, t)
        for i, t in enumerate(steps)
        if t.state.actions and len(t.state.actions) > 1
    ]


def won_by_search(env: TextEnvironment, seed: int, states: int = SEARCHED) -> list[Transition]:
    """Return a shortest successful episode, found breadth-first in copies of the environment; else empty.

    Args:
        env: An environment that ``copy.deepcopy`` copies.
        seed: Seed of the episode.
        states: Maximum number of distinct observations to visit.
    """
    root = copy.deepcopy(env)
    observation, info = root.reset(seed=seed)
    queue: deque[tuple[TextEnvironment, tuple[str, ...], tuple[str, ...]]] = deque()
    queue.append((root, (), tuple(info.get("actions", ()))))
    seen = {observation}
    while queue and len(seen) < states:
        here, done, actions = queue.popleft()
        for action in actions:
            twin = copy.deepcopy(here)
            observation, _, terminated, truncated, info = twin.step(action)
            if info.get("success"):
                return _replayed(env, (*done, action), seed)
            if not (terminated or truncated or observation in seen):
                seen.add(observation)
                queue.append((twin, (*done, action), tuple(info["actions"])))
    return []


def _solved(
    env: TextEnvironment, rng: np.random.Generator, seed: int, episode: int, skill: float
) -> Iterator[Moment]:
    """Play an episode; yield the states with a choice from which there is a way."""
    known: list[tuple[State, frozenset[str], int]] = []

    def act(state: State) -> str:
        plan = env.unwrapped.oracle()  # type: ignore[attr-defined]
        good, left = (best(env, plan, state), len(plan)) if plan else (frozenset(), 0)
        known.append((state, good, left))
        return plan[0] if plan and rng.random() < skill else str(rng.choice(state.options))

    for step in play(env, act, seed):
        state, good, left = known[-1]
        if good and len(good) < len(state.options):
            yield Moment(state, good, left, episode, step)


def best(env: TextEnvironment, plan: Sequence[str], state: State) -> frozenset[str]:
    """Return the actions after which the episode is won, or the solver needs fewer steps than before."""
    return frozenset(a for a in state.options if a == plan[0] or _nearer(env, a, len(plan)))


def _nearer(env: TextEnvironment, action: str, left: int) -> bool:
    twin = copy.deepcopy(env)
    _, _, terminated, truncated, info = twin.step(action)
    if terminated:
        return bool(info["success"])
    try:
        plan = twin.unwrapped.oracle()  # type: ignore[attr-defined]
    except UsageError:
        if truncated:  # some solvers know nothing once the last step is taken, and it did not win
            return bool(info["success"])
        raise
    return plan is not None and len(plan) < left
