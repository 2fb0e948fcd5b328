"""A run in progress: the agent, its streams and data, and what is logged and saved."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any

from hunch.core import Agent, Episode, Transition
from hunch.lm.tally import Tally
from hunch.rl.dataset import digest
from hunch.rl.faults import Failing
from hunch.rl.rollout import Finished, Rollout, TextEnvironment
from hunch.rl.success import WINDOW
from hunch.rl.world import advance, name_of, world_of
from hunch.runs.boards import Boards
from hunch.runs.checkpoints import contents, keep, settings_identity
from hunch.runs.config import RunConfig
from hunch.runs.environments import shown
from hunch.runs.files import plain, write_atomically
from hunch.runs.first_answers import Listening
from hunch.runs.folder import RunFolder
from hunch.runs.models import Asked
from hunch.runs.result import Episodes, Result, late_success, mean_return, read_episode


@dataclass
class Training:
    """A run in progress.

    Args:
        agent: The agent; its ``begin`` is called here.
        rollout: The streams; None if there are only recorded data.
        env: An environment like those of the streams or of the data, if there is one.
        data: Recorded episodes.
        config: The settings of the run.
        tally: Records the use of the language models.
        folder: Folder of the run; None if it is not kept.
        models: All models of the run.
    """

    agent: Agent
    rollout: Rollout | None
    env: TextEnvironment | None
    data: Sequence[Episode]
    config: RunConfig
    tally: Tally
    folder: RunFolder | None
    models: Asked
    updates: int = 0
    recorded: int = 0
    kept: dict[str, str] = field(default_factory=dict)
    episodes: Episodes = field(default_factory=Episodes)
    evaluations: Episodes = field(default_factory=Episodes)
    boards: Boards | None = None
    pending: list[dict[str, float]] = field(default_factory=list)
    earlier: float = 0.0
    began: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    saving: float = 0.0
    trusted: bool = False
    best: dict[str, Any] | None = None
    flat_shares: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listening = Listening(self.folder.path if self.folder else None)
        self.identity = self._identity()
        with self.failing("begin"):
            world = world_of(self.rollout, self.env, self.config.steps, self.data, self.config.lifetime)
            self.agent.begin(world, self.config.seed)

    @property
    def steps(self) -> int:
        """Environment steps so far; updates if there are no streams."""
        return self.rollout.steps if self.rollout else self.updates

    @property
    def seconds(self) -> float:
        """Wall time of the run in seconds, including earlier sessions."""
        return self.earlier + time.monotonic() - self.began

    # ---- the loop -------------------------------------------------------------------------------------

    def step(self) -> tuple[list[Transition], list[Finished]]:
        """Make one pass of the loop in :mod:`hunch.core`; return its transitions and finished episodes."""
        transitions, ended = list[Transition](), list[Finished]()
        if self.rollout:
            with self.failing("act or observe"):
                transitions = advance(self.rollout, self.agent)
            ended = self.record(self.rollout.take_finished(), self.episodes, evaluation=False)
        else:
            self.updates += 1
        with self.failing("learn"):
            self.pending.append({name: float(value) for name, value in self.agent.learn().items()})
        return transitions, ended

    def remember(self, success: float) -> None:
        """Keep the agent of the best evaluation in memory until the next checkpoint is written."""
        self.best = deepcopy({**self._state(), "step": self.steps, "success": success})

    def _state(self) -> dict[str, Any]:
        return {"agent": self.agent.state_dict(), "identity": self.identity}

    def failing(self, doing: str) -> Failing:
        """Return a context that names the agent in the errors that it raises."""
        return Failing(f"{type(self.agent).__name__} failed to {doing} after {self.steps:,} steps")

    def first_answers(self, *, final: bool = False) -> list[str]:
        """Return in words how models are asked and what they said first, each role once.

        Args:
            final: Whether the session ends, so that a role with fewer answers counts, too.
        """
        return [str(row) for row in self.listening.news(self.models, final=final)]

    # ---- records --------------------------------------------------------------------------------------

    def record(self, finished: Sequence[Finished], kept: Episodes, *, evaluation: bool) -> list[Finished]:
        """Add episodes to those that are kept, and write them; return them as read back."""
        before = len(kept)
        for episode in finished:
            record = {
                "step": self.steps,
                "episode": episode.number,
                "return": episode.episode_return if isfinite(episode.episode_return) else None,
                "length": episode.length,
                "success": episode.success,
                "evaluation": evaluation,
                "seed": episode.seed,
                "actions": list(episode.actions),
            }
            if episode.task_seed is not None:
                record["task_seed"] = episode.task_seed
            kept.append(read_episode(record))
            if self.folder:
                self.folder.append("episodes.jsonl", record)
        return kept[before:]

    def log(self) -> dict[str, Any]:
        """Write one line of metrics: recent success, means of the agent's metrics, usage, seconds."""
        # A run on recorded data plays only the episodes of its evaluations.
        episodes = self.episodes or self.evaluations
        recent = episodes[-WINDOW:]
        line: dict[str, Any] = {"step": self.steps, "episodes": len(episodes)}
        if recent:
            line |= {"success": sum(e.success for e in recent) / len(recent), **mean_return(recent)}
        line |= {**_means(self.pending), "seconds": round(self.seconds, 3)}
        line |= {"usage": self.tally.total(), "models": self.tally.by_name()}
        self.pending.clear()
        self.note_flat(line)
        if self.folder:
            self.folder.append("metrics.jsonl", line)
            self._keep_records()
        if self.boards:
            self.boards.show(line)
        return line

    def note_flat(self, line: Mapping[str, Any]) -> None:
        """Remember the share of flat groups in a line of metrics, if its method compares groups."""
        if "flat_groups" in line:
            self.flat_shares.append((line["step"], line["flat_groups"]))

    def _keep_records(self) -> None:
        """Write the agent's new records, and the files that it keeps."""
        if not self.folder:
            return
        new = self.agent.records()[self.recorded :]
        for record in new:
            self.folder.append(self.agent.records_file, record)
        self.recorded += len(new)
        files = self.agent.files()
        for name, text in files.items():
            if self.kept.get(name) != text:
                write_atomically(self.folder.path / name, text.encode(errors="replace"))
        self.kept = files

    # ---- the disk -------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint, preceded by the agent of the best evaluation if there is a new one.

        After a kill between both, the run resumes before that evaluation, and writes the same agent
        again.
        """
        start = time.monotonic()
        if self.boards:
            self.boards.flush()
        if self.folder:
            self._keep_records()
            self.write_best()
            rollout = self.rollout.state_dict() if self.rollout else None
            state = {"agent": self.agent.state_dict(), "rollout": rollout, "updates": self.updates}
            state["answered"] = self.tally.answered()
            self.folder.save({**state, **self.clock(), "pending": self.pending, "identity": self.identity})
        self.saved = time.monotonic()
        self.saving = self.saved - start

    def keep(self, before: int) -> None:
        """Write a checkpoint that stays if the steps since ``before`` passed a multiple of ``keep_every``."""
        every = self.config.keep_every
        if self.folder and every and self.steps // every > before // every:
            keep(self.folder.path, self.steps, self._state(), self.config.keep_last)

    def write_best(self) -> None:
        """Write the agent of the best evaluation so far, if it is a new one."""
        if self.folder and self.best is not None:
            self.folder.save_best(self.best)
            self.best = None

    def due(self, seconds: float, share: float) -> bool:
        """Return whether a checkpoint is due: saving must take at most this share of the time."""
        since = time.monotonic() - self.saved
        return since > seconds and self.saving <= share * since

    def clock(self) -> dict[str, Any]:
        """Return the time and the model usage of the run so far."""
        return {"seconds": self.seconds, "models": self.tally.by_name()}

    def _identity(self) -> dict[str, Any]:
        """Return what a checkpoint must share with the run that resumes it, as JSON would return it."""
        states = self.rollout.states if self.rollout else []
        envs = self.rollout.fleet.envs if self.rollout else []
        first = [(s.observation, s.task, s.actions, s.history) for s in states]
        identity = {
            **who(self.agent),
            "run": settings_identity(self.config.settings()),
            "seed": self.config.seed,
            "environments": [(name_of(env), shown(env)) for env in envs],
            "task_seed": self.rollout.task_seed if self.rollout else None,
            "beginning": hashlib.sha256(repr(first).encode()).hexdigest()[:16],
            "data": digest(self.data) if self.data else "",
        }
        if self.config.lifetime > 1:
            identity["lifetime"] = self.config.lifetime
        if files := contents(self.config.settings()):
            identity["contents"] = files
        return plain(identity)

    def result(self, stopped: str = "") -> Result:
        """Return the result so far; ``stopped`` says why the run ended early, if it did."""
        return Result(
            steps=self.steps,
            requested=self.config.steps,
            success=late_success(self.episodes, self.evaluations, self.config.steps),
            episodes=self.episodes,
            evaluations=self.evaluations,
            usage=self.tally.total(),
            models=self.tally.by_name(),
            seconds=self.seconds,
            evidence=self.models.evidence,
            stopped=stopped,
            agent=self.agent,
        )


def who(agent: Agent) -> dict[str, Any]:
    """Return the properties of an agent that a checkpoint and the loading agent must share."""
    return {"agent": type(agent).__name__, "settings": dict(agent.settings), "evidence": agent.evidence}


def _means(metrics: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each metric, ignoring nan."""
    names = dict.fromkeys(name for line in metrics for name in line)
    means = {}
    for name in names:
        numbers = [line[name] for line in metrics if name in line and not isnan(line[name])]
        if numbers:
            means[name] = sum(numbers) / len(numbers)
    return means
