"""Mini-invaders: shoot two aliens before one of them lands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

from hunch.envs.icpi.base import Domain, Step, compare, whole
from hunch.envs.icpi.texts import Texts

WIDTH, HEIGHT, ALIENS = 4, 6, 2
_MOVES = {"left": -1, "shoot": 0, "right": 1}
_COLUMNS = tuple(permutations(range(WIDTH), 1 + ALIENS))

Alien = tuple[int, int] | None
"""Column and row of an alien, ``None`` once it is shot."""


class Invasion(NamedTuple):
    """Where the ship, on row 0, and the aliens are."""

    ship: int
    aliens: tuple[Alien, ...]


class MiniInvadersTexts(Texts):
    """The words of mini-invaders."""

    actions: ClassVar[Mapping[str, str]] = {
        "left": "ship.left()\n",
        "shoot": "reward = ship.shoot(aliens)\n",
        "right": "ship.right()\n",
    }
    reset = "\nship, aliens = reset()\n"
    state_start = "assert ship == C("
    clauses = 2
    reward_end = "for a in aliens:\n    a.descend()\n"
    policy_reward_form = int
    policy_done = True
    policy_end = "\n"
    reward_stop = "()\n"
    log_gamma = 1.0
    max_rollout_steps = 8
    success_threshold = 1.0


class MiniInvaders(Domain[Invasion]):
    """Shoot two descending aliens before one of them has landed, on 4 columns.

    A step, in this order: ``shoot`` kills every alien in the ship's column, at any height, for a reward of 1
    each; the episode ends if an alien that is left is on row 0; the aliens go down by one row; the episode
    ends if none is left; ``left`` and ``right`` move the ship within 0 to 3. So an alien on row 0 can still
    be shot, and one that has landed is on row -1 of the last state.

    Episodes start with the ship and the aliens in three different columns, the aliens on row 5, and take at
    most 6 steps. Success is that no alien is left. A state is ``{"ship": column, "aliens": [[column, row],
    None]}`` with ``None`` for an alien that is shot; the optimum is how many can be shot from there, 2 from
    every drawn start.

    Args:
        hints: Add clauses that repeat the columns and compare the ship's with every living alien's.
        max_steps: Step limit of an episode; every episode ends within 6 steps anyway.
        render_mode: ``"ansi"`` or ``"rgb_array"``: the ship is ``@``, an alien ``w``; the ship hides an
            alien beside it, and one that has landed is not drawn.
    """

    wording = MiniInvadersTexts()
    task = "shoot both aliens before one of them lands"
    form = "{'ship': 0 to 3, 'aliens': two of [0 to 3, 0 to 5] or None}"

    def __init__(
        self, *, hints: bool = True, max_steps: int = HEIGHT, render_mode: str | None = None
    ) -> None:
        super().__init__(hints=hints, max_steps=max_steps, render_mode=render_mode)

    def _draw(self) -> Invasion:
        ship, *columns = _COLUMNS[self._any(len(_COLUMNS))]
        return Invasion(ship, tuple((x, HEIGHT - 1) for x in columns))

    def _read(self, given: Any) -> Invasion | None:
        match given:
            case {"ship": ship, "aliens": [first, second], **others} if not others:
                if whole(0, WIDTH - 1, ship) and _is_alien(first) and _is_alien(second):
                    return Invasion(ship, tuple(alien and tuple(alien) for alien in (first, second)))
        return None

    def _advance(self, action: str) -> Step[Invasion]:
        return _advance(self._state, action)

    def _text(self) -> str:
        return _text(self._state, self.hints)

    def _plain(self) -> dict[str, Any]:
        ship, aliens = self._state
        return {"ship": ship, "aliens": [alien and list(alien) for alien in aliens]}

    def _optimum(self) -> float:
        return _optimum(self._state)

    def _grid(self) -> list[str]:
        marks = {alien: "w" for alien in self._state.aliens if alien} | {(self._state.ship, 0): "@"}
        return ["".join(marks.get((x, y), ".") for x in range(WIDTH)) for y in reversed(range(HEIGHT))]


def _is_alien(given: Any) -> bool:
    match given:
        case None:
            return True
        case [x, y]:
            return whole(0, WIDTH - 1, x) and whole(0, HEIGHT - 1, y)
    return False


@cache
def _advance(state: Invasion, action: str) -> Step[Invasion]:
    ship, aliens = state
    left = tuple(None if alien and action == "shoot" and alien[0] == ship else alien for alien in aliens)
    landed = any(alien and alien[1] == 0 for alien in left)
    lower = tuple(alien and (alien[0], alien[1] - 1) for alien in left)
    won = not any(left)
    shot = left.count(None) - aliens.count(None)
    moved = Invasion(min(max(ship + _MOVES[action], 0), WIDTH - 1), lower)
    return moved, float(shot), landed or won, won


@cache
def _optimum(state: Invasion) -> float:
    steps = [_advance(state, action) for action in _MOVES]
    return max(reward + (0.0 if done else _optimum(state)) for state, reward, done, _ in steps)


@cache
def _text(state: Invasion, hints: bool) -> str:
    ship, aliens = state
    listed = ", ".join(f"C({alien[0]}, {alien[1]})" if alien else "None" for alien in aliens)
    clauses = [f"assert ship == C({ship}, 0)", f"aliens == [{listed}]"]
    if hints:
        columns = {f"aliens[{i}].x": alien[0] for i, alien in enumerate(aliens) if alien}
        values = ", ".join(map(str, [ship, *columns.values()]))
        clauses += [f"({', '.join(['ship.x', *columns])}) == ({values})"]
        clauses += [f"ship.x {compare(ship, x)} {name}" for name, x in columns.items()]
    return " and ".join(clauses) + "\n"
