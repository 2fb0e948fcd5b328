"""A game as code: runs the functions of its rules in a sandbox, and gives a search its positions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from hunch.envs.design.code import quoted
from hunch.envs.design.program_model import Patient, state_or_none
from hunch.envs.design.running import box
from hunch.lm.scoring.recent import Recent
from hunch.numbers import number
from hunch.sandbox import Program
from hunch.sandbox.errors import printable
from hunch_studies.games.game import CHANCE, END, PLAYERS, Look, Memory, Position, View
from hunch_studies.games.inference import same

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "apply_action": ("state", "action"),
    "initial_state": (),
    "current_player": ("state",),
    "legal_actions": ("state",),
    "chance_outcomes": ("state",),
    "observation": ("state", "player"),
    "returns": ("state",),
    "resample_history": ("player", "memory", "seed"),
}
"""The functions that the code of a game defines, with their parameters."""
_DRIVER = """

def _look(state):
    player = current_player(state)
    actions, chances, won = [], [], (0.0, 0.0)
    if player == -1:
        outcomes = list(chance_outcomes(state))
        actions, chances = [one for one, _ in outcomes], [share for _, share in outcomes]
    elif player == -4:
        won = returns(state)
    else:
        actions = list(legal_actions(state))
    return player, actions, chances, (observation(state, 0), observation(state, 1)), won


def _raised(error):
    line, trace = 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == _asked.__code__.co_filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return {"error": "%s: %s" % (type(error).__name__, str(error)[:500]), "line": line}


def _asked(what, *more):
    looks = []
    try:
        if what == "resample":
            return resample_history(*more)
        if what == "value":
            return value(*more, 0), value(*more, 1)
        state = apply_action(*more) if what == "follow" else initial_state()
        looks.append(_look(state))
        if what != "replay":
            return state, looks[0]
        for action in more[0]:
            state = apply_action(state, action)
            looks.append(_look(state))
    except Exception as error:
        looks.append(_raised(error))
    return looks
"""
"""Appended to a game's code, so that one call returns everything about a state."""
MOST_BYTES = 2**28
"""Maximum size of the positions that are remembered."""
LARGEST = 2**18
"""Maximum size in bytes of a state with all that the code says about it; a larger one is a failure."""
MOST = 100_000
"""Maximum number of positions whose worth is remembered."""
TOGETHER = 32
"""Histories per request, so that a slow inference does not exceed the time limit of a request."""


def loaded(source: str, *, fresh: bool = False) -> Program:
    """The code of a game in the sandbox.

    It is called as ("begin",), ("follow", state, action), ("replay", history), ("resample", player, memory,
    seed), or, if it has a function ``value(state, player)``, as ("value", state).

    Raises:
        ProgramError: if it cannot be run.
    """
    return box().load(source + _DRIVER, "_asked", state="fresh" if fresh else "kept")


def read_look(value: Any) -> Look | None:
    """Return what code says about a state; None if its form is wrong."""
    if not isinstance(value, tuple | list) or len(value) != 5:
        return None
    player, actions, chances, seen, won = value
    shares, ends = _numbers(chances), _numbers(won, 2)
    fits = type(player) is int and player in (*PLAYERS, CHANCE, END) and isinstance(seen, tuple | list)
    fits = fits and _texts(actions) and len(set(actions)) == len(actions)
    shown = [state_or_none(one) for one in seen] if fits else []
    if len(shown) != 2 or None in shown or shares is None or ends is None:
        return None
    if min(shares, default=0.0) < 0 or not isfinite(sum(shares)):
        return None
    return Look(player, tuple(actions), shares, (shown[0], shown[1]), (ends[0], ends[1]))


@dataclass(frozen=True)
class Raised:
    """An exception of a program, instead of its result."""

    text: str

    def __repr__(self) -> str:
        return self.text


def raised(value: Any, source: str) -> Raised | None:
    """Return the exception in the place of a value, with its line of the source; None if there is none."""
    if not isinstance(value, dict) or value.keys() != {"error", "line"}:  # without a table of its keys
        return None
    line = value["line"]
    what = printable(str(value["error"]))  # the program may have written anything there
    return Raised(f"{what}{quoted(source, line if type(line) is int else None)}")


def _texts(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(type(item) is str for item in value)


def _numbers(value: Any, n: int | None = None) -> tuple[float, ...] | None:
    """Return a list as numbers; None if it is not one, or not of n numbers."""
    found = [number(item) for item in value] if isinstance(value, tuple | list) else [None]
    known = tuple(item for item in found if item is not None)
    return known if len(known) == len(found) and n in (None, len(known)) else None


def read_history(value: Any, memory: Memory) -> tuple[str, ...] | None:
    """Return a history that code inferred; None if it is not a history, or not as long as the memory."""
    return tuple(value) if _texts(value) and len(value) == len(memory) - 1 else None


class CodedGame:
    """A :class:`~hunch_studies.games.game.Game` defined by code, including the code's own inference.

    A position is None if the code fails, returns a value of the wrong form or one that is too large, or gives
    the player to move no action. The positions used last are remembered.

    Args:
        program: See :func:`loaded`.

    Attributes:
        drawn: Number of histories drawn by its inference.
        inconsistent: Number of these that contradict the memory, according to the code itself.
    """

    def __init__(self, program: Program) -> None:
        self.program = Patient(program)
        self.known: Recent[Position | None] = Recent(MOST_BYTES)
        self.worth: dict[tuple[str, ...], tuple[float, float] | None] = {}
        self.drawn = self.inconsistent = 0

    def begin(self) -> Position | None:
        """The first position."""
        if () not in self.known:
            (answer,) = self.program.map([("begin",)])
            read = _read(answer)
            self._remember((), Position.first(*read) if read else None)
        return self.known.find(())

    def follow(self, positions: Sequence[Position], actions: Sequence[str]) -> list[Position | None]:
        """Return the positions after moves; new ones are requested in one batch."""
        moves = {
            (*position.history, action): (position, action)
            for position, action in zip(positions, actions, strict=True)
        }
        found = {history: self.known.find(history) for history in moves if history in self.known}
        new = {history: move for history, move in moves.items() if history not in found}
        answers = self.program.map([("follow", p.state, action) for p, action in new.values()])
        for (history, (position, action)), answer in zip(new.items(), answers, strict=True):
            read = _read(answer)
            found[history] = position.after(action, *read) if read else None
            self._remember(history, found[history])
        return [found[*position.history, action] for position, action in zip(positions, actions, strict=True)]

    def _remember(self, history: tuple[str, ...], position: Position | None) -> None:
        held = size((position.look, position.state)) if position else 0
        self.known.put(history, position, held + size(history))

    def resample(self, views: Sequence[View], n: int) -> list[list[Position]]:
        """Request n histories per view, and keep the positions of those that agree with its memory."""
        asked = [
            (i, ("resample", view.player, view.memory, int(seed)))
            for i, view in enumerate(views)
            for seed in view.rng.integers(2**31, size=n)
        ]
        calls = [call for _, call in asked]
        answers = [
            answer
            for i in range(0, len(calls), TOGETHER)
            for answer in self.program.map(calls[i : i + TOGETHER])
        ]
        histories = [
            read_history(answer, views[i].memory) for (i, _), answer in zip(asked, answers, strict=True)
        ]
        found: list[list[Position]] = [[] for _ in views]
        for (i, _), position in zip(asked, self.at(histories), strict=True):
            view = views[i]
            if position is not None and same(position.memories[view.player], view.memory):
                found[i].append(position)
        self.drawn += len(asked)
        self.inconsistent += len(asked) - sum(map(len, found))
        return found

    def values(self, positions: Sequence[Position]) -> list[tuple[float, float] | None]:
        """Return both players' expected returns, by the code's ``value``; None if it fails in a position."""
        if len(self.worth) > MOST:
            self.worth.clear()
        new = {p.history: ("value", p.state) for p in positions if p.history not in self.worth}
        for history, answer in zip(new, self.program.map(list(new.values())), strict=True):
            worth = _numbers(answer, 2)
            self.worth[history] = (worth[0], worth[1]) if worth else None
        return [self.worth[position.history] for position in positions]

    def at(self, histories: Sequence[tuple[str, ...] | None]) -> list[Position | None]:
        """Return the positions of histories; None for one that cannot be played."""
        first = self.begin()
        here: list[Position | None] = [None if history is None else first for history in histories]
        for move in range(max((len(history) for history in histories if history), default=0)):
            going = [
                (i, position, history[move])
                for i, (position, history) in enumerate(zip(here, histories, strict=True))
                if position is not None and history is not None and move < len(history)
            ]
            for i, position, action in going:
                if action not in position.look.actions:
                    here[i] = None
            going = [(i, p, action) for i, p, action in going if here[i] is not None]
            moved = self.follow([p for _, p, _ in going], [action for _, _, action in going])
            for (i, _, _), after in zip(going, moved, strict=True):
                here[i] = after
        return here


def size(value: Any) -> int:
    """Return the size of a plain value in bytes, with all that it holds."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    parts = chain(*value.items()) if isinstance(value, dict) else value
    held = sum(map(size, parts)) if isinstance(value, dict | list | tuple | set) else 0
    return sys.getsizeof(value) + held


def _read(answer: Any) -> tuple[Any, Look] | None:
    """Return a state and what the code says about it, if play can continue from it."""
    if not isinstance(answer, tuple | list) or len(answer) != 2 or (look := read_look(answer[1])) is None:
        return None
    if size(answer) > LARGEST:
        return None
    stuck = look.player != END and not look.actions
    uneven = look.player == CHANCE and not (len(look.chances) == len(look.actions) and sum(look.chances) > 0)
    return None if stuck or uneven else (answer[0], look)
