"""Goals for learners of other libraries."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from hunch.core import State, World
from hunch.lm.base import LanguageModel
from hunch.ranges import check_value
from hunch.roles.goal import goaled
from hunch.roles.goal.goaled import Achievement, GoalSource
from hunch.roles.goal.suggestions import Suggestions
from hunch.roles.gym import InWords, loaded, require_env, require_text
from hunch.roles.reward.similarity import Similarity


class Goals(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A text environment whose text begins with the goals of a source, and that pays for reaching them.

    ``info["goals"]`` are the goals of the state, ``info["reached"]`` those that the step reached.

    Args:
        env: A text environment.
        source: A model that suggests goals among the admissible actions, or its spec; or another goal source,
            such as :class:`hunch.roles.goal.suggestions.Suggestions` with settings of your own.
        achievement: Says which goals are reached. Default: with a model, those that the step's event equals
            in words (:class:`hunch.roles.reward.similarity.Similarity` with ``bag-of-words``), and none with
            another source.
        renew: Suggest new goals in every state, and not only at the beginning of an episode.
        reward: Reward of a goal that was reached.
        extrinsic: Weight of the environment's reward.
        seed: Seed of the source.

    Raises:
        UsageError: if the environment is none of texts, or the source is none.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        source: GoalSource | LanguageModel | str,
        achievement: Achievement | None = None,
        *,
        renew: bool = True,
        reward: float = 1.0,
        extrinsic: float = 1.0,
        seed: int = 0,
    ) -> None:
        require_env("Goals", env)
        for name, value in (("reward", reward), ("extrinsic", extrinsic)):
            check_value(name, value, float)
        named: dict[str, Any] = {"renew": renew, "reward": reward, "extrinsic": extrinsic, "seed": seed}
        RecordConstructorArgs.__init__(self, source=source, achievement=achievement, **named)
        gymnasium.Wrapper.__init__(self, env)
        require_text("Goals", env)
        if not isinstance(source, GoalSource):
            source = Suggestions(loaded(source))
            achievement = achievement or Similarity(loaded("bag-of-words"), of_task=False)
        self.in_words = InWords(env)
        self.source = source
        self.reward = reward
        self.extrinsic = extrinsic
        self.models = source.models
        source.begin(World(streams=1), seed)
        self.goals = goaled.Goals(source, achievement, renew)
        self.achievement = achievement
        self.state = State("")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with goals for its first state."""
        text, info = self.env.reset(seed=seed, options=options)
        self.goals.by_stream.clear()
        self.goals.done.clear()
        (self.state,) = self.goals.given([self.in_words.state(text, info)])
        return self._with_goals(text), {**info, "goals": self.state.goals}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the reward is the sum of the environment's and that of the goals reached."""
        before = self.state
        name = self.in_words.action(before, action)
        outcome = self.env.step(name)
        text, reward, terminated, truncated, info = outcome
        transition = self.in_words.transition(before, name, outcome)
        reached: list[str] = []
        if self.achievement is not None:
            (reached,) = self.achievement.reached([transition])
        (seen,) = self.goals.seen([transition])
        self.state = seen.next_state
        total = self.extrinsic * float(reward) + self.reward * len(reached)
        shown_info = {
            **info,
            "goals": self.state.goals,
            "reached": tuple(reached),
            "extrinsic": float(reward),
        }
        return self._with_goals(text), total, bool(terminated), bool(truncated), shown_info

    def _with_goals(self, text: str) -> str:
        goals = "".join(f"Goal: {goal}\n" for goal in self.state.goals)
        return f"{goals}{text}"
