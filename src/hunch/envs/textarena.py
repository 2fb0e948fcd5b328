"""Games of TextArena as text environments (extra ``textarena``; tested with textarena 0.7.4)."""

from __future__ import annotations

import ctypes
import io
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np

from hunch.core import HunchError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.invalid import INVALID
from hunch.extras import library
from hunch.ranges import PositiveInt

LONGEST = 8_192
"""Characters of the longest move; the expressions by which twelve games search it take quadratic time."""
SECONDS = 20.0
"""Seconds that a game may take for a move; some loop for ever, such as MarketEntryGame when all are out."""
BROKEN = 3
"""Episodes in a row that a game may fail at the first move, before it counts as broken."""
MOST_PLAYERS = 8
"""Up to which a game is tried if no number is stated."""


class OwnChance:
    """A private state of Python's and NumPy's global random generators, for games that use these."""

    def __init__(self) -> None:
        self.state: tuple[Any, Any] | None = None  # between two calls

    def seed(self, seed: int) -> None:
        """Set the private state from a seed."""
        with self.drawn(seed):
            pass

    @contextmanager
    def drawn(self, seed: int | None = None) -> Iterator[None]:
        """Use the private state within a ``with`` block; with a seed, it begins anew."""
        outside = random.getstate(), np.random.get_state()
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed % 2**32)
        elif self.state is not None:
            random.setstate(self.state[0])
            np.random.set_state(self.state[1])
        try:
            yield
        finally:
            self.state = random.getstate(), np.random.get_state()
            random.setstate(outside[0])
            np.random.set_state(outside[1])


class Overdue(BaseException):
    """A move has taken too long; no ``except Exception`` of a game catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise :class:`Overdue` if a ``with`` block takes longer, in whatever thread it runs."""
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
    lock, is_over = threading.Lock(), threading.Event()

    def interrupt() -> None:
        with lock:
            if not is_over.is_set():
                raise_in_thread(thread, ctypes.py_object(Overdue))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            is_over.set()
            raise_in_thread(thread, None)  # one that has not arrived yet must not arrive later


def _brief(error: Exception) -> str:
    """Return what a library says of an error, on one line: some say it on eight, in a frame of asterisks."""
    lacking = re.search(r"nltk\.download\('(\w+)'\)", str(error))
    if lacking:
        return f"it needs NLTK's data {lacking[1]!r}, which 'python -m nltk.downloader {lacking[1]}' fetches"
    return shorten(str(error).replace("*", ""), 200).rstrip(".")


def _library() -> Any:
    with redirect_stderr(io.StringIO()):  # nltk keeps the stream that it finds at its import
        return library("textarena", "Games of TextArena need textarena", "textarena")


class TextArena(TextEnv):
    """A game of TextArena, for one player or several.

    Any text is an action, which the game judges. A text of more than 8,192 characters, or at which the game
    raises an error, is an invalid move: the game gets an empty one. If it fails at that, too, or takes more
    than 20 seconds, the episode is truncated. Rewards come at the end, one for each
    player; success is a reward above 0, in games of several players that of the first, unless its invalid
    move ends the game. The event says whether the game refused a move. The game draws from Python's and
    NumPy's global generators, which are seeded for it alone, so that the same seed gives the same episode
    unless a game draws elsewhere or asks a model.

    Args:
        game: Id of the game, such as ``TicTacToe-v0``.
        players: Number of players. Default: the smallest with which the game begins, up to eight.
        max_steps: Step limit of an episode, over all players.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such game, or it needs another number of players.
        HunchError: if the game fails at the first move of three episodes in a row.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 0, "reproducible": False}  # type: ignore[misc]
    offers = ("free_text", "events")

    def __init__(
        self,
        game: str,
        *,
        players: PositiveInt | None = None,
        max_steps: PositiveInt = 200,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        arena = _library()
        self.fresh: Callable[[], Any] = partial(arena.make, game)  # a reset may keep some of the last episode
        try:
            # A game that fetches data in vain prints several lines about it, before its error says the same.
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                self.game = self.fresh()
        except (ValueError, ImportError, SyntaxError, LookupError, OSError) as error:  # or has no word list
            raise UsageError(f"TextArena has no game {game!r} here: {_brief(error)}.") from error
        self.name, self.chance = game, OwnChance()
        self.players = self._fitting(players)
        self.metadata = {**self.metadata, "players": self.players}  # type: ignore[misc]
        self.mover, self.paid = 0, [0.0] * self.players
        self.moved = False  # whether the game has judged a move of this episode
        self.failed_at_once = 0  # episodes in a row

    def _fitting(self, players: int | None) -> int:
        """Return the number of players, or the first with which the game begins."""
        problem = ""
        for number in (players,) if players else range(1, MOST_PLAYERS + 1):
            try:
                self.chance.seed(0)
                with self._apart():
                    self.game.reset(num_players=number, seed=0)
                return number
            except (AssertionError, LookupError, OSError, ValueError, TypeError) as error:
                problem = problem or _brief(error)
        stated = players or f"1 to {MOST_PLAYERS}"
        raise UsageError(f"{self.name} cannot be played by {stated} (set players): {problem}.")

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Let the game draw from its own chance; what it prints, as some do at each move, is not shown."""
        with self.chance.drawn(), redirect_stdout(io.StringIO()):
            yield

    # The library's wrappers look for what they lack in their game, and without one, as pickle makes them,
    # for the game in the game, without end. So each goes to worker processes as a class and its attributes.
    def __getstate__(self) -> dict[str, Any]:
        wrapper, game = _library().Wrapper, self.game
        wrappers: list[tuple[type[Any], dict[str, Any]]] = []
        while isinstance(game, wrapper):
            wrappers.append((type(game), {name: it for name, it in vars(game).items() if name != "env"}))
            game = vars(game)["env"]
        return {**vars(self), "game": (wrappers, game)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        wrappers, game = state["game"]
        for kind, attributes in reversed(wrappers):
            wrapped = kind.__new__(kind)
            vars(wrapped).update(attributes, env=game)
            game = wrapped
        vars(self).update(state, game=game)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"TextArena has no reset option {next(iter(options))!r}.")
        seed = int(self.task_random.integers(2**31))
        self.chance.seed(seed)
        with self._apart():
            self.moved = False
            self.game = self.fresh()
            self.game.reset(num_players=self.players, seed=seed)
            begun = self._seen(False)
        if self.task_random is not self.np_random:
            # A fixed task is the same start in each episode; what the game draws later is drawn anew.
            self.chance.seed(int(self.np_random.integers(2**31)))
        return begun

    def _move(self, action: str) -> Outcome:
        mover = self.mover
        with self._apart():
            try:
                with limited(SECONDS):
                    done, unusable = self._judged(action)
                    outcome = self._seen(done)
            except (Exception, Overdue) as error:  # games raise anything
                return self._failed(error)
        self.moved, self.failed_at_once = True, 0
        if unusable or self._refused(mover, done):
            of = f" of player {mover}" if self.players > 1 else ""
            outcome = outcome._replace(event=f"{INVALID}{of}\n{outcome.event}".rstrip())
            if mover == 0:  # some games pay for what came before the invalid move that ended them
                outcome = outcome._replace(success=False)
        return outcome

    def _judged(self, action: str) -> tuple[bool, bool]:
        """Give the game a move: whether it is over, and whether the move could not be judged."""
        if len(action) <= LONGEST:
            try:
                return bool(self.game.step(action=action)[0]), False
            except Exception:  # games raise anything, for instance at a number of 5,000 digits
                pass
        return bool(self.game.step(action="")[0]), True

    def _failed(self, error: BaseException) -> Outcome:
        """Return the end of an episode whose game failed; an error of ours if it always fails at once."""
        late = f"no answer within {SECONDS:g} seconds"
        problem = late if isinstance(error, Overdue) else f"{type(error).__name__}: {error}"
        self.failed_at_once += not self.moved
        if self.failed_at_once >= BROKEN:
            raise HunchError(f"The game {self.name} failed: {problem}.") from error
        self.paid, said = [0.0] * self.players, f"The game failed: {problem}."
        of = f" of player {self.mover}" if self.players > 1 else ""
        event = f"{INVALID}{of}\n{said}"
        return Outcome(said, None, 0.0, terminated=False, truncated=True, event=event)

    def _refused(self, mover: int, done: bool) -> bool:
        """Return whether the game refused the last move; it may ask once more, or end."""
        state = getattr(self.game, "state", None)
        if done:
            game_info = getattr(state, "game_info", None) or {}
            return bool(game_info.get(mover, {}).get("invalid_move", False))
        # A valid move sets the number of errors back to 0.
        return int(getattr(state, "error_count", 0) or 0) > 0

    def _seen(self, done: bool) -> Outcome:
        self.paid, event = [0.0] * self.players, ""
        if done:
            rewards, final_info = self.game.close()
            paid = [(rewards or {}).get(player, 0.0) for player in range(self.players)]
            # some games give the reason of an invalid move in place of its reward
            self.paid = [0.0 if isinstance(reward, str) else float(reward) for reward in paid]
            event = str((final_info or {}).get(self.mover, {}).get("reason", ""))
            observation = event
        else:
            self.mover, observation = self.game.get_observation()
        return Outcome(str(observation), None, self.paid[0], done, done and self.paid[0] > 0, event=event)

    def _extras(self) -> dict[str, Any]:
        return {"player": self.mover, "rewards": self.paid} if self.players > 1 else {}
