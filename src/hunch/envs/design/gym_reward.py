"""Reward design for any Gymnasium environment; the fitness is the environment's return or success rate."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.envs.design import inner
from hunch.envs.design.inner import LEARNERS, POINTS, STEP, Policy, Steps, play
from hunch.envs.design.limit import limit_of, made
from hunch.envs.design.own_code import code_of
from hunch.envs.design.plain import plain_gym_reward, text_of
from hunch.envs.design.policy import described
from hunch.envs.design.problem import DesignProblem, OutsideError, Trial
from hunch.envs.design.reward import SECONDS, Reward, loaded, table
from hunch.envs.design.running import TOTAL, box
from hunch.sandbox.errors import printable

JUDGED, TESTED = 5, 20
"""Episodes in which the policy is evaluated: at points of the training, and at the end."""
METRICS = {"return": "return of the environment's own reward", "success": "success rate"}
"""The possible metrics of the task, with their names in texts."""
EACH_STEP = ("ppo", "sac")
"""Learners that call the reward at every step. A new process per call is too slow, so a program keeps its
state."""
PLAIN = ("next_observation", "action")
"""What a program of the plain form gets: where the step has led, and the action."""
SLOW = 0.01
"""Additional time limit in seconds per environment step, for learners that call the reward at every step."""


class GymRewardDesign(DesignProblem):
    """Write a reward from which a policy learns the task of a Gymnasium environment.

    The learner does not get the environment's reward. The fitness is the mean return, or the share of
    episodes that end with ``is_success`` or ``success`` in the info, over 20 episodes of the trained policy.
    Before a program is written, a random episode checks that the environment reports this metric.

    Args:
        base: Id of the Gymnasium environment; observations are vectors or numbers. Without a limit of its
            own, an episode has at most 2,000 steps.
        learner: ``cem``: the cross-entropy method on linear policies; ``q``: Q-learning in a table, where
            observations and actions are numbers; ``ppo`` or ``sac`` of stable-baselines3. Default: ``q``
            where it can be used, else ``cem``.
        steps: Environment steps per training.
        metric: ``return`` or ``success``.
        target: Fitness at which the task counts as solved. Default: the environment's threshold.
        about: With ``--request plain``: the task, in place of what is taken from the environment's own text.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.
    """

    version = "copies-1"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""
    seeded = True

    def __init__(
        self,
        *,
        base: str = "CartPole-v1",
        learner: Literal["", "cem", "q", "ppo", "sac"] = "",
        steps: int = 20_000,
        metric: Literal["return", "success"] = "return",
        target: float | None = None,
        about: str = "",
        trials: str = "user",
        render_mode: str | None = None,
    ) -> None:
        if learner not in ("", *LEARNERS) or metric not in METRICS or steps < POINTS:
            raise UsageError(
                f"learner must be {', '.join(LEARNERS)}, steps at least {POINTS}, and metric "
                f"{' or '.join(METRICS)}, not {learner!r}, {steps}, {metric!r}."
            )
        self.base, self.metric, self.steps = base, metric, steps
        env = self._made()
        self.limit = limit_of(env)
        self.code_of_base = code_of(env)
        self.learner, self.train = inner.learner(learner, env)
        threshold = env.spec.reward_threshold if env.spec and metric == "return" else 0.95
        super().__init__(
            task=f"Write the reward from which a policy learns the task of {base}. The policy is judged by "
            f"the {METRICS[metric]}, which the reward cannot read.",
            interface=_interface(env),
            function="reward",
            parameters=STEP,
            # Small models copy "the environment's own reward" where they read it, so the return is not named.
            plain=plain_gym_reward(
                base, text_of(env), env, "its success rate" if metric == "success" else "", about
            ),
            target=target if target is not None else threshold if threshold is not None else math.inf,
            trials=trials,
            render_mode=render_mode,
        )
        env.close()

    def _made(self) -> gym.Env[Any, Any]:
        return made(self.base, "a reward")

    def identity(self) -> str:
        """Return the version of training and evaluation, environment and training settings."""
        settings = f"{self.base}{self.limit}{self.code_of_base} {self.learner} {self.steps} {self.metric}"
        return f"{self.version} {gym.__version__} {settings}"

    def ready(self) -> None:
        """Start the sandbox, and check the metric in a random episode.

        Raises:
            UsageError: if the environment fails, or does not report the metric.
        """
        box(SECONDS)
        with closing(self._made()) as env:
            env.action_space.seed(0)
            try:
                self._metric(*play(env, lambda observation: env.action_space.sample(), 0)[1:])
            except OutsideError as error:
                why = f"A random episode of {self.base} failed, so use another base: {printable(str(error))}."
                raise UsageError(why) from None

    def _metric(self, total: float, info: dict[str, Any]) -> float:
        """Return the metric of an episode.

        Raises:
            OutsideError: if the return is not finite.
            UsageError: if the environment does not report success.
        """
        if self.metric == "return":
            if not math.isfinite(total):
                raise OutsideError(f"an episode of the environment had the return {total}")
            return total
        success = info.get("is_success", info.get("success"))
        if success is None:
            raise UsageError(
                f"{self.base} does not tell success: the info at the end of an episode has no is_success. "
                "Use the metric return."
            )
        return float(success)

    def run(self, program: str, seed: int) -> Trial:
        """Train a policy with the reward, and evaluate it on the task."""
        state: Literal["kept", "fresh"] = "kept" if self.learner in EACH_STEP else "fresh"
        means: list[dict[str, float]] = []
        curve: list[float] = []
        total = TOTAL + SLOW * self.steps
        with loaded(program, STEP, PLAIN, state=state, total=total) as reward:
            price = _Priced(reward)
            for policy in self.train(self._made, price, self.steps, seed):
                curve.append(self._judged(policy, JUDGED, seed))
                means.append(price.mean())
        final = self._judged(policy, TESTED, seed)
        name = METRICS[self.metric]
        curve_table = table({name: curve}, means, range(len(means)))
        return Trial(
            final,
            f"{name} at the end: {final:.4g}\n{curve_table}",
            components={"final": final, "max": max(curve)},
        )

    def _judged(self, policy: Policy, episodes: int, seed: int) -> float:
        """Return the metric of a policy, always in the same episodes of a seed."""
        seeds = np.random.default_rng([seed, 1]).integers(2**31, size=episodes).tolist()
        with closing(self._made()) as env:
            metrics = [self._metric(*play(env, policy, one)[1:]) for one in seeds]
        return float(np.mean(metrics))


class _Priced:
    """A reward that remembers the mean of its components."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.sums: dict[str, float] = {}
        self.steps = 0

    def __call__(self, steps: Steps) -> FloatArray:
        """Return the total of n steps, shape (n,)."""
        total, components = self.reward(steps)
        self.steps += len(total)
        for name, values in components.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(values.sum())
        return total

    def mean(self) -> dict[str, float]:
        """Return the mean of each component since the last call."""
        means = {name: value / max(1, self.steps) for name, value in self.sums.items()}
        self.sums, self.steps = dict.fromkeys(self.sums, 0.0), 0
        return means


def _shape(space: gym.Space[Any]) -> str:
    return f"({', '.join(map(str, ('n', *(space.shape or ()))))}{'' if space.shape else ','})"


def _interface(env: gym.Env[Any, Any]) -> str:
    seen, done = env.observation_space, env.action_space
    header = f"def reward({', '.join(STEP)}):"
    lines = [
        "Interface: all variables are of n steps at once.",
        f"- observation: numpy array of shape {_shape(seen)}, each entry of {seen}, before the step",
        f"- action: numpy array of shape {_shape(done)}, each entry of {done}",
        f"- next_observation: numpy array of shape {_shape(seen)}, after the step",
        "- Returns (total, components): a numpy array of shape (n,), and a dict of such arrays by name.",
        described(text_of(env), without=("Rewards",)),
        f'```python\nimport numpy as np\n\n{header}\n    """Reward of n steps."""\n```',
    ]
    return "\n".join(line for line in lines if line)
