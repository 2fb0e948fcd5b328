"""Rewards of models and of programs, for learners of other libraries, also on environments of numbers.

With stable-baselines3, for example::

    env = JudgeReward(gymnasium.make("CartPole-v1"), "openai:gpt-4o-mini", "the pole stays upright")
    PPO("MlpPolicy", env).learn(10_000)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from hunch.core import Agent, Player, State, Transition, UsageError, World
from hunch.envs.design.code import flaw
from hunch.envs.design.gym_reward import PLAIN
from hunch.envs.design.inner import STEP
from hunch.envs.design.reward import Reward, form_of
from hunch.envs.design.running import box
from hunch.lm.base import LanguageModel
from hunch.ranges import check_value
from hunch.roles.gym import Describe, InWords, loaded, require_env
from hunch.roles.reward.judge import Judge, JudgeConfig
from hunch.roles.reward.rewarded import Rewarded, RewardSource, Shaping
from hunch.sandbox import ProgramValue
from hunch.text_files import read_text


class _Kept(Agent):
    """Stands in for an agent, and keeps the last transitions."""

    def begin(self, world: World, seed: int) -> None:
        """Forget it."""
        self.seen: Sequence[Transition] = ()

    def act(self, states: Sequence[State]) -> list[str]:
        """Raise an error: the learner of another library acts."""
        raise NotImplementedError

    def player(self, seed: int) -> Player:
        """Raise an error: the learner of another library plays."""
        raise NotImplementedError

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep it."""
        self.seen = transitions


class SourceReward(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose reward includes a source's rewards, like :class:`hunch.roles.Rewarded`.

    ``info["extrinsic"]`` is the environment's reward, ``info["intrinsic"]`` the transformed reward of the
    source. What the learner sees and does stays as it is; an environment of numbers is described to the
    source alone. A limit of steps belongs inside of this wrapper: the end of an episode that only a wrapper
    outside knows of is not rewarded.

    Args:
        env: A text environment, or one whose observations are described.
        source: The reward source.
        weight: Weight of the source's rewards.
        extrinsic: Weight of the environment's rewards.
        shaping: How the source's rewards are transformed first; without ``recall``, which changes the
            states of an agent and is not possible here.
        describe: Turns an observation into text. Default: that of this library, for CartPole, Taxi,
            CliffWalking and Blackjack.
        actions: Names of the actions, with ``describe``.
        task: The task in a sentence, with ``describe``.
        seed: Seed of the source.

    Raises:
        UsageError: if a setting is out of range, ``recall`` is set, or observations cannot be described.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        source: RewardSource,
        *,
        weight: float = 1.0,
        extrinsic: float = 1.0,
        shaping: Shaping | None = None,
        describe: Describe | None = None,
        actions: Sequence[str] = (),
        task: str = "",
        seed: int = 0,
    ) -> None:
        joined: dict[str, Any] = {"weight": weight, "extrinsic": extrinsic, "shaping": shaping, "seed": seed}
        read: dict[str, Any] = {"describe": describe, "actions": actions, "task": task}
        require_env(type(self).__name__, env)
        for name, value in (("weight", weight), ("extrinsic", extrinsic)):
            check_value(name, value, float)
        RecordConstructorArgs.__init__(self, source=source, **joined, **read)
        gymnasium.Wrapper.__init__(self, env)
        if shaping is not None and shaping.recall:
            raise UsageError("recall changes the states of an agent; an environment wrapper cannot use it.")
        if not isinstance(source, RewardSource):
            raise UsageError(
                f"A reward source is needed, and {source!r} is none; for a model use JudgeReward."
            )
        self.in_words = InWords(env, **read)
        kept = _Kept()
        self.kept = kept
        self.models = source.models
        self.rewarded = Rewarded(kept, source, weight=weight, extrinsic=extrinsic, shaping=shaping)
        self.source_seed = seed
        self.begun = False
        self.state = State("")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; one that has not ended is forgotten, and no model judges it."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.state = self.in_words.state(observation, info)
        if self.begun:
            self.rewarded.abandon(self.state.stream)
        else:  # only the first state says which task a text environment has
            self.rewarded.begin(World(task=self.state.task, streams=1), self.source_seed)
            self.begun = True
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the reward is the weighted sum of the environment's and the source's reward."""
        before = self.state
        name = self.in_words.action(before, action)
        taken = action if self.in_words.describe is not None else name
        outcome = self.env.step(taken)
        observation, reward, terminated, truncated, info = outcome
        transition = self.in_words.transition(before, name, outcome)
        self.state = transition.next_state
        self.rewarded.observe([transition])
        figures = {"extrinsic": float(reward), "intrinsic": self.rewarded.learn().get("intrinsic", 0.0)}
        return observation, self.kept.seen[0].reward, bool(terminated), bool(truncated), {**info, **figures}


class JudgeReward(SourceReward):
    """An environment that pays 1 more at the end of each episode that a model says satisfies an objective.

    Args:
        env: A text environment, or one whose observations are described.
        lm: The model, or its spec.
        objective: What an episode should satisfy, in a sentence.
        config: How the model is asked; its objective is replaced.
        options: Those of :class:`SourceReward`.

    Raises:
        UsageError: if the model cannot judge, or as for :class:`SourceReward`.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        lm: LanguageModel | str,
        objective: str,
        *,
        config: JudgeConfig | None = None,
        **options: Any,
    ) -> None:
        require_env("JudgeReward", env)
        if not isinstance(objective, str):
            raise UsageError(f"The objective is a sentence, not {objective!r}.")
        # Gymnasium keeps the arguments that are recorded first, so not those of the base class.
        RecordConstructorArgs.__init__(self, lm=lm, objective=objective, config=config, **options)
        settings = replace(config or JudgeConfig(), objective=objective)
        super().__init__(env, Judge(loaded(lm), settings), **options)


class ProgramReward(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose reward is that of a program, such as the ``best.py`` of a run of Eureka.

    The program defines ``reward`` with the parameters of :data:`hunch.envs.design.inner.STEP`: arrays whose
    first dimension counts steps (here one), and returns the total and its components. Or, as programs of
    ``--request plain``, it has two parameters, the observation after the step and the action, and returns a
    number. It runs in the sandbox.
    ``info["extrinsic"]`` is the environment's reward, ``info["components"]`` those of the program.

    Args:
        env: An environment of numbers.
        program: The program, or the path of a file with it.
        weight: Weight of the program's reward.
        extrinsic: Weight of the environment's reward.

    Raises:
        UsageError: if there is no such file, or the program cannot be run.
        ProgramError: in ``step``, if the program fails.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        program: str | Path,
        *,
        weight: float = 1.0,
        extrinsic: float = 0.0,
    ) -> None:
        require_env("ProgramReward", env)
        for name, value in (("weight", weight), ("extrinsic", extrinsic)):
            check_value(name, value, float)
        if not isinstance(program, str | Path):
            raise UsageError(f"A program is its text, or the path of a file with it, not {program!r}.")
        if not _is_numeric(env.observation_space):
            raise UsageError(
                f"A program reads numbers, and observations are of {env.observation_space}: flatten them "
                "first, such as with gymnasium.wrappers.FlattenObservation."
            )
        RecordConstructorArgs.__init__(self, program=program, weight=weight, extrinsic=extrinsic)
        gymnasium.Wrapper.__init__(self, env)
        is_file = isinstance(program, Path) or "\n" not in program
        try:
            source = read_text(program) if is_file else str(program)
        except OSError as error:
            raise UsageError(f"The program {program} cannot be read: {error}.") from None
        wrong = flaw(source, "reward", STEP)
        if wrong and flaw(source, "reward", PLAIN):
            raise UsageError(f"The program is no reward: {wrong}.")
        self.weight = weight
        self.extrinsic = extrinsic
        form = form_of(source, STEP, PLAIN)
        self.loaded = box().load(form.source, form.function)
        self.program = Reward(self.loaded, form.names)
        self.observation: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.observation = np.array(observation)  # a copy: an environment may return the same array again
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the reward is the weighted sum of the environment's and the program's.

        Raises:
            ProgramError: if the program fails, or returns no reward.
        """
        before = self.observation
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.observation = np.array(observation)
        values: Mapping[str, Any] = dict(zip(STEP, (before, action, observation), strict=True))
        steps = {name: np.asarray(value)[None] for name, value in values.items()}
        try:
            total, components = self.program(steps)
        except ValueError as error:  # it returned no reward
            raise ProgramValue("Value", str(error)) from None
        figures = {
            "extrinsic": float(reward),
            "components": {name: float(row[0]) for name, row in components.items()},
        }
        joined = self.extrinsic * float(reward) + self.weight * float(total[0])
        return observation, joined, bool(terminated), bool(truncated), {**info, **figures}

    def close(self) -> None:
        """End the program, and close the environment."""
        self.loaded.close()
        super().close()


def _is_numeric(space: gymnasium.Space[Any]) -> bool:
    """Return whether the elements of a space are numbers, or arrays of them."""
    if isinstance(space, gymnasium.spaces.Tuple):
        return all(_is_numeric(part) and not part.shape for part in space)
    return space.dtype is not None and np.issubdtype(space.dtype, np.number)
