"""Budgets: limits on the use of language models, checked before each call.

A budget covers all sessions of a run, and all runs of a comparison. A call that would exceed the number of
calls is not made. Tokens, money and seconds are known only after a call, so the last batch may exceed their
limits. A batch has at most 32 requests, 128 samples or embedded texts with a transformers model, and 256 over
a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.usage import Heard, Metered, Usage, prices
from hunch.seal import read_sealed_json, sealed_json


class BudgetError(HunchError):
    """The next call to a model would exceed the budget; it was not made."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on the use of language models, for a run or for all runs of a comparison together."""

    calls: int | None = None
    """Maximum requests that reach a model, including embedded texts; cached answers are free."""
    tokens: int | None = None
    """Maximum tokens read and written, for models that count them."""
    money: float | None = None
    """Maximum cost, in the currency of the models' prices."""
    seconds: float | None = None
    """Maximum seconds spent in the models, including the encoder."""

    def __post_init__(self) -> None:
        for limit in fields(Budget):
            value = getattr(self, limit.name)
            if value is not None and not value >= 0:
                raise UsageError(f"The budget of {limit.name} must be at least 0, not {value}.")

    def __bool__(self) -> bool:
        """Return whether there is any limit."""
        return any(getattr(self, limit.name) is not None for limit in fields(Budget))

    def check(self, usage: Mapping[str, float], requests: int) -> None:
        """Check that the next requests are within the budget.

        Args:
            usage: Usage of the run so far, from :meth:`hunch.lm.Usage.as_dict`.
            requests: Number of requests to be made next.

        Raises:
            BudgetError: if they would exceed a limit, which the message names.
        """
        if self.calls is not None and usage["calls"] + requests > self.calls:
            raise BudgetError(
                f"The budget of {self.calls:,} calls is reached: {usage['calls']:,.0f} were made, and the "
                f"next step needs {requests:,} more."
            )
        spent = {
            "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            "money": usage["cost"],
            "seconds": usage["seconds"],
        }
        for name, amount in spent.items():
            limit = getattr(self, name)
            if limit is not None and amount >= limit:
                raise BudgetError(f"The budget of {limit:,} {name} is reached: {amount:,.6g} spent.")

    def settle(self, usage: Mapping[str, float]) -> None:
        """Record the usage of a run at its end; only a shared budget needs it."""

    def check_prices(self, models: Sequence[object]) -> None:
        """Check that a budget of money can be applied.

        Raises:
            UsageError: if there is one but no model has a price.
        """
        if self.money is not None and not any(any(prices(model)) for model in models):
            names = ", ".join(dict.fromkeys(getattr(model, "name", "?") for model in models))
            raise UsageError(f"A budget of money needs a model with a price, but {names} has none.")


AGAIN = ("fallbacks", "silent")
"""Figures that count answers, not requests: a run that goes on counts from its checkpoint."""


class Ledger:
    """Counts the use of a run's models, over all sessions, and enforces its budget.

    Args:
        models: The models, each with its name; see :meth:`add`.
        budget: Limits for all models together; None for no limit.
        journal: File that records the usage, including requests in progress, so that it survives if the run
            is killed. Without it, requests since the last checkpoint are then not counted.

    Raises:
        HunchError: if the journal cannot be read.
    """

    def __init__(
        self,
        models: Mapping[str, LanguageModel] | Iterable[tuple[str, LanguageModel]],
        budget: Budget | None = None,
        journal: Path | None = None,
    ) -> None:
        self.models: dict[str, list[Any]] = {}
        self.start: dict[int, Usage] = {}
        self.add(models.items() if isinstance(models, Mapping) else models)
        self.budget = budget
        self.earlier: dict[str, dict[str, float]] = {}
        self.journal = journal
        self._noted = _noted(journal)

    def add(self, models: Iterable[tuple[str, Any]]) -> None:
        """Count models from now on, each under a name that others may share.

        A model without a meter is left out, and so is one that is counted already.
        """
        for name, model in models:
            if hasattr(model, "usage") and id(model) not in self.start:
                self.models.setdefault(name, []).append(model)
                self.start[id(model)] = model.usage - getattr(model, "take_loading", Usage)()

    def by_name(self) -> dict[str, dict[str, float]]:
        """Return the numbers of :class:`~hunch.lm.Usage` for each model."""
        return {name: self._read(name) for name in dict.fromkeys([*self.earlier, *self._noted, *self.models])}

    def total(self) -> dict[str, float]:
        """Return the numbers summed over all models."""
        rows = list(self.by_name().values())
        return {figure: round(sum(row[figure] for row in rows), 6) for figure in Usage().as_dict()}

    def _read(self, name: str) -> dict[str, float]:
        earlier = [past.get(name, {}) for past in (self.earlier, self._noted)]
        now = sum((model.usage - self.start[id(model)] for model in self.models.get(name, ())), Usage())
        return {
            figure: round(x + max(past.get(figure, 0) for past in earlier[: 1 if figure in AGAIN else 2]), 6)
            for figure, x in now.as_dict().items()
        }

    def answered(self) -> dict[str, dict[str, Any]]:
        """Return how usable the answers of each model were, for a checkpoint."""
        found: dict[str, dict[str, Any]] = {}
        for name, figures in self.by_name().items():
            rows = [asdict(model.heard) for model in self.models.get(name, ()) if isinstance(model, Metered)]
            found[name] = {"rows": rows, **{figure: figures[figure] for figure in AGAIN}}
        return found

    def resume(
        self, spent: Mapping[str, Mapping[str, float]], answered: Mapping[str, dict[str, Any]]
    ) -> None:
        """Go on from a checkpoint.

        Args:
            spent: What was spent so far, also after the checkpoint.
            answered: The checkpoint's :meth:`answered`: what came after it is asked and counted again.
        """
        for name, figures in spent.items():
            row = dict(answered.get(name, {}))
            for model, heard in zip(self.models.get(name, ()), row.pop("rows", ()), strict=False):
                model.heard = Heard(**heard)
            self.earlier[name] = {**figures, **row}

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Enforce the budget within a ``with`` block; a call that exceeds it raises :class:`BudgetError`."""
        if self.budget is None and self.journal is None:
            yield
            return
        for name, own in self.models.items():
            for model in own:
                model.gate = partial(self._pass, name)
        try:
            yield
        finally:
            for model in chain(*self.models.values()):
                model.gate = None
            self._note({})
            if self.budget is not None:
                self.budget.settle(self.total())

    def _pass(self, name: str, requests: int) -> None:
        """Check requests to a model against the budget, and record them before they are made."""
        # Read first, so that an answer counted in between counts twice rather than not at all.
        under_way = {
            name: sum(getattr(model, "in_flight", 0) for model in own) for name, own in self.models.items()
        }
        if self.budget is not None and requests:
            total = self.total()
            self.budget.check({**total, "calls": total["calls"] + sum(under_way.values())}, requests)
        self._note({**under_way, name: under_way[name] + requests})

    def _note(self, under_way: Mapping[str, int]) -> None:
        if self.journal is not None:
            figures = self.by_name()
            for name, requests in under_way.items():
                figures[name]["calls"] += requests
            part = self.journal.with_name(self.journal.name + ".tmp")
            part.write_bytes(sealed_json(figures))
            os.replace(part, self.journal)


def _noted(journal: Path | None) -> dict[str, dict[str, float]]:
    if journal is None or not journal.exists():
        return {}
    try:
        figures: dict[str, dict[str, float]] = read_sealed_json(journal.read_bytes())
    except (OSError, ValueError) as error:
        raise HunchError(f"The journal of model calls {journal} cannot be read ({error}).") from error
    return figures
