"""The evaluations of a run: when and where, how they are played and recorded, and which is the best."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import gymnasium as gym

from hunch.core import Agent, Player, UsageError
from hunch.methods import reads_raw
from hunch.rl.comparison import difference
from hunch.rl.episodes import evaluate as play
from hunch.rl.rollout import Finished, TextEnvironment
from hunch.runs.result import mean_return
from hunch.runs.training import Training

EVALUATION_SEED = 1_000_003
"""Added to a run's seed to obtain the seed of its evaluation episodes."""


@dataclass(frozen=True)
class Evaluation:
    """When and in which environments to evaluate.

        hunch.train("dqn", env, evaluation=hunch.Evaluation(every=500))

    Attributes:
        envs: One text environment, or several for parallel episodes. Default: environments like those of the
            run.
        every: Training steps between evaluations; 0 for none.
        episodes: Episodes per evaluation.
        episodes_per_player: Episodes after which the player's memory is cleared; None for never.
    """

    envs: TextEnvironment | Sequence[TextEnvironment] | None = None
    every: int = 0
    episodes: int = 20
    episodes_per_player: int | None = None

    def __post_init__(self) -> None:
        if self.envs is not None and not self.every:
            raise UsageError("An evaluation needs the steps between evaluations: every=...")

    @property
    def places(self) -> list[TextEnvironment]:
        """The environments, as a list."""
        if self.envs is None:
            return []
        places = [self.envs] if isinstance(self.envs, gym.Env | str) else list(self.envs)
        for env in places:
            if not isinstance(env, gym.Env):
                raise UsageError(
                    f"An evaluation takes environments, as hunch.make(ID) gives them, not {env!r}: write "
                    "hunch.Evaluation([hunch.make(ID)], every=...)."
                )
        return places


@dataclass
class Players:
    """Makes and stores an agent's players for an evaluation.

    Args:
        agent: The agent.
    """

    agent: Agent
    made: list[Player] = field(default_factory=list)

    def __call__(self, seed: int) -> Player:
        """Return a new player."""
        player = self.agent.player(seed)
        self.made.append(player)
        return player

    def figures(self) -> dict[str, float]:
        """Return the means of the metrics that the players report; empty if they report none."""
        metrics = [figures for figures in (player.figures() for player in self.made) if figures]
        if not metrics:
            return {}
        return {name: sum(each[name] for each in metrics) / len(metrics) for name in metrics[0]}


def copies(envs: Sequence[TextEnvironment], n: int) -> list[TextEnvironment]:
    """Copy environments that were given as objects, for evaluations.

    Raises:
        UsageError: if there are no environments, or one cannot be copied.
    """
    if not envs:
        raise UsageError(
            "There is no environment to evaluate in: pass evaluation=hunch.Evaluation(env, every)."
        )
    try:
        return [deepcopy(env) for env in envs[:n]]
    except Exception as error:
        raise UsageError(
            f"The environment cannot be copied to evaluate in it ({error}): pass "
            "evaluation=hunch.Evaluation(env, every)."
        ) from error


def score(episodes: Sequence[Finished]) -> tuple[float, float]:
    """Return the key by which evaluations are ranked: success rate, then mean return."""
    rate = sum(episode.success for episode in episodes) / len(episodes)
    return rate, mean_return(episodes).get("return", float("-inf"))


def best_score(episodes: Sequence[Finished]) -> tuple[float, float] | None:
    """Return the highest key of evaluations, which differ in their training step; None if there are none."""
    grouped = groupby(episodes, key=lambda episode: episode.step)
    return max((score(list(group)) for _, group in grouped), default=None)


def evaluate(training: Training, evaluation: Evaluation) -> list[Finished]:
    """Play evaluation episodes of a run, record them and return them.

    Raises:
        UsageError: if playing changed the agent; checked in the first evaluation.
    """
    agent = training.agent
    before = None if training.trusted else deepcopy(agent.state_dict())
    players = Players(agent)
    with training.failing("play as an evaluation's player"):
        played = play(
            players,
            evaluation.places,
            evaluation.episodes,
            training.config.seed + EVALUATION_SEED,
            episodes_per_player=evaluation.episodes_per_player,
            lifetime=training.config.lifetime,
            task_seed=training.rollout.task_seed if training.rollout else None,
            raw=reads_raw(agent),
        )
        training.pending.append({f"eval_{name}": value for name, value in players.figures().items()})
    if before is not None:
        _require_same(before, agent)
        training.trusted = True
    earlier = best_score(training.evaluations)
    recorded = training.record(played, training.evaluations, evaluation=True)
    if training.folder and (earlier is None or score(recorded) > earlier):
        training.remember(score(recorded)[0])
    return recorded


def _require_same(before: dict[str, Any], agent: Agent) -> None:
    changed = difference(before, agent.state_dict())
    if changed is not None:
        name = type(agent).__name__
        raise UsageError(f"An evaluation changed the agent ({changed}): {name}.player must return a copy.")
