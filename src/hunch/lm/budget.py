"""Budgets: how much a run may ask of its language models, checked before each call.

A budget is over all sittings of a run, and over all runs of a comparison. A call that would exceed the number
of calls is not made; tokens, money and seconds are known after a call only, so the last batch may exceed
them: at most 32 requests, 128 samples or embedded texts of a model of transformers, 256 over a network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.usage import Usage, prices


class BudgetError(HunchError):
    """The next call to a model is not within the budget; nothing was asked."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much a run, or all runs of a comparison together, may ask of language models."""

    calls: int | None = None
    """Most requests that reach a model, embedded texts included; answers from the cache are free."""
    tokens: int | None = None
    """Most tokens, read and written, of the models that count them."""
    money: float | None = None
    """Most money, in the currency of the models' prices."""
    seconds: float | None = None
    """Most seconds inside the models, those of the encoder included."""

    def __post_init__(self) -> None:
        for limit in fields(Budget):
            value = getattr(self, limit.name)
            if value is not None and not value >= 0:
                raise UsageError(f"A budget of {limit.name} must not be negative, not {value}.")

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return any(getattr(self, limit.name) is not None for limit in fields(Budget))

    def check(self, usage: Mapping[str, float], requests: int) -> None:
        """See that so many more requests are within the budget.

        Args:
            usage: What the run asked so far, as :meth:`hunch.lm.Usage.as_dict` gives it.
            requests: How many are to be asked next.

        Raises:
            BudgetError: if they are not, naming the limit.
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
                raise BudgetError(f"The budget of {limit:,} {name} is reached: {amount:,.6g} were spent.")

    def settle(self, usage: Mapping[str, float]) -> None:
        """Take note of what a run asked when it ends."""

    def check_prices(self, models: Sequence[object]) -> None:
        """See that a budget of money means something.

        Raises:
            UsageError: if there is one, and none of the models has a price.
        """
        if self.money is not None and not any(any(prices(model)) for model in models):
            names = ", ".join(dict.fromkeys(getattr(model, "name", "?") for model in models))
            raise UsageError(f"A budget of money needs a model with a price, and none is stated for {names}.")


SPENT = ("calls", "prompt_tokens", "completion_tokens", "cost", "seconds")


@dataclass(frozen=True, kw_only=True)
class SharedBudget(Budget):
    """A budget that several processes spend together.

    Attributes:
        spent: What each has spent, in memory that they share: one row of ``SPENT`` after the other.
        row: Which is one's own.
    """

    spent: MutableSequence[float]
    row: int

    def check(self, usage: Mapping[str, float], requests: int) -> None:
        """Put down what this process asked and is about to ask, and check the sum over all.

        See :class:`Budget`.
        """
        self.settle({**usage, "calls": usage["calls"] + requests})
        rows = list(self.spent[:])
        total = {name: sum(rows[i :: len(SPENT)]) for i, name in enumerate(SPENT)}
        super().check({**total, "calls": total["calls"] - requests}, requests)

    def settle(self, usage: Mapping[str, float]) -> None:
        """Put down what this process asked, in its row."""
        start = self.row * len(SPENT)
        self.spent[start : start + len(SPENT)] = [float(usage[name]) for name in SPENT]

    def check_prices(self, models: Sequence[object]) -> None:
        """Nothing: whoever shares out the budget sees all models."""


class Ledger:
    """What the models of a run were asked, by name and in sum, earlier sittings included; held to a budget.

    Args:
        models: The models by name. One that stands under two names is counted under the first.
        budget: How much they may be asked together; None for no limit.
        journal: A file that holds what is asked, requests under way included, for the next sitting of a run
            that is killed; without one its requests since the last checkpoint are not counted.

    Raises:
        HunchError: if the journal cannot be read.
    """

    def __init__(
        self,
        models: Mapping[str, LanguageModel],
        budget: Budget | None = None,
        journal: Path | None = None,
    ) -> None:
        distinct = {
            id(model): name for name, model in reversed(list(models.items())) if hasattr(model, "usage")
        }
        self.models: dict[str, Any] = {name: models[name] for name in models if name in distinct.values()}
        self.budget = budget
        self.start = {name: model.usage - model.take_loading() for name, model in self.models.items()}
        self.earlier: dict[str, dict[str, float]] = {}
        self.journal = journal
        self._noted = _noted(journal)

    def by_name(self) -> dict[str, dict[str, float]]:
        """The figures of :class:`~hunch.lm.Usage` of each model."""
        return {name: self._read(name) for name in dict.fromkeys([*self.earlier, *self._noted, *self.models])}

    def total(self) -> dict[str, float]:
        """The figures of all models in sum."""
        rows = list(self.by_name().values())
        return {figure: round(sum(row[figure] for row in rows), 6) for figure in Usage().as_dict()}

    def _read(self, name: str) -> dict[str, float]:
        earlier = [past.get(name, {}) for past in (self.earlier, self._noted)]
        now = self.models[name].usage - self.start[name] if name in self.models else Usage()
        return {
            figure: round(x + max(past.get(figure, 0) for past in earlier), 6)
            for figure, x in now.as_dict().items()
        }

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Hold the models to the budget for a while: what exceeds it raises :class:`BudgetError`."""
        if self.budget is None and self.journal is None:
            yield
            return
        for name, model in self.models.items():
            model.gate = partial(self._pass, name)
        try:
            yield
        finally:
            for model in self.models.values():
                model.gate = None
            self._note({})
            if self.budget is not None:
                self.budget.settle(self.total())

    def _pass(self, name: str, requests: int) -> None:
        """Let requests through to a model, if the budget allows, and note them before they are made."""
        # What is under way is read first: an answer that is counted meanwhile rather counts twice than not.
        under_way = {name: model.under_way for name, model in self.models.items()}
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
            part.write_text(json.dumps(figures))
            os.replace(part, self.journal)


def _noted(journal: Path | None) -> dict[str, dict[str, float]]:
    if journal is None or not journal.exists():
        return {}
    try:
        figures: dict[str, dict[str, float]] = json.loads(journal.read_text())
    except (OSError, ValueError) as error:
        raise HunchError(f"The journal of what was asked, {journal}, cannot be read ({error}).") from error
    return figures
