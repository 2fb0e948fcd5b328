"""Bulbs: switch all on, where each switch also turns its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any, ClassVar

from hunch.envs.icpi.base import Domain, Step, whole
from hunch.envs.icpi.texts import Texts

Lit = tuple[int, ...]

COUNT = 3
_TURNED = {"tap": (0, 1), "nudge": (0, 1, 2), "knock": (1, 2)}


class BulbsTexts(Texts):
    """The words of the bulbs."""

    actions: ClassVar[Mapping[str, str]] = {name: f"bulbs, reward = {name}()\n" for name in _TURNED}
    reset = "\nbulbs, reward = reset()\n"
    state_start = "assert bulbs == "
    max_rollout_steps = 6


class Bulbs(Domain[Lit]):
    """Switch on three bulbs in a row, with switches that also turn the neighbours.

    ``tap`` turns the first and the second bulb, ``nudge`` all three, ``knock`` the second and the third: each
    goes on if it was off, and off if it was on. The reward of 1 and the end belong to the action *after* all
    are on, whichever it is. Episodes start with any bulbs on. A state is ``[0 or 1, 0 or 1, 0 or 1]``; the
    optimum is 0.8 to the power of the switches needed. It is not a domain of the paper: no model of ours was
    trained with it in view.

    Args:
        hints: Add a clause that compares the state with the goal.
        max_steps: Step limit of an episode; it truncates.
        render_mode: ``"ansi"`` or ``"rgb_array"``: a bulb that is on is ``G``.
    """

    wording = BulbsTexts()
    task = "switch on all three bulbs and act there once more"
    form = "[0 or 1, 0 or 1, 0 or 1]"

    def _draw(self) -> Lit:
        return tuple(map(int, f"{self._any(2**COUNT):0{COUNT}b}"))

    def _read(self, given: Any) -> Lit | None:
        match given:
            case [*numbers] if len(numbers) == COUNT and whole(0, 1, *numbers):
                return tuple(numbers)
        return None

    def _advance(self, action: str) -> Step[Lit]:
        return _advance(self._state, action)

    def _text(self) -> str:
        return _text(self._state, self.hints)

    def _plain(self) -> list[int]:
        return list(self._state)

    def _optimum(self) -> float:
        return float(self.wording.log_gamma ** _distance(self._state))

    def _grid(self) -> list[str]:
        return ["".join("G" if lit else "." for lit in self._state)]


@cache
def _advance(lit: Lit, action: str) -> Step[Lit]:
    there = all(lit)
    turned = tuple(on ^ (i in _TURNED[action]) for i, on in enumerate(lit))
    return turned, float(there), there, there


@cache
def _distance(lit: Lit) -> int:
    """Return the smallest number of switches that turn all on; no switch is needed twice."""
    return min(sum(used) for used in product((0, 1), repeat=len(_TURNED)) if all(_after(lit, used)))


def _after(lit: Lit, used: tuple[int, ...]) -> Lit:
    for name, times in zip(_TURNED, used, strict=True):
        lit = _advance(lit, name)[0] if times else lit
    return lit


@cache
def _text(lit: Lit, hints: bool) -> str:
    hint = f" and bulbs {'==' if all(lit) else '!='} {[1] * COUNT}" if hints else ""
    return f"assert bulbs == {list(lit)}{hint}\n"
