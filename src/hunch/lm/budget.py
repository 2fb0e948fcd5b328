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
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from numbers import Real
from pathlib import Path

from hunch.core import HunchError, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.settings import Limits
from hunch.lm.tally import Tally
from hunch.lm.usage import prices
from hunch.seal import read_sealed_json, sealed_json


class BudgetError(HunchError):
    """The next call of a model would exceed the budget; the call was not made."""


@dataclass(frozen=True, kw_only=True)
class Budget(Limits):
    """Limits on the use of language models, for a run or for all runs of a comparison together."""

    def __post_init__(self) -> None:
        for limit in fields(Limits):
            value = getattr(self, limit.name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if value is not None and not is_number:
                raise UsageError(f"The budget of {limit.name} must be a number, not {value!r}.")
            if value is not None and not value >= 0:
                raise UsageError(f"The budget of {limit.name} must be at least 0, not {value}.")

    def check(self, usage: Mapping[str, float], requests: int) -> None:
        """Check that the next requests are within the budget.

        Args:
            usage: Usage of the run so far, from :meth:`hunch.lm.Usage.as_dict`.
            requests: Number of requests to be made next.

        Raises:
            BudgetError: if they would exceed a limit; the message names the limit.
        """
        if self.calls is not None and usage["calls"] + requests > self.calls:
            raise BudgetError(
                f"The budget of {self.calls:,} calls is reached: {usage['calls']:,.0f} were made, and the "
                f"next step needs {requests:,} more."
            )
        for name, amount in _spent(usage).items():
            limit = getattr(self, name)
            if limit is not None and amount >= limit:
                raise BudgetError(f"The budget of {limit:,} {name} is reached: {amount:,.6g} spent.")

    def rest(self, usage: Mapping[str, float]) -> Budget:
        """Return the budget of what comes after this usage; see :meth:`check`."""
        spent = {"calls": usage["calls"], **_spent(usage)}
        limits = {limit.name: getattr(self, limit.name) for limit in fields(Limits)}
        return Budget(
            **{name: max(0, limit - spent[name]) for name, limit in limits.items() if limit is not None}
        )

    def settle(self, usage: Mapping[str, float]) -> None:
        """Record the usage of a run at its end; needed for shared budgets only."""

    def check_prices(self, models: Sequence[object]) -> None:
        """Check that the models have prices if the budget limits money.

        Raises:
            UsageError: if the budget limits money and no model has a price.
        """
        if self.money is not None and not any(any(prices(model)) for model in models):
            names = ", ".join(dict.fromkeys(getattr(model, "name", "?") for model in models))
            raise UsageError(
                f"A budget of money needs a model with a price, but {names} states none: give price_in and "
                "price_out to the spec of a server, or limit --budget.calls, .tokens or .seconds."
            )


def _spent(usage: Mapping[str, float]) -> dict[str, float]:
    """Return what was spent of each limit but calls."""
    return {
        "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        "money": usage["cost"],
        "seconds": usage["seconds"],
    }


class Ledger(Tally):
    """Counts the use of a run's models over all sessions, and enforces the budget.

    Args:
        models: The models, each with its name; see :meth:`Tally.add`.
        budget: Limits for all models together; None for no limit.
        journal: File that records the usage, including requests in progress, so that it is known if the run
            was killed. Without a journal, requests after the last checkpoint are then not counted.

    Raises:
        HunchError: if the journal cannot be read.
    """

    def __init__(
        self,
        models: Mapping[str, LanguageModel] | Iterable[tuple[str, LanguageModel]],
        budget: Budget | None = None,
        journal: Path | None = None,
    ) -> None:
        super().__init__(models)
        self.budget, self.limited = budget, bool(budget)
        self.journal = journal
        self.noted = _noted(journal)

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Enforce the budget in a ``with`` block; a call that would exceed it raises :class:`BudgetError`."""
        if self.budget is None and self.journal is None:
            yield
            return
        for name, models in self.models.items():
            for model in models:
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
            name: sum(getattr(model, "in_flight", 0) for model in models)
            for name, models in self.models.items()
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
