"""The real engine instead of our simulator: TextWorld with ALFWorld's rules (extra ``alfworld``).

It needs Linux or macOS, Python below 3.13 and a C++ compiler to install. It is **not thread-safe**: use
processes. It **evaluates the grammar of a game as Python**: use only files from people you trust.

The engine repeats expensive work. Here the results of two pure functions are cached (translations of problems
and names of commands), and the planner's own translation is skipped. All texts, commands and wins stay the
same.
"""

from __future__ import annotations

import os
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hunch.core import UsageError
from hunch.envs.household.games import Game, house
from hunch.envs.household.generator import Recipe
from hunch.envs.household.problem import contents, load, task_in
from hunch.envs.household.simulator import Simulator
from hunch.extras import install

_TEXTS = ("pddl_domain", "grammar", "pddl_problem")

# Engines that nobody plays on, each with the game that it has loaded, the longest idle first. They are kept
# because loading is slow, and because Python never gets back the 2 MB of one that it drops.
_idle: list[tuple[dict[str, str], Any]] = []
_MOST_IDLE = 32


class TextWorldGame:
    """A running game on the real engine, with the interface of :class:`Simulator`.

    A copy or an unpickled game is a new engine that has replayed the same commands.

    Args:
        game: A recipe, or a file whose grammar will be evaluated.
        commands: Commands to replay.

    Raises:
        UsageError: if the engine is not installed, or cannot play the game.
    """

    def __init__(self, game: Game, commands: Sequence[str] = ()) -> None:
        self.game = game
        new_engine = _engine()
        data = _data(game)
        try:
            self.task = task_in(data["grammar"])
            with _contained():
                self._engine = _loaded(data, new_engine)
                self._state = self._engine.reset()
        # Its translator leaves the program where a problem is malformed.
        except (Exception, SystemExit) as error:
            raise self._failure(error) from None
        weakref.finalize(self, _idle.append, (data, self._engine)).atexit = False
        self._introduction: str = self._state.feedback
        self.played: list[str] = []
        for command in commands:
            self.step(command)

    @property
    def commands(self) -> tuple[str, ...]:
        """The admissible commands, sorted."""
        return tuple(self._state["admissible_commands"])

    @property
    def won(self) -> bool:
        """True if the goal is reached now."""
        return bool(self._state["won"])

    def introduction(self) -> str:
        """Return the first text of the game."""
        return self._introduction

    def step(self, command: str) -> str:
        """Execute a command and return the answer.

        Raises:
            UsageError: if the grammar of the game has no answer.
        """
        try:
            self._state, _, _ = self._engine.step(command)
        except Exception as error:
            raise self._failure(error) from None
        self.played.append(command)
        text: str = self._state.feedback
        return text

    def copy(self) -> TextWorldGame:
        """Return an independent game in the same state."""
        return TextWorldGame(self.game, self.played)

    def simulator(self) -> Simulator:
        """Return our simulator in the same state.

        Raises:
            UnknownGoalError: if the goal is not one of the six known kinds.
        """
        simulator = Simulator(house(self.game))
        for command in self.played:
            simulator.step(command)
        return simulator

    def _failure(self, error: BaseException) -> UsageError:
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 300)
        return UsageError(f"The real engine cannot play {self.game} ({reason}).")

    def __reduce__(self) -> tuple[type[TextWorldGame], tuple[Game, list[str]]]:
        return TextWorldGame, (self.game, self.played)


@cache
def rules() -> tuple[str, str]:
    """Return the PDDL domain and the grammar that ALFWorld ships.

    Raises:
        UsageError: if the engine is not installed.
    """
    _engine()
    from alfworld.info import ALFRED_PDDL_PATH, ALFRED_TWL2_PATH

    return Path(ALFRED_PDDL_PATH).read_text("utf-8"), Path(ALFRED_TWL2_PATH).read_text("utf-8")


def _data(game: Game) -> dict[str, str]:
    if isinstance(game, Recipe):
        domain, grammar = rules()
        return contents(house(game).problem, domain=domain, grammar=grammar)
    return load(game, _TEXTS)


@cache
def _engine() -> Callable[[], Any]:
    """Import the engine; return what makes one."""
    try:
        if sys.version_info >= (3, 13):
            raise ImportError  # it would break at the first text
        with TemporaryDirectory() as folder, _kept(folder):
            import fast_downward  # noqa: F401  TextWorld imports without it
            from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
            from textworld import EnvInfos
            from textworld.envs.pddl import PddlEnv
    except ImportError:
        raise UsageError(
            f"The real engine is not installed: {install('alfworld')}, "
            "with Python 3.11 or 3.12, since the engine does not support Python 3.13."
        ) from None
    infos = EnvInfos(won=True, admissible_commands=True)
    return lambda: AlfredDemangler(PddlEnv(infos), shuffle=False)


def _loaded(data: dict[str, str], new_engine: Callable[[], Any]) -> Any:
    """Return an engine that has a game loaded: an idle one, if there is one with this game."""
    for i, (known, engine) in enumerate(_idle):
        if known == data:
            del _idle[i]
            return engine
    engine = new_engine() if len(_idle) < _MOST_IDLE else _idle.pop(0)[1]
    engine.load(data)
    _remember_commands(engine._logic.grammar)
    return engine


@contextmanager
def _kept(folder: str) -> Iterator[None]:
    """Undo what the import does: it makes a folder, and sets ALFWORLD_DATA if that is not set."""
    given = os.environ.get("ALFWORLD_DATA")
    os.environ.setdefault("ALFWORLD_DATA", folder)
    try:
        yield
    finally:
        if given is None:
            os.environ.pop("ALFWORLD_DATA", None)


@contextmanager
def _contained() -> Iterator[None]:
    """Have translations remembered, and undo what loading does: it overwrites ``sys.argv``."""
    import fast_downward

    arguments, translate = sys.argv, fast_downward.pddl2sas
    fast_downward.pddl2sas = _translation
    try:
        yield
    finally:
        sys.argv, fast_downward.pddl2sas = arguments, translate


def _translation(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
    # With optimize it is for the planner, which is never asked here.
    return _translated(domain, problem)


@lru_cache(maxsize=32)
def _translated(domain: str, problem: str) -> Any:
    from fast_downward.interface import pddl2sas

    return pddl2sas(domain, problem)


def _remember_commands(grammar: Any) -> None:
    derive: Callable[[str, dict[str, Any]], str] = grammar.derive
    known: dict[tuple[Any, ...], str] = {}

    def remembering(start: str, context: dict[str, Any]) -> str:
        if start.startswith("#"):
            return derive(start, context)
        key = (start, tuple((ph.name, var.name) for ph, var in context["mapping"].items()))
        if key not in known:
            known[key] = derive(start, context)
        return known[key]

    grammar.derive = remembering
