"""Counts the use of a run's models over all sessions; :mod:`hunch.lm.budget` also limits it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from hunch.lm.base import LanguageModel
from hunch.lm.usage import Metered, Usage

AGAIN = ("fallbacks", "silent")
"""Counts of answers, not of requests: a resumed run continues them from the checkpoint."""


class Tally:
    """Counts the use of a run's models, over all sessions.

    Attributes:
        limited: Whether there are limits, so that a call may be refused.
        earlier: The counts of each model in earlier sessions, from the last checkpoint.
        noted: The counts in the journal of a ledger, which may be newer.

    Args:
        models: The models, each with its name; see :meth:`add`.
    """

    limited: bool = False

    def __init__(self, models: Mapping[str, LanguageModel] | Iterable[tuple[str, LanguageModel]]) -> None:
        self.models: dict[str, list[Any]] = {}
        self.start: dict[int, Usage] = {}
        self.add(models.items() if isinstance(models, Mapping) else models)
        self.earlier: dict[str, dict[str, float]] = {}
        self.noted: dict[str, dict[str, float]] = {}

    def add(self, models: Iterable[tuple[str, Any]]) -> None:
        """Start to count models, each under a name that others may share.

        Models without a meter, or that are already counted, are left out.
        """
        for name, model in models:
            if hasattr(model, "usage") and id(model) not in self.start:
                self.models.setdefault(name, []).append(model)
                self.start[id(model)] = model.usage - getattr(model, "take_loading", Usage)()

    def by_name(self) -> dict[str, dict[str, float]]:
        """Return the numbers of :class:`~hunch.lm.Usage` for each model."""
        return {name: self._read(name) for name in dict.fromkeys([*self.earlier, *self.noted, *self.models])}

    def total(self) -> dict[str, float]:
        """Return the numbers summed over all models."""
        rows = list(self.by_name().values())
        return {figure: round(sum(row[figure] for row in rows), 6) for figure in Usage().as_dict()}

    def _read(self, name: str) -> dict[str, float]:
        earlier = [past.get(name, {}) for past in (self.earlier, self.noted)]
        now = sum((model.usage - self.start[id(model)] for model in self.models.get(name, ())), Usage())
        return {
            figure: round(x + max(past.get(figure, 0) for past in earlier[: 1 if figure in AGAIN else 2]), 6)
            for figure, x in now.as_dict().items()
        }

    def answered(self) -> dict[str, dict[str, Any]]:
        """Return how usable the answers of each model were, for a checkpoint."""
        counts: dict[str, dict[str, Any]] = {}
        for name, figures in self.by_name().items():
            rows = [asdict(model.heard) for model in self.models.get(name, ()) if isinstance(model, Metered)]
            counts[name] = {"rows": rows, **{figure: figures[figure] for figure in AGAIN}}
        return counts

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Do nothing; the subclass with a budget enforces it within the block."""
        yield
