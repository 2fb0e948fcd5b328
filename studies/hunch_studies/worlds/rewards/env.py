"""Reward design: a program is the reward of a learner, and its fitness is what the learner achieves."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Literal

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.envs.design.plain import Plain, plain_reward
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.envs.design.reward import SECONDS, Reward, loaded, table
from hunch.envs.design.running import box
from hunch.ranges import PositiveInt, Share
from hunch.rl import cem
from hunch_studies.worlds.rewards import WORLDS, Variables, World
from hunch_studies.worlds.rewards.base import HasEasy

POINTS = 10
"""Number of points of a training in the feedback."""
JUDGED, TESTED = 16, 64
"""Episodes in which the policy is evaluated, during training and at its end."""
METRICS = {"success": "success rate", "degree": "degree of success"}
"""The task's metrics, and what they are called."""
BLANK = "A policy is to learn a task by a reward."
"""What stands in place of the task in the blank prompt."""


class RewardDesign(DesignProblem):
    """Write a reward from which a policy learns a task.

    The fitness is the task's own metric, never a reward: the success rate of the policy at the end of its
    training, over 64 episodes, or its degree of success, which tells policies apart that never succeed. A
    trial trains one policy by the cross-entropy method, with the trial's seed. The feedback shows each
    component of the reward, and the metric, at ten points of the training. Finished trials are kept in the
    user's file of trials, so none is run twice.

    Args:
        world: ``point-maze``, ``mountain-car``, ``docking``, ``reacher`` or ``crane``.
        generations: Number of generations of a training. Default: the world's own.
        metric: ``success`` for the success rate, ``degree`` for the mean degree of success.
        fitness: ``final``, or ``max`` for the highest metric during the training, as in Eureka.
        curriculum: Share of the generations in which episodes begin in easy states, before those of the task,
            as in Eureka's pen spinning; 0 for none. Only in worlds that know easy states: docking.
        blank: Leave the task out of what a writer reads, and nothing else: the control that shows whether it
            reads the task.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.
    """

    seeded = True

    def __init__(
        self,
        *,
        world: Literal["point-maze", "mountain-car", "docking", "reacher", "crane"] = "point-maze",
        generations: PositiveInt | None = None,
        metric: Literal["success", "degree"] = "success",
        fitness: Literal["final", "max"] = "final",
        curriculum: Share = 0.0,
        blank: bool = False,
        trials: str = "user",
        render_mode: str | None = None,
    ) -> None:
        if world not in WORLDS or fitness not in ("final", "max") or metric not in METRICS:
            raise UsageError(
                f"Reward design has the worlds {', '.join(WORLDS)}, the metrics {', '.join(METRICS)} and the "
                f"fitness final or max, not {world!r}, {metric!r} and {fitness!r}."
            )
        self.world: World = WORLDS[world]()
        if curriculum and not isinstance(self.world, HasEasy):
            raise UsageError(f"The world {world} has no easy states for a curriculum; docking has.")
        self.curriculum = curriculum
        self.learner, self.metric, self.judged_by = self.world.learner, metric, fitness
        if generations is not None:
            self.learner = replace(self.learner, generations=generations)
        names = tuple(self.world.variables)
        task = BLANK if blank else _task(self.world, metric)
        super().__init__(
            task=f"{task} Write the reward from which a policy learns this.",
            interface=_interface(self.world),
            source=dedent(inspect.getsource(type(self.world).step)),
            function="reward",
            parameters=names,
            plain=_plain(self.world, task),
            target=0.95,
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Version of the world and its trials, world and training."""
        lessons = f" curriculum {self.curriculum:g}" if self.curriculum else ""
        return (
            f"{self.world.version} {type(self.world).__name__} {self.learner} {self.metric} {self.judged_by}"
            f"{lessons}"
        )

    def ready(self) -> None:
        """Start the sandbox."""
        box(SECONDS)

    def run(self, program: str, seed: int) -> Trial:
        """Train a policy with the reward, and evaluate it on the task."""
        with loaded(program, tuple(self.world.variables), _alone(self.world)) as reward:
            lessons = round(self.curriculum * self.learner.generations)
            training = _Training(self.world, reward, seed, lessons)
            means = list(self.learner.search(training.scores, training.size, training.rng))
        points = np.unique(np.linspace(0, len(means) - 1, POINTS).round().astype(int))
        curves = training.judged([means[i] for i in points], JUDGED)
        ends = {name: values[0] for name, values in training.judged(means[-1:], TESTED).items()}
        told = ("degree", "success") if self.metric == "degree" else ("success",)
        lines = [f"{METRICS[name]} at the end: {ends[name]:.2f}" for name in told]
        rows = {METRICS[name]: curves[name] for name in told}
        found = {"final": ends[self.metric], "max": max(curves[self.metric])}
        return Trial(
            found[self.judged_by],
            "\n".join([*lines, table(rows, training.components, points.tolist())]),
            components=found if told == ("success",) else {**found, "success": ends["success"]},
        )


def _task(world: World, metric: str) -> str:
    """Return the task, and how a policy is judged if that is not the same."""
    judged = (
        f" A policy is judged by its degree of success: {world.degree_description}."
        if metric == "degree"
        else ""
    )
    return f"{world.task}{judged}"


def _alone(world: World) -> tuple[str, ...]:
    """Return what the reward of one step gets: all but the action."""
    return tuple(name for name in world.variables if name != "action")


def _plain(world: World, task: str) -> Plain:
    lines = []
    for name in _alone(world):
        shape, _, meaning = world.variables[name].partition("), ")
        size = shape.partition(",")[2].strip()
        lines.append(f"- {name}: {f'an array of {size} numbers' if size else 'a number'}, {meaning}")
    return plain_reward(task, "\n".join(lines), _alone(world))


def _interface(world: World) -> str:
    lines = [f"- {name}: numpy array of shape {told}" for name, told in world.variables.items()]
    header = f"def reward({', '.join(world.variables)}):"
    return "\n".join(
        [
            "Interface: all variables are of n steps at once.",
            *lines,
            "- Returns (total, components): a numpy array of shape (n,), and a dict of such arrays by name.",
            "",
            f'```python\nimport numpy as np\n\n{header}\n    """Reward of n steps."""\n```',
        ]
    )


class _Training:
    """The training of a policy on a reward, with the episodes of all candidates at once.

    Args:
        world: The world.
        reward: The reward.
        seed: Seed of the training.
        lessons: Number of first generations whose episodes begin in easy states.
    """

    def __init__(self, world: World, reward: Reward, seed: int, lessons: int = 0) -> None:
        self.lessons = lessons
        self.world, self.reward, self.episodes = world, reward, world.episodes
        self.rng, self.judge_seed = np.random.default_rng([seed, 0]), [seed, 1]
        self.size = cem.policy_size(*world.sizes)
        self.components: list[dict[str, float]] = []

    def scores(self, candidates: FloatArray) -> FloatArray:
        """Return the mean return of each candidate over some episodes, shape (population,)."""
        n = len(candidates) * self.episodes
        parameters = np.repeat(candidates, self.episodes, axis=0)
        easy = len(self.components) < self.lessons  # one entry for each generation so far
        if easy and isinstance(self.world, HasEasy):
            begun = self.world.begin_easily(self.episodes, self.rng)
        else:
            begun = self.world.begin(self.episodes, self.rng)
        alike = {name: np.concatenate([values] * len(candidates)) for name, values in begun.items()}
        steps, _ = self._play(parameters, alike)
        total, components = self.reward(steps)
        self.components.append({name: float(values.mean()) for name, values in components.items()})
        returns = total.reshape(self.world.horizon, n).sum(axis=0)
        scores: FloatArray = returns.reshape(len(candidates), self.episodes).mean(axis=1)
        return scores

    def judged(self, policies: Sequence[FloatArray], episodes: int) -> dict[str, list[float]]:
        """Return the task's metrics of each policy, always in the same episodes."""
        begun = self.world.begin(episodes, np.random.default_rng([*self.judge_seed, episodes]))
        alike = {name: np.concatenate([values] * len(policies)) for name, values in begun.items()}
        _, last = self._play(np.repeat(np.stack(policies), episodes, axis=0), alike)
        found = {"success": self.world.success(last).astype(float), "degree": self.world.degree(last)}
        return {
            name: values.reshape(len(policies), episodes).mean(axis=1).tolist()
            for name, values in found.items()
        }

    def _play(self, parameters: FloatArray, state: Variables) -> tuple[Variables, Variables]:
        """Play episodes side by side; return the variables of each time step, and the last state."""
        steps: list[Variables] = []
        for _ in range(self.world.horizon):
            action = cem.act(parameters, self.world.observe(state))
            state = self.world.step(state, action)
            steps.append({**state, "action": action})
        return {name: np.concatenate([step[name] for step in steps]) for name in steps[0]}, state
