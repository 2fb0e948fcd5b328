"""The result of a run."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from itertools import groupby
from math import isfinite, isnan, nan
from typing import Any, overload

from hunch.core import Agent, EvidenceLevel, UsageError
from hunch.extras import library
from hunch.lm.settings import SILENT
from hunch.rl.rollout import Finished
from hunch.rl.success import WINDOW, Estimate, first_reached, over_episodes

THRESHOLDS = (0.25, 0.5, 0.8)
"""Success rates for which the summary gives the step at which they were first reached."""


class Episodes(Sequence[Finished]):
    """The finished episodes of a run, oldest first, in columns: 40 bytes and 4 per action for each.

    As objects they would take ten times as much, and a long run would grow by them.

    Args:
        episodes: The first ones.
    """

    def __init__(self, episodes: Iterable[Finished] = ()) -> None:
        self._columns = {
            name: array("I") for name in ("seed", "step", "length", "number", "task_seed", "end")
        }
        self._returns = array("d")
        self._successes = bytearray()
        self._actions = array("I")  # of all episodes, as numbers of their texts
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        for episode in episodes:
            self.append(episode)

    def append(self, episode: Finished) -> None:
        """Add an episode."""
        for action in episode.actions:
            number = self._numbers.setdefault(action, len(self._texts))
            if number == len(self._texts):
                self._texts.append(action)
            self._actions.append(number)
        self._put("end", len(self._actions))
        for name in ("seed", "step", "length", "number"):
            self._put(name, getattr(episode, name))
        self._put("task_seed", 0 if episode.task_seed is None else episode.task_seed + 1)
        self._returns.append(episode.episode_return)
        self._successes.append(episode.success)

    def _put(self, name: str, value: int) -> None:
        try:
            self._columns[name].append(value)
        except OverflowError:  # wider numbers, from here on
            self._columns[name] = array("q", self._columns[name])
            self._columns[name].append(value)

    def __len__(self) -> int:
        return len(self._returns)

    @overload
    def __getitem__(self, index: int) -> Finished: ...

    @overload
    def __getitem__(self, index: slice) -> list[Finished]: ...

    def __getitem__(self, index: int | slice) -> Finished | list[Finished]:
        if isinstance(index, slice):
            return [self._episode(i) for i in range(*index.indices(len(self)))]
        return self._episode(range(len(self))[index])

    def __iter__(self) -> Iterator[Finished]:
        return map(self._episode, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return repr(list(self))

    def _episode(self, i: int) -> Finished:
        columns = self._columns
        ends = columns["end"]
        actions = self._actions[ends[i - 1] if i else 0 : ends[i]]
        return Finished(
            columns["seed"][i],
            columns["step"][i],
            self._returns[i],
            columns["length"][i],
            bool(self._successes[i]),
            tuple(map(self._texts.__getitem__, actions)),
            columns["number"][i],
            columns["task_seed"][i] - 1 if columns["task_seed"][i] else None,
        )


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
    episodes: Sequence[Finished] = field(repr=False)
    evaluations: Sequence[Finished] = field(repr=False)
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

    @property
    def best(self) -> float:
        """Highest return of an episode: in a search for programs, the best one's fitness; nan without any."""
        known = [e.episode_return for e in self.episodes if not isnan(e.episode_return)]
        return max(known, default=nan)

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
        library("matplotlib", "Pictures need matplotlib", "plot")
        return _draw(self.episodes, self.evaluations, max(self.requested, self.steps))

    def to_pandas(self) -> Any:
        """Return all episodes as a pandas DataFrame, with a column that marks evaluations.

        Raises:
            UsageError: if pandas is not installed.
        """
        try:
            import pandas  # type: ignore[import-untyped, unused-ignore]  # an optional package
        except ModuleNotFoundError as error:
            raise UsageError("A DataFrame needs pandas: pip install pandas.") from error
        columns = ["step", "episode", "return", "length", "success", "evaluation", "seed", "actions"]
        rows = [
            (e.step, e.number, e.episode_return, e.length, e.success, is_evaluation, e.seed, e.actions)
            for is_evaluation, episodes in ((False, self.episodes), (True, self.evaluations))
            for e in episodes
        ]
        return pandas.DataFrame(rows, columns=columns)

    def _repr_html_(self) -> str:
        stopped = f": {self.stopped}" if self.stopped else ""
        calls = self.usage.get("calls", 0)
        hits = self.usage.get("cache_hits", 0)
        rows = {
            "success, last quarter of the steps": str(self.success),
            "steps": f"{self.steps:,} of {self.requested:,}",
            "complete": "yes" if self.complete else f"no{stopped}",
            "episodes": f"{len(self.episodes):,}",
            "evaluation episodes": f"{len(self.evaluations):,}",
            self.call_name: f"{calls:,.0f}, and {hits:,.0f} cache hits",
            "wall time": f"{self.seconds:.1f} s",
            "evidence level": self.evidence or "none: no model in a role",
        }
        cells = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows.items())
        return f"<table>{''.join(cells)}</table>"

    def __str__(self) -> str:
        rate = f"success {self.success}" if isfinite(self.success.value) else "no episode ended"
        episodes = self.episodes or self.evaluations
        n = len(episodes)
        late = len(last_quarter(episodes, self.requested))
        return (
            f"{rate} in the last quarter of {self.requested:,} steps "
            f"({late:,} of {n:,} episode{'s' * (n != 1)}); "
            f"{ledger(self.usage, self.call_name)}; {self.seconds:.0f} s; "
            f"evidence level {self.evidence or 'none: no model in a role'}"
        )

    @property
    def call_name(self) -> str:
        """The name of the calls in texts; without a model in a role, only an encoder was called."""
        return "model calls" if self.evidence else "encoder calls"


def ledger(usage: Mapping[str, float], calls: str = "model calls") -> str:
    """Summarise the use of the models in one line; counts other than calls and cache hits only if not 0."""
    words = {
        "prompt_tokens": "tokens read",
        "completion_tokens": "tokens written",
        "retries": "retries",
        "refusals": "refusals",
        "shortened": "shortened prompts",
        "fallbacks": "fallbacks",
        "silent": f"of them in series of {SILENT} or more",
    }
    parts = [f"{int(usage.get('calls', 0)):,} {calls}", f"{int(usage.get('cache_hits', 0)):,} cache hits"]
    parts += [f"{int(usage[name]):,} {word}" for name, word in words.items() if usage.get(name)]
    parts.append(f"{usage.get('seconds', 0):.0f} s in models")
    if usage.get("cost"):
        parts.append(f"cost {usage['cost']:.4f}")
    return ", ".join(parts)


def late_success(episodes: Sequence[Finished], evaluations: Sequence[Finished], steps: int) -> Estimate:
    """Return the success rate in the last quarter of the steps; of evaluations if there was no training."""
    return over_episodes([episode.success for episode in last_quarter(episodes or evaluations, steps)])


def last_quarter(episodes: Sequence[Finished], steps: int) -> list[Finished]:
    """Return the episodes that ended in the last quarter of ``steps``."""
    return [episode for episode in episodes if episode.step > 0.75 * steps]


def mean_return(episodes: Sequence[Finished]) -> dict[str, float]:
    """Return the mean return, and the share of failed trials, whose return is nan."""
    returns = [episode.episode_return for episode in episodes if not isnan(episode.episode_return)]
    means: dict[str, float] = {}
    if returns:
        means["return"] = sum(returns) / len(returns)
    if len(returns) < len(episodes):
        means["failed"] = 1 - len(returns) / len(episodes)
    return means


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


def _draw(episodes: Sequence[Finished], evaluations: Sequence[Finished], steps: int) -> Any:
    """Draw success over steps: a running mean over training episodes, and each evaluation."""
    from matplotlib.figure import Figure  # an optional package

    class Picture(Figure):
        """A figure that a notebook shows even without pyplot."""

        def _repr_png_(self) -> bytes:
            data = BytesIO()
            self.savefig(data, format="png")
            return data.getvalue()

    figure = Picture(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    if episodes:
        recent = [_rate(episodes[max(0, i - WINDOW) : i]) for i in range(1, len(episodes) + 1)]
        axes.plot([e.step for e in episodes], recent, label=f"training, last {WINDOW} episodes")
    if evaluations:
        by_step = {step: list(group) for step, group in groupby(evaluations, key=lambda e: e.step)}
        axes.plot(list(by_step), [_rate(group) for group in by_step.values()], "o-", label="evaluation")
    axes.set(xlabel="steps", ylabel="success", ylim=(-0.02, 1.02), xlim=(0, steps))
    if axes.lines:
        axes.legend(frameon=False)
    return figure


def _rate(episodes: Sequence[Finished]) -> float:
    return sum(episode.success for episode in episodes) / len(episodes)
