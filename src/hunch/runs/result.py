"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from hunch.core import Agent, EvidenceLevel
from hunch.lm.settings import SILENT
from hunch.rl.rollout import Finished
from hunch.rl.success import Estimate, first_reached, over_episodes

THRESHOLDS = (0.25, 0.5, 0.8)
"""Success rates for which the summary gives the step at which they were first reached."""


@dataclass
class Result:
    """The result of a run.

    Attributes:
        steps: Environment steps done.
        requested: Environment steps requested; more than ``steps`` if the run was stopped.
        success: Success rate of the episodes that ended in the last quarter of the steps.
        episodes: All training episodes.
        evaluations: All evaluation episodes.
        usage: Use of the language models (calls, tokens, seconds), by the names of :class:`hunch.lm.Usage`.
        models: The same numbers for each model, by name.
        seconds: Wall time in seconds.
        evidence: The evidence level of the result; None if no model fills a role.
        stopped: The budget or callback that ended the run early; empty if none did.
        agent: The trained agent; None if the result was read from a folder (see :func:`hunch.load`).
    """

    steps: int
    requested: int
    success: Estimate
    episodes: list[Finished] = field(repr=False)
    evaluations: list[Finished] = field(repr=False)
    usage: dict[str, float]
    models: dict[str, dict[str, float]]
    seconds: float
    evidence: EvidenceLevel | None
    stopped: str = ""
    agent: Agent | None = field(default=None, repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """True if all requested steps were done."""
        return self.steps >= self.requested

    def steps_to(self, threshold: float) -> int | None:
        """Number of steps until 50 episodes and the next 50 had this success rate; None if never.

        See :func:`hunch.rl.success.first_reached`.
        """
        return first_reached(*self.course, threshold)

    @property
    def course(self) -> tuple[list[int], list[bool]]:
        """Last step and success of each episode; of evaluation episodes if the run learnt from data only."""
        episodes = self.episodes or self.evaluations
        return [episode.step for episode in episodes], [episode.success for episode in episodes]

    def summary(self) -> dict[str, Any]:
        """Return the contents of ``summary.json``."""
        return {
            "steps": self.steps,
            "complete": self.complete,
            "stopped": self.stopped,
            "episodes": len(self.episodes),
            "evaluations": len(self.evaluations),
            "success": {"value": self.success.value, "low": self.success.low, "high": self.success.high},
            "steps_to": {str(threshold): self.steps_to(threshold) for threshold in THRESHOLDS},
            "usage": self.usage,
            "models": self.models,
            "seconds": round(self.seconds, 3),
            "steps_per_second": round(self.steps / max(self.seconds, 1e-9), 1),
            "evidence": self.evidence,
        }

    def plot(self) -> Any:
        """Draw success over steps, in training and in evaluations; return a matplotlib figure.

        Raises:
            UsageError: if matplotlib is not installed.
        """
        from hunch.extras import library

        library("matplotlib", "Pictures need matplotlib", "plot")
        from hunch.runs import picture

        return picture.draw(self.episodes, self.evaluations, max(self.requested, self.steps))

    def to_pandas(self) -> Any:
        """Return all episodes as a pandas DataFrame, with a column that marks evaluations.

        Raises:
            UsageError: if pandas is not installed.
        """
        from hunch.runs import tables

        return tables.frame(self.episodes, self.evaluations)

    def _repr_html_(self) -> str:
        from hunch.runs import tables

        return tables.of_summary(self.summary(), self.requested, str(self.success), self.call_name)

    def __str__(self) -> str:
        rate = f"success {self.success}" if isfinite(self.success.value) else "no episode ended"
        n = len(self.episodes or self.evaluations)
        return (
            f"{rate} in the last quarter of {self.requested:,} steps, {n:,} episode{'s' * (n != 1)}; "
            f"{ledger(self.usage, self.call_name)}; {self.seconds:.0f} s; "
            f"evidence level {self.evidence or 'none: no model in a role'}"
        )

    @property
    def call_name(self) -> str:
        """The name of the calls in texts; without a model in a role, only an encoder was called."""
        return "model calls" if self.evidence else "encoder calls"


def ledger(usage: Mapping[str, float], calls: str = "model calls") -> str:
    """Summarise the use of the models in one line; counts other than calls and cache hits only if not 0."""
    words = {"calls": calls, "cache_hits": "cache hits"}
    told = {"prompt_tokens": "tokens read", "completion_tokens": "tokens written", "retries": "retries"}
    told |= {"refusals": "refusals", "shortened": "shortened prompts", "fallbacks": "fallbacks"}
    told |= {"silent": f"of them in series of {SILENT} or more"}
    words |= {name: word for name, word in told.items() if usage.get(name)}
    parts = [f"{int(usage.get(name, 0)):,} {word}" for name, word in words.items()]
    parts.append(f"{usage.get('seconds', 0):.0f} s in models")
    return ", ".join(parts + ([f"cost {usage['cost']:.4f}"] if usage.get("cost") else []))


def late_success(episodes: Sequence[Finished], evaluations: Sequence[Finished], steps: int) -> Estimate:
    """Return the success rate in the last quarter of the steps; of evaluations if there was no training."""
    return over_episodes([episode.success for episode in last_quarter(episodes or evaluations, steps)])


def last_quarter(episodes: Sequence[Finished], steps: int) -> list[Finished]:
    """Return the episodes that ended in the last quarter of ``steps``."""
    return [episode for episode in episodes if episode.step > 0.75 * steps]


def mean_return(episodes: Sequence[Finished]) -> dict[str, float]:
    """Return the mean return, and the share of failed trials, whose return is nan."""
    returns = [e.episode_return for e in episodes if e.episode_return == e.episode_return]
    failed = {"failed": 1 - len(returns) / len(episodes)} if len(returns) < len(episodes) else {}
    return {**({"return": sum(returns) / len(returns)} if returns else {}), **failed}


def read_episode(record: dict[str, Any]) -> Finished:
    """Read an episode from its line in ``episodes.jsonl``."""
    return Finished(
        record["seed"],
        record["step"],
        float("nan") if record["return"] is None else record["return"],
        record["length"],
        record["success"],
        tuple(record["actions"]),
        record["episode"],
        record.get("task_seed"),
    )
