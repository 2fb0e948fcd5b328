"""Records offline data with a mix of behaviours and a given share of successful episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hunch.core import Episode, HunchError, InadmissibleActionError, Player, State, Transition, UsageError
from hunch.envs import make
from hunch.envs.offers import CountsEpisodes, HasExamples, HasOracle
from hunch.envs.prompts import shown
from hunch.envs.wrappers import History
from hunch.lm import trainable
from hunch.methods.tune.text import Writer
from hunch.ranges import PositiveInt, Share, check_value
from hunch.rl.dataset import Dataset
from hunch.rl.episodes import play, replay
from hunch.rl.recording import Recording
from hunch.rl.rollout import Finished, Rollout, TextEnvironment
from hunch.rl.world import advance
from hunch.runs.config import RunConfig, Seed
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.result import read_episode
from hunch.runs.stored import read_run

if TYPE_CHECKING:
    from hunch.lm.training import Written

Act = Callable[[State], str]
DISCARDED = 50
"""Maximum number of consecutive discarded episodes before recording fails."""
ROUNDED = 0.02
"""Difference from 1 that the sum of rounded shares may have, such as three times 0.33."""


@dataclass(frozen=True, slots=True)
class Part:
    """A behaviour (a way to choose actions) and its share of the steps."""

    behaviour: str
    share: float


def parse_mix(text: str) -> tuple[Part, ...]:
    """Read a mix such as ``"oracle=0.5,noisy:0.3=0.25,random=0.25"``; without numbers, all shares are equal.

    Raises:
        UsageError: if a share is not a positive number, only some have a share, or their sum is not 1.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    stated = [part.rpartition("=") for part in parts]
    if not parts or any(bool(name) != bool(stated[0][0]) for name, _, _ in stated):
        raise UsageError(f"A mix must read 'oracle=0.5,random=0.5' or 'oracle,random', not {text!r}.")
    if not stated[0][0]:
        return tuple(Part(part, 1 / len(parts)) for part in parts)
    try:
        shares = [float(value) for _, _, value in stated]
    except ValueError:
        raise UsageError(f"Every share must be a number, unlike in {text!r}.") from None
    if not all(share > 0 for share in shares):
        raise UsageError(f"Shares must be positive, unlike in {text!r}.")
    if abs(sum(shares) - 1) > ROUNDED:
        raise UsageError(f"The shares of a mix must add up to 1, and those of {text!r} are {sum(shares):g}.")
    return tuple(Part(name, share / sum(shares)) for (name, _, _), share in zip(stated, shares, strict=True))


def collect(
    env_id: str,
    env_options: Mapping[str, Any],
    mix: tuple[Part, ...],
    steps: int,
    *,
    good: float | None = None,
    seed: int = 0,
    group: int = 1,
    max_tokens: int = 32,
) -> Dataset:
    """Record an exact number of steps; the last episode is cut off when a behaviour's share is reached.

    Args:
        env_id: Id of the environment.
        env_options: Options of the environment.
        mix: The behaviours, with their shares of the steps.
        steps: Steps of the whole data set.
        good: Share of the steps (0 to 1) from successful episodes; None for no control.
        seed: Seed of all episodes and of the behaviours.
        group: Number of successive episodes with the same first state, such as answers to one prompt.
        max_tokens: Maximum number of tokens of a text that a language model writes.

    Raises:
        UsageError: on an unknown behaviour, one that the environment does not support, or a run with too few
            episodes of the required kind.
        HunchError: if a behaviour hardly ever produces episodes of the required kind.
    """
    check_value("steps", steps, PositiveInt)
    check_value("good", good, Share | None)
    check_value("seed", seed, Seed)
    check_value("group", group, PositiveInt)
    check_value("max_tokens", max_tokens, PositiveInt)
    env = make(env_id, **env_options)
    wanted = _quotas(mix, steps, good)
    episodes: list[Recording] = []
    for number, share in enumerate(mix):
        seeds = np.random.SeedSequence([seed, number])
        source = _episodes(share.behaviour, env, env_id, seeds, group, max_tokens)
        episodes += _fill(source, share.behaviour, wanted[number])
    provenance = {
        "mix": {share.behaviour: share.share for share in mix},
        "good": good,
        "seed": seed,
        "version": version("hunch-rl"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Dataset(env_id, dict(env_options), tuple(episodes), provenance)


def _quotas(mix: tuple[Part, ...], steps: int, good: float | None) -> list[dict[bool | None, int]]:
    """Return the steps per behaviour: from successful episodes, from others, or from any (None)."""
    edges = np.round(np.cumsum([0.0, *(share.share for share in mix)]) * steps).astype(int)
    totals = [int(n) for n in np.diff(edges)]
    if good is None:
        return [{None: total} for total in totals]
    return [{True: round(total * good), False: total - round(total * good)} for total in totals]


def _fill(source: Iterator[Recording], behaviour: str, quota: dict[bool | None, int]) -> Iterator[Recording]:
    """Take from a stream of episodes what a behaviour must contribute."""
    asked, discarded = dict(quota), 0
    while any(quota.values()):
        lacking = next(kind for kind, steps in quota.items() if steps)
        named = {None: "", True: " of successful episodes", False: " of unsuccessful episodes"}[lacking]
        episode = next(source, None)
        if episode is None:
            has = f"{asked[lacking] - quota[lacking]:,} of the {asked[lacking]:,} steps{named}"
            raise UsageError(f"{behaviour} has only {has} that were requested.")
        if discarded >= DISCARDED and not behaviour.startswith("run:"):
            raise HunchError(f"The behaviour {behaviour!r} does not produce enough steps{named}.")
        key = None if None in quota else episode.success
        if not quota[key]:
            discarded += 1
            continue
        discarded = 0
        part = episode.cut(quota[key])
        quota[key] -= len(part)
        yield part


# ---- behaviours -----------------------------------------------------------------------------------------


def _episodes(
    behaviour: str,
    env: TextEnvironment,
    env_id: str,
    seeds: np.random.SeedSequence,
    group: int,
    max_tokens: int,
) -> Iterator[Recording]:
    """Play episodes with a behaviour.

    ``oracle``, ``noisy:E`` (the oracle, with a random action with probability E), ``random``, ``agent:DIR``
    (the final agent of a run), ``run:DIR`` (the training episodes of a run), ``examples`` (demonstrations of
    the environment), ``write:SPEC`` (texts of a language model).
    """
    kind, _, argument = behaviour.partition(":")
    if kind == "run":
        yield from _replayed(Path(argument), env, env_id, behaviour)
        return
    rng = np.random.default_rng(seeds)
    played: Callable[[int], Iterator[Transition]]
    cut: set[tuple[str, str]] = set()  # observation and text, where a text has no end; it grows
    if kind == "agent":
        _same_environment(Path(argument), env_id)
        agent, _ = load_agent(argument)
        player = agent.player(int(rng.integers(2**31)))
        if isinstance(player, Writer):
            cut = player.cut
        played = partial(_lived, env, player)
    elif kind == "write":
        writer = _Writer(argument, rng, group, max_tokens)
        cut = writer.cut
        played = partial(play, env, writer)
    else:
        played = partial(play, env, _policy(kind, argument, env, rng))
    for number in count():
        seed = int(rng.integers(2**31))
        for _ in range(group):
            for recording in record(env, played(seed), behaviour, seed):
                unfinished = _steps_in(recording, cut)
                yield replace(recording, group=number if group > 1 else None, unfinished=unfinished)


def _steps_in(episode: Recording, cut: Collection[tuple[str, str]]) -> tuple[int, ...]:
    """Return the numbers of the steps of an episode whose observation and text are in a collection."""
    steps = enumerate(zip(episode.observations, episode.actions, strict=False))
    return tuple(step for step, taken in steps if taken in cut)


def _lived(env: TextEnvironment, player: Player, seed: int) -> Iterator[Transition]:
    """Play an episode with a player, which observes its steps and may remember them."""
    rollout = Rollout([env], seeds=[seed])
    while rollout.states:
        yield from advance(rollout, player)


class _Writer:
    """Lets a language model write, all answers to a prompt at once.

    Args:
        spec: The model.
        rng: Random generator of all texts.
        group: Number of answers to a prompt.
        max_tokens: Maximum number of tokens of a text.
    """

    def __init__(self, spec: str, rng: np.random.Generator, group: int, max_tokens: int) -> None:
        self.lm = trainable(spec)
        self.rngs = [rng] * group
        self.max_tokens = max_tokens
        self.ready: dict[str, list[Written]] = {}  # by prompt
        self.cut: set[tuple[str, str]] = set()  # observation and text, where the text has no end

    def __call__(self, state: State) -> str:
        """Return the next text for a state."""
        from hunch.roles.policy.text import transcript  # loads torch

        texts = self.ready.setdefault(state.text(), [])
        if not texts:
            texts += self.lm.write([transcript(state)] * len(self.rngs), self.rngs, self.max_tokens)
        written = texts.pop()
        if not written.finished:
            self.cut.add((state.observation, written.text))
        return written.text


def _policy(kind: str, argument: str, env: TextEnvironment, rng: np.random.Generator) -> Act:
    if kind == "random":
        return lambda state: state.options[int(rng.integers(len(state.options)))]
    if kind == "examples":
        return _shown(env, rng)
    if kind not in ("oracle", "noisy"):
        known = "oracle, noisy:E, random, agent:DIR, run:DIR, examples, write:SPEC"
        raise UsageError(f"There is no behaviour {kind!r}; there are {known}.")
    inner = env.unwrapped
    if not isinstance(inner, HasOracle):
        raise UsageError("This environment has no oracle; record with random, agent:DIR or run:DIR.")
    error = _share(argument) if kind == "noisy" else 0.0

    def act(state: State) -> str:
        best = inner.oracle() if rng.random() >= error else None
        return str(best[0]) if best else state.options[int(rng.integers(len(state.options)))]

    return act


def _shown(env: TextEnvironment, rng: np.random.Generator) -> Act:
    """Answer with the environment's demonstrations for the same prompt."""
    texts: dict[str, list[str]] = {}
    inner = env.unwrapped
    for prompt, answers in inner.examples if isinstance(inner, HasExamples) else ():
        texts.setdefault(shown(prompt), []).extend(answers)

    def act(state: State) -> str:
        if not (known := texts.get(state.observation)):
            raise UsageError(f"The environment has no demonstration for {state.observation!r}.")
        return known[int(rng.integers(len(known)))]

    return act


def _share(text: str) -> float:
    """Return the share of random actions of a noisy oracle."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"noisy:E needs a share of random actions from 0 to 1, not {text!r}.")
    return share


def _replayed(folder: Path, env: TextEnvironment, env_id: str, behaviour: str) -> Iterator[Recording]:
    """Replay the training episodes of a run, from their seeds and actions.

    Raises:
        UsageError: if one does not come out as in the run.
    """
    config = _same_environment(folder, env_id)
    for line in read_lines(folder / "episodes.jsonl"):
        if not line["evaluation"]:
            episode = read_episode(line)
            lifetime = episode.number // config.lifetime
            steps = _repeated(env, episode)
            if steps is None:
                options = ", ".join(f"{name}={value}" for name, value in config.env_options.items())
                raise UsageError(
                    f"The episodes of the run in {folder} do not repeat here: they need the options of its "
                    f"environment ({options or 'none'}), as --env.NAME VALUE."
                )
            yield from record(env, steps, behaviour, episode.seed, lifetime)


def _repeated(env: TextEnvironment, episode: Finished) -> list[Transition] | None:
    """Return the steps of an episode that is played again; None if it comes out differently."""
    try:
        steps = list(replay(env, episode))
    except InadmissibleActionError:
        return None
    last = steps[-1]
    if len(steps) != episode.length or not last.done or last.success != episode.success:
        return None
    alone = len({t.stream for t in steps}) == 1  # several players may have rewards of their own
    total = sum(t.reward for t in steps)
    return steps if not alone or np.isclose(total, episode.episode_return, equal_nan=True) else None


def _same_environment(folder: Path, env_id: str) -> RunConfig:
    config = read_run(folder)
    if config.env != env_id:
        raise UsageError(f"The run in {folder} was in {config.env}, not in {env_id}.")
    return config


def record(
    env: TextEnvironment, steps: Iterable[Transition], behaviour: str, seed: int, lifetime: int = 0
) -> list[Recording]:
    """Record an episode while its steps are played; return one recording per player."""
    by_stream: dict[int, list[Transition]] = {}
    for t in steps:
        by_stream.setdefault(t.stream, []).append(t)
    history = env.n if isinstance(env, History) else 0
    inner = env.unwrapped
    number = inner.episode if isinstance(inner, CountsEpisodes) else 0
    return [
        Recording.of(Episode(tuple(steps_of_player), lifetime, number), behaviour, seed, history)
        for _, steps_of_player in sorted(by_stream.items())
    ]
