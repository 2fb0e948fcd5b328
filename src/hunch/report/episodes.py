"""Recorded episodes with their texts: same seed, same actions, same episode.

Runs keep the seed and the actions of an episode. What the environment said is had again by replaying it, and
what the agent thinks of it by asking the agent as the last checkpoint has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hunch.core import Agent, Explanation, HunchError
from hunch.envs import make
from hunch.rl.episodes import replay as again
from hunch.rl.rollout import Episode, TextEnvironment
from hunch.runs.build import load_agent
from hunch.runs.execute import RunConfig


@dataclass(frozen=True, slots=True)
class Replayed:
    """An episode as it was seen.

    Attributes:
        answers: What the environment said: at first, and to each action, (length + 1) texts.
        offers: The actions that were admissible at each step.
        rewards: Of each action.
    """

    task: str
    answers: list[str]
    offers: list[tuple[str, ...]]
    rewards: list[float]


def replay(config: RunConfig, episodes: Sequence[Episode]) -> list[Replayed]:
    """Replay episodes of a run, without the history that the agent saw beside each answer.

    Raises:
        HunchError: if the environment cannot be made, or does not give the same episodes again.
    """
    try:
        env = make(config.env, **{**config.env_options, "history": 0})
        return [_replay(env, episode) for episode in episodes]
    except HunchError:
        raise
    except Exception as error:  # whatever somebody's environment raises
        raise HunchError(f"{type(error).__name__}: {error}") from error


def _replay(env: TextEnvironment, episode: Episode) -> Replayed:
    played = list(again(env, episode.seed, episode.actions, episode.number))
    rewards = [t.reward for t in played]
    if not np.isclose(sum(rewards), episode.episode_return) or played[-1].success != episode.success:
        raise HunchError("the environment did not replay the episode: same seed, same episode is broken.")
    answers = [played[0].state.observation, *(t.next_state.observation for t in played)]
    return Replayed(played[0].state.task, answers, [t.state.actions or () for t in played], rewards)


def opinions(folder: Path, episodes: Sequence[Episode]) -> list[list[Explanation]]:
    """What the agent of a run, as it is at the run's end, thinks at each step of some episodes.

    Raises:
        HunchError: if environment, model or checkpoint are not to be had.
    """
    try:
        agent, config = load_agent(folder)
        env = make(config.env, **config.env_options)
        return [_opinions(agent, env, episode) for episode in episodes]
    except HunchError:
        raise
    except ModuleNotFoundError as error:
        raise HunchError(f"{error.name} is not installed.") from error
    except Exception as error:  # whatever somebody's environment, model or checkpoint raises
        raise HunchError(f"{type(error).__name__}: {error}") from error


def _opinions(agent: Agent, env: TextEnvironment, episode: Episode) -> list[Explanation]:
    played = again(env, episode.seed, episode.actions, episode.number)
    return [agent.explain(transition.state) for transition in played]


def choose(episodes: Sequence[Episode], number: int) -> list[int]:
    """Choose episodes worth a look: the last, first, best and worst, then some evenly spaced over the run.

    Returns:
        At most ``number`` positions, ascending.
    """
    everything = range(len(episodes))
    if number < 1 or not episodes:
        return []
    best = max(everything, key=lambda i: (episodes[i].episode_return, -episodes[i].length))
    worst = min(everything, key=lambda i: (episodes[i].episode_return, -episodes[i].length))
    spread = np.linspace(0, len(episodes) - 1, min(number, len(episodes))).astype(int)
    marked = [len(episodes) - 1, 0, best, worst]
    wanted: dict[int, Any] = dict.fromkeys([*marked, *map(int, spread), *everything])
    return sorted(list(wanted)[:number])
