"""Recorded episodes with their texts.

Runs keep the seed and the actions of an episode. Its texts are obtained by replaying it, and the agent's
explanations from the agent of the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from hunch.core import Explanation, HunchError, State, Transition
from hunch.envs import make
from hunch.envs.offers import HasMask
from hunch.lm.pictures import picture
from hunch.report.gather import Run
from hunch.rl.rollout import Finished, Rollout, TextEnvironment
from hunch.runs.data import options_with_data
from hunch.runs.execute import RunConfig
from hunch.runs.loading import load_agent
from hunch.runs.models import Loaded


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replayed episode with its texts.

    Attributes:
        answers: Observations: the first one, and one after each action, (length + 1) texts.
        offers: Admissible actions before each action.
        rewards: Reward of each action, length of the episode.
        pictures: The picture of each observation, as a data URL, and "" for one without; empty if there are
            none.
    """

    task: str
    answers: list[str]
    offers: list[tuple[str, ...]]
    rewards: list[float]
    pictures: list[str]


@dataclass
class RunEpisodes:
    """The episodes of a run, if they can be reproduced, with explanations.

    Attributes:
        replayed: The replayed episodes; empty if the replay failed; then ``reason`` says why.
        explained: The agent's explanations at each step of some episodes, by index; empty if the agent cannot
            be asked; then ``why_not_explained`` has the reason.
    """

    run: Run
    episodes: list[Finished]
    replayed: list[Replayed]
    reason: str
    explained: dict[int, list[Explanation]]
    why_not_explained: str


def episodes_of(run: Run, number: int, loaded: Loaded | None = None) -> RunEpisodes:
    """Replay a run's episodes, evaluations last, and ask its agent to explain some of them.

    Args:
        run: The run.
        number: Number of episodes to explain.
        loaded: See :func:`hunch.runs.models.load_models`.
    """
    episodes = [*run.result.episodes, *run.result.evaluations]
    replayed, explained = list[Replayed](), dict[int, list[Explanation]]()
    reason = why_not = ""
    try:
        replayed = replay(run.config, episodes)
    except HunchError as error:
        reason = str(error)
    chosen = choose(run.result.episodes, number)
    try:
        if replayed and chosen:
            step_opinions = opinions(run.folder, [episodes[i] for i in chosen], loaded)
            explained = dict(zip(chosen, step_opinions, strict=True))
    except HunchError as error:
        why_not = str(error)
    return RunEpisodes(run, _as_shown(run.config, episodes), replayed, reason, explained, why_not)


def replay(config: RunConfig, episodes: Sequence[Finished]) -> list[Replayed]:
    """Replay episodes of a run, without the history that the agent saw.

    Raises:
        HunchError: if the environment cannot be made, or does not repeat the episodes.
    """
    try:
        env = make(config.env, **{**options_with_data(config), "history": 0})
        return [_replay(env, episode) for episode in episodes]
    except HunchError:
        raise
    except Exception as error:  # a user's environment may raise anything
        raise HunchError(f"{type(error).__name__}: {error}") from error


def _as_shown(config: RunConfig, episodes: Sequence[Finished]) -> list[Finished]:
    """Return episodes with their actions as pages may show them.

    An environment that cannot be made cannot be asked; its episodes are not replayed, and a page has no text
    of them.
    """
    try:
        options = options_with_data(config)
    except HunchError:  # the data are gone; an environment masks texts with any options
        options = config.env_options
    try:
        env = make(config.env, **{**options, "history": 0}).unwrapped
    except Exception:  # a user's environment may raise anything; `replay` has told what
        return list(episodes)
    if not isinstance(env, HasMask):
        return list(episodes)
    return [replace(each, actions=tuple(map(env.masked, each.actions))) for each in episodes]


def _replay(env: TextEnvironment, episode: Finished) -> Replayed:
    noted = _Rewards(env)
    states, last = _seen(noted, episode)
    same = np.isclose(sum(noted.rewards), episode.episode_return, equal_nan=True)  # nan: a failed program
    if last is None or not same or last.success != episode.success:
        raise HunchError("the environment did not repeat the episode; the same seed must give the same one.")
    states_and_end = [*states, last.next_state]
    answers = [s.observation for s in states_and_end]
    offers = [s.actions or () for s in states]
    shown = [picture(s.pictures[-1].data) if s.pictures else "" for s in states_and_end]
    return Replayed(states[0].task, answers, offers, noted.rewards, shown if any(shown) else [])


class _Rewards(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes the reward of each action, of which the sum is the episode's return.

    In an environment of several players, transitions have the rewards of the players instead.
    """

    def __init__(self, env: TextEnvironment) -> None:
        super().__init__(env)
        self.rewards: list[float] = []

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step."""
        outcome = self.env.step(action)
        self.rewards.append(float(outcome[1]))
        return outcome


def _seen(env: TextEnvironment, episode: Finished) -> tuple[list[State], Transition | None]:
    """Replay an episode; return the state before each action, and the last transition.

    Transitions have another order than actions where several players move.
    """
    rollout = Rollout([env], seeds=[episode.seed], numbers=[episode.number], task_seed=episode.task_seed)
    states: list[State] = []
    transitions: list[Transition] = []
    for action in episode.actions:
        if not rollout.states:
            break
        states += rollout.states
        transitions = rollout.step([action])
    return states, transitions[-1] if transitions else None


def opinions(
    folder: Path, episodes: Sequence[Finished], loaded: Loaded | None = None
) -> list[list[Explanation]]:
    """Return the explanations of a run's final agent at each step of some episodes.

    Args:
        folder: The run's folder.
        episodes: The episodes.
        loaded: See :func:`hunch.runs.models.load_models`.

    Raises:
        HunchError: if environment, model or checkpoint are not available.
    """
    try:
        agent, config = load_agent(folder, loaded=loaded)
        env = make(config.env, **options_with_data(config))
        return [[agent.explain(state) for state in _seen(env, episode)[0]] for episode in episodes]
    except HunchError:
        raise
    except ModuleNotFoundError as error:
        raise HunchError(f"{error.name} is not installed.") from error
    except Exception as error:  # a user's environment, model or checkpoint may raise anything
        raise HunchError(f"{type(error).__name__}: {error}") from error


def choose(episodes: Sequence[Finished], number: int) -> list[int]:
    """Choose interesting episodes: the last, first, best and worst, then evenly spaced ones.

    Returns:
        At most ``number`` indices, ascending.
    """
    everything = range(len(episodes))
    if number < 1 or not episodes:
        return []
    value = [(np.nan_to_num(e.episode_return, nan=-np.inf), -e.length) for e in episodes]
    best, worst = max(everything, key=value.__getitem__), min(everything, key=value.__getitem__)
    spread = np.linspace(0, len(episodes) - 1, min(number, len(episodes))).astype(int)
    marked = [len(episodes) - 1, 0, best, worst]
    wanted: dict[int, Any] = dict.fromkeys([*marked, *map(int, spread), *everything])
    return sorted(list(wanted)[:number])
