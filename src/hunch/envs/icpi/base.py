"""Base class of the domains of the ICPI paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.icpi.texts import Texts

S = TypeVar("S")


Step: TypeAlias = tuple[S, float, bool, bool]
"""The result of an action in the domain: next state, reward, end, success."""


class Domain(TextEnv, Generic[S]):
    """A small decision process; states are written as assertions in Python.

    All actions are always admissible. ``info["state"]`` is the state in plain numbers, and
    ``info["optimal"]`` the best return from the start state, discounted by ``texts.log_gamma`` and without
    the limit ``max_steps``. ``reset(options={"state": ...})`` starts from a state in the form of
    ``info["state"]``.

    Args:
        hints: Add a clause that compares the numbers of the state.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or ``"rgb_array"``.

    Attributes:
        wording: The texts for prompts about the domain.
        form: A description of the form of a given start state.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("raw", "wording")
    wording: ClassVar[Texts]
    form: ClassVar[str]
    _state: S

    def __init__(self, *, hints: bool = True, max_steps: int = 8, render_mode: str | None = None) -> None:
        super().__init__(max_steps, render_mode)
        self.hints = hints
        self._actions = tuple(self.wording.actions)

    def _draw(self) -> S:
        """Draw a start state."""
        raise NotImplementedError

    def _read(self, given: Any) -> S | None:
        """Read a start state given by hand; ``None`` if it is not one."""
        raise NotImplementedError

    def _advance(self, action: str) -> Step[S]:
        """Follow the rules for one step from ``self._state``."""
        raise NotImplementedError

    def _text(self) -> str:
        """Put the state into words, with the hint if ``self.hints``."""
        raise NotImplementedError

    def _plain(self) -> Any:
        """The state in numbers, lists and dictionaries."""
        return list(self._state)  # type: ignore[call-overload]

    def _optimum(self) -> float:
        """The best return from ``self._state``."""
        raise NotImplementedError

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        self._state = self._given(options) if options else self._draw()
        self.optimal = self._optimum()
        return Outcome(self._text(), self._actions)

    def _given(self, options: Mapping[str, Any]) -> S:
        name = type(self).__name__
        if unknown := options.keys() - {"state"}:
            raise UsageError(f"{name} has no reset option {unknown.pop()!r}; there is: state.")
        state = self._read(options["state"])
        if state is None:
            raise UsageError(f"A state of {name} must be {self.form}, not {options['state']!r}.")
        return state

    def _move(self, action: str) -> Outcome:
        self._state, reward, done, success = self._advance(action)
        return Outcome(self._text(), self._actions, reward, done, success)

    def _raw(self) -> Any:
        return self._plain()

    def _place(self, raw: Any) -> Outcome:
        self._state = self._given({"state": raw})
        self.optimal = self._optimum()
        return Outcome(self._text(), self._actions)

    def _extras(self) -> dict[str, Any]:
        return {"state": self._plain(), "optimal": self.optimal}

    def _any(self, n: int) -> int:
        """Draw one of 0 to n - 1; four times as fast as ``integers``."""
        return int(self.np_random.random() * n)


def whole(low: int, high: int, *numbers: Any) -> bool:
    """Return whether these are integers (not booleans) from ``low`` to ``high``."""
    return all(type(number) is int and low <= number <= high for number in numbers)


def compare(x: float, y: float) -> str:
    """Return the comparison sign between two numbers: ``<``, ``==`` or ``>``."""
    return "<" if x < y else ">" if x > y else "=="
