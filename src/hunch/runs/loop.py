"""The one training loop, and the one evaluation loop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym

from hunch.core import Agent, Episode, EvidenceLevel, UsageError
from hunch.lm.usage import TOTAL
from hunch.rl.statistics import Estimate, over_episodes
from hunch.runs.folder import RunFolder
from hunch.runs.rollout import Rollout, TextEnvironment, play_episodes

WINDOW = 50
"""Episodes over which the running success rate is taken."""
THRESHOLDS = (0.25, 0.5, 0.8)
"""Success rates for which the summary tells when they were first reached."""
LINES = 200
"""About how many lines of metrics a run writes."""
CHECKPOINT_SECONDS = 10.0


@dataclass
class Result:
    """What a run came to.

    Attributes:
        steps: Environment steps done.
        asked: Environment steps asked for; more than ``steps`` if the run was stopped.
        success: Success rate of the episodes that ended in the last quarter of the steps.
        episodes: All training episodes.
        evaluations: All evaluation episodes.
        usage: What the language models were asked: calls, cache hits, tokens, seconds.
        seconds: Wall time.
        evidence: What the result may claim about language models.
    """

    steps: int
    asked: int
    success: Estimate
    episodes: list[Episode] = field(repr=False)
    evaluations: list[Episode] = field(repr=False)
    usage: dict[str, float]
    seconds: float
    evidence: EvidenceLevel

    @property
    def complete(self) -> bool:
        """Whether all steps were done."""
        return self.steps >= self.asked

    def steps_to(self, threshold: float) -> int | None:
        """Environment steps after which the last 50 episodes first reached a success rate; None if never."""
        window: deque[bool] = deque(maxlen=WINDOW)
        for episode in self.episodes:
            window.append(episode.success)
            if len(window) == WINDOW and sum(window) >= threshold * WINDOW:
                return episode.step
        return None

    def summary(self) -> dict[str, Any]:
        """The figures, as they stand in ``summary.json``."""
        return {
            "steps": self.steps,
            "complete": self.complete,
            "episodes": len(self.episodes),
            "success": {"value": self.success.value, "low": self.success.low, "high": self.success.high},
            "steps_to": {str(threshold): self.steps_to(threshold) for threshold in THRESHOLDS},
            "usage": self.usage,
            "seconds": round(self.seconds, 3),
            "steps_per_second": round(self.steps / max(self.seconds, 1e-9), 1),
            "evidence": self.evidence,
        }

    def __str__(self) -> str:
        calls, hits = int(self.usage.get("calls", 0)), int(self.usage.get("cache_hits", 0))
        return (
            f"success {self.success} in the last quarter of {self.steps:,} steps, "
            f"{len(self.episodes):,} episodes; {calls:,} model calls, {hits:,} cache hits; "
            f"{self.seconds:.0f} s; evidence level {self.evidence}"
        )


def last_quarter(episodes: Sequence[Episode], steps: int) -> list[Episode]:
    """The episodes that ended in the last quarter of ``steps``."""
    return [episode for episode in episodes if episode.step > 0.75 * steps]


class Meter:
    """What the language models of this process were asked since the run began, earlier sittings included."""

    def __init__(self) -> None:
        self.start = TOTAL.snapshot()
        self.earlier: dict[str, float] = {}

    def read(self) -> dict[str, float]:
        """The figures by name."""
        now = (TOTAL - self.start).as_dict()
        return {name: round(value + self.earlier.get(name, 0), 3) for name, value in now.items()}


@dataclass
class Training:
    """A run in progress: what the loop holds besides agent and environments, and how it reaches the disk."""

    agent: Agent
    rollout: Rollout
    folder: RunFolder | None
    meter: Meter
    episodes: list[Episode] = field(default_factory=list)
    evaluations: list[Episode] = field(default_factory=list)
    pending: list[dict[str, float]] = field(default_factory=list)
    earlier: float = 0.0
    began: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Wall time of the run, earlier sittings included."""
        return self.earlier + time.monotonic() - self.began

    def step(self) -> None:
        """One pass of the loop, as it stands in :mod:`hunch.core`."""
        actions = self.agent.act(self.rollout.states)
        transitions = self.rollout.step(actions)
        self.agent.observe(transitions)
        self.pending.append(self.agent.learn())
        self._record(self.rollout.take_finished(), self.episodes, evaluation=False)

    def evaluate(self, env: TextEnvironment, episodes: int) -> None:
        """Play episodes from which the agent does not learn, and record them."""
        seed = self.rollout.seed + 1_000_003
        played = play_episodes(env, lambda states: self.agent.act(states, explore=False), episodes, seed)
        self._record(played, self.evaluations, evaluation=True)

    def _record(self, finished: Sequence[Episode], kept: list[Episode], *, evaluation: bool) -> None:
        for episode in finished:
            record = {
                "step": self.rollout.steps,
                "return": episode.episode_return,
                "length": episode.length,
                "success": episode.success,
                "evaluation": evaluation,
                "seed": episode.seed,
                "actions": list(episode.actions),
            }
            kept.append(read_episode(record))
            if self.folder:
                self.folder.append("episodes.jsonl", record)

    def log(self) -> dict[str, Any]:
        """Write one line of metrics: running success, means of what the agent reported, usage, seconds."""
        recent = self.episodes[-WINDOW:]
        line: dict[str, Any] = {"step": self.rollout.steps, "episodes": len(self.episodes)}
        if recent:
            line["success"] = sum(e.success for e in recent) / len(recent)
            line["return"] = sum(e.episode_return for e in recent) / len(recent)
        line |= _means(self.pending)
        line |= {"seconds": round(self.seconds, 3), "usage": self.meter.read()}
        self.pending.clear()
        if self.folder:
            self.folder.append("metrics.jsonl", line)
        return line

    def save(self) -> None:
        """Write a checkpoint."""
        if self.folder:
            state = {"agent": self.agent.state_dict(), "rollout": self.rollout.state_dict()}
            self.folder.save({**state, "seconds": self.seconds, "usage": self.meter.read()})
        self.saved = time.monotonic()

    def restore(self) -> None:
        """Take up the last checkpoint, if there is one."""
        state = self.folder.restore() if self.folder else None
        if state is None or self.folder is None:
            return
        self.agent.load_state_dict(state["agent"])
        self.rollout.load_state_dict(state["rollout"])
        self.earlier = state["seconds"]
        for record in self.folder.read_lines("episodes.jsonl"):
            (self.evaluations if record["evaluation"] else self.episodes).append(read_episode(record))
        self.meter.earlier = state["usage"]

    def result(self, asked: int) -> Result:
        """What the run came to so far."""
        quarter = last_quarter(self.episodes, asked)
        return Result(
            steps=self.rollout.steps,
            asked=asked,
            success=over_episodes([episode.success for episode in quarter]),
            episodes=self.episodes,
            evaluations=self.evaluations,
            usage=self.meter.read(),
            seconds=self.seconds,
            evidence=self.agent.evidence,
        )


def read_episode(record: dict[str, Any]) -> Episode:
    """Read an episode from its line in ``episodes.jsonl``."""
    return Episode(
        record["seed"],
        record["step"],
        record["return"],
        record["length"],
        record["success"],
        tuple(record["actions"]),
    )


def _means(metrics: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for line in metrics for name in line)
    values = {name: [line[name] for line in metrics if name in line] for name in names}
    return {name: sum(numbers) / len(numbers) for name, numbers in values.items()}


@dataclass(frozen=True)
class Evaluation:
    """When and on what to evaluate.

    Attributes:
        env: An environment of its own, so that training episodes are not disturbed.
        every: Environment steps between two evaluations.
        episodes: Episodes an evaluation.
    """

    env: TextEnvironment
    every: int
    episodes: int = 20


def train(
    agent: Agent,
    env: TextEnvironment | Sequence[TextEnvironment],
    steps: int,
    *,
    seed: int = 0,
    out: str | Path | RunFolder | None = None,
    evaluation: Evaluation | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
) -> Result:
    """Train an agent: the one loop of the library.

    Args:
        agent: Any :class:`hunch.core.Agent`; it is reset with ``seed`` first.
        env: A text environment, or several to step side by side.
        steps: Environment steps, over all environments.
        seed: Of the agent and of every episode. The same seed gives the same run.
        out: A folder to keep the run in. A folder that holds a checkpoint of it is taken up there.
        evaluation: When and on what to evaluate.
        stop: Asked now and then; once true, the run is saved and ended.
        report: Called with each line of metrics.

    Raises:
        UsageError: if ``steps`` is not positive, or an environment breaks its contract.
        HunchError: if the folder cannot be written, or the checkpoint is damaged.
    """
    if steps < 1:
        raise UsageError(f"A run needs at least one step, not {steps}.")
    envs = [env] if isinstance(env, gym.Env) else list(env)
    folder = RunFolder(out) if isinstance(out, (str, Path)) else out
    try:
        agent.reset(seed)
        training = Training(agent, Rollout(envs, seed), folder, Meter())
        training.restore()
        _loop(training, steps, evaluation, stop, report)
        result = training.result(steps)
        if folder:
            folder.write_json("summary.json", result.summary())
        return result
    finally:
        if folder and folder is not out:
            folder.close()


def _loop(
    training: Training,
    steps: int,
    evaluation: Evaluation | None,
    stop: Callable[[], bool],
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Run to the end or to a stop. Checkpoints fall on log lines, when no metric is half summed."""
    rollout, every = training.rollout, max(1, steps // LINES)
    while rollout.steps < steps:
        before = rollout.steps
        training.step()
        if evaluation and rollout.steps // evaluation.every > before // evaluation.every:
            training.evaluate(evaluation.env, evaluation.episodes)
        if rollout.steps // every > before // every or rollout.steps >= steps:
            report(training.log())
            if stop():
                break
            if time.monotonic() - training.saved > CHECKPOINT_SECONDS:
                training.save()
    training.save()


def evaluate(agent: Agent, env: TextEnvironment, episodes: int = 100, *, seed: int = 0) -> list[Episode]:
    """Play whole episodes with an agent that does not learn from them.

    Args:
        agent: Trained, or not.
        env: A text environment.
        episodes: How many.
        seed: Of every episode.
    """
    return play_episodes(env, lambda states: agent.act(states, explore=False), episodes, seed)
