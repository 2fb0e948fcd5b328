"""Point-mass: come to rest near the origin."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.envs.icpi.base import Domain, Step
from hunch.envs.icpi.texts import Texts

Motion = tuple[float, float]

NEAR, FAR = 2, 6
_PUSHES = {"decel": -1.0, "accel": 1.0}
_RIM = 8
# 0.8 to the power of more than this is 0 in double precision.
_LONGEST = 3400


class PointMassTexts(Texts):
    """The words of point-mass."""

    actions: ClassVar[Mapping[str, str]] = {name: f"pos, vel = {name}(pos, vel)\n" for name in _PUSHES}
    reset = "\npos, vel = reset()\n"
    state_start = "assert pos == "
    clauses = 2
    policy_end = ""
    max_rollout_steps = 8


class PointMass(Domain[Motion]):
    """Bring a mass on a line to rest within 2 of the origin.

    A step adds the velocity to the position, then 1 (``accel``) or -1 (``decel``) to the velocity. The
    reward of 1 and the end belong to the action *after* the mass is at rest there: any action then earns
    it, and is still carried out. Episodes start at rest, 2 to 6 from the origin on either side.

    The text rounds to two decimals, ``info["state"]`` does not: ``[position, velocity]``. The optimum is 0.8
    to the power of the fewest steps to rest near the origin, 2 or 4 from drawn starts; from a state given by
    hand it may be more than ``max_steps`` allow, and it is 0 if the velocity is not a whole number and so
    never gets to 0.

    Args:
        hints: Add clauses that say on which side the mass is, and whether it is at rest.
        max_steps: Step limit of an episode; it truncates.
        render_mode: ``"ansi"`` or ``"rgb_array"``: positions -8 to 8, rounded; the mass is ``@``, and stays
            on the rim when it is farther away.
    """

    wording = PointMassTexts()
    task = "come to rest between positions -2 and 2"
    form = "[position, velocity], both finite numbers"

    def _draw(self) -> Motion:
        u = 2 * self.np_random.random() - 1
        return math.copysign(NEAR + (FAR - NEAR) * abs(u), u), 0.0

    def _read(self, given: Any) -> Motion | None:
        match given:
            case [position, velocity] if _is_number(position) and _is_number(velocity):
                return float(position), float(velocity)
        return None

    def _advance(self, action: str) -> Step[Motion]:
        position, velocity = self._state
        rests = abs(position) <= NEAR and velocity == 0
        return (position + velocity, velocity + _PUSHES[action]), float(rests), rests, rests

    def _text(self) -> str:
        position, velocity = self._state
        text = f"assert pos == {position:.2f} and vel == {velocity:.2f}"
        if not self.hints:
            return f"{text}\n"
        return f"{text} and {_side(position)} and vel {'!=' if velocity else '=='} 0\n"

    def _plain(self) -> list[float]:
        return list(self._state)

    def _optimum(self) -> float:
        steps = _steps_to_rest(*self._state)
        return 0.0 if steps is None else float(self.wording.log_gamma**steps)

    def _grid(self) -> list[str]:
        places = ["G" if abs(x) <= NEAR else "." for x in range(-_RIM, _RIM + 1)]
        places[round(min(max(self._state[0], -_RIM), _RIM)) + _RIM] = "@"
        return ["".join(places)]


def _is_number(given: Any) -> bool:
    return type(given) in (int, float) and abs(given) <= sys.float_info.max


def _side(position: float) -> str:
    if position < -NEAR:
        return "pos < -2"
    return "2 < pos" if position > NEAR else "-2 <= pos <= 2"


def _steps_to_rest(position: float, velocity: float) -> int | None:
    """The fewest steps to rest near the origin; ``None`` if there are none, or too many to matter."""
    if not velocity.is_integer():
        return None
    # n pushes, u of them forward, bring the mass to rest if 2u - n = -velocity. A push with i steps to come
    # after the next shifts the end by i, so that the forward ones shift it by any sum of u out of 0 to n - 1.
    for n in range(int(min(abs(velocity), _LONGEST)), _LONGEST, 2):
        u = (n - int(velocity)) // 2
        lowest = n * int(velocity) - n * (n - 1) // 2 + u * (u - 1)
        to_spare = min(max(round((-position - lowest) / 2), 0), u * (n - u))
        if abs(position + (lowest + 2 * to_spare)) <= NEAR:
            return n
    return None
