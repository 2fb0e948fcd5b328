"""Budgets: how much a run may ask of its language models, checked before each call.

A budget is over all sittings of a run, and over all runs of a comparison. A call that would exceed the number
of calls is not made; tokens, money and seconds are known after a call only, so the last batch of at most 32
requests may exceed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.lm.usage import prices


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


_checks: ContextVar[list[Callable[[int], None]]] = ContextVar("checks", default=[])  # noqa: B039


def check_apart() -> None:
    """Let this thread have budgets of its own, of which there are none yet."""
    _checks.set([])


@contextmanager
def within(budget: Budget | None, usage: Callable[[], Mapping[str, float]]) -> Iterator[None]:
    """Hold all models of this process, or of this one of its runs, to a budget.

    Args:
        budget: The budget; None for no limit.
        usage: Tells what was asked so far.
    """
    if budget is None:
        yield
        return
    check: Callable[[int], Any] = lambda requests: budget.check(usage(), requests)  # noqa: E731
    checks = _checks.get()
    checks.append(check)
    try:
        yield
    finally:
        checks.remove(check)
        budget.settle(usage())


def allow(requests: int) -> None:
    """Called before so many requests reach a model.

    Raises:
        BudgetError: if they are not within the budget.
    """
    for check in _checks.get():
        check(requests)
