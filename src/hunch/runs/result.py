"""What a run came to."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hunch.core import Episode, EvidenceLevel
from hunch.rl.statistics import Estimate

WINDOW = 50
"""Episodes over which the running success rate is taken."""
THRESHOLDS = (0.25, 0.5, 0.8)
"""Success rates for which the summary tells when they were first reached."""


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
