"""TextWorld-Express: small text games in a kitchen, a house, a street, by the engine of their authors.

The engine (Jansen and Côté, "TextWorldExpress: Simulating Text Games at One Million Steps Per Second", EACL
2023) runs in Java. A process of Python starts one process of Java, in which each environment has a game.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any, ClassVar, Final, Literal, get_args

from hunch.core import HunchError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.extras import library
from hunch.ranges import PositiveInt

Game = Literal[
    "cookingworld", "twc", "coin", "mapreader", "arithmetic", "sorting", "simonsays", "peckingorder"
]
Split = Literal["train", "dev", "test"]
FIRST: Final[Mapping[Split, int]] = {"train": 0, "dev": 10_000, "test": 20_000}
"""The first seed of each split."""
SEEDS: Final = 1_000
"""Number of seeds of each split, of each game."""
APART: Final = ("sorting",)
"""Games that get a process of Java each: two with the same seed in one process change each other's score."""


class TextWorldExpress(TextEnv):
    """Play a game of TextWorld-Express, one of eight kinds.

    Admissible are the engine's commands, in alphabetical order. The reward of a step is the growth of the
    game's score, which ends at 1. Success and failure are the game's, and end the episode.
    ``reset(options={"game": n})`` plays the game of seed n of the engine.

    Args:
        game: The game, by the engine's name.
        params: The engine's settings of the game, such as ``"numLocations=5,includeDoors=1"``.
        split: Whose seeds are drawn from, 1,000 each: ``"train"``, ``"dev"`` or ``"test"``.
        max_steps: Step limit of an episode (TALES: 100).
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if the package or Java is missing, or the engine refuses the game's settings.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 8}  # type: ignore[misc]
    offers = ("events",)

    def __init__(
        self,
        *,
        game: Game = "coin",
        params: str = "",
        split: Split = "train",
        max_steps: PositiveInt = 50,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        for name, value, known in (("game", game, get_args(Game)), ("split", split, get_args(Split))):
            if value not in known:
                raise UsageError(f"{name} must be one of {', '.join(known)}, not {value!r}.")
        self.game, self.params, self.split = game, params, split
        self._play = _Play(game, params, split, FIRST[split])
        self._score = 0.0

    def oracle(self) -> tuple[str, ...] | None:
        """Return the rest of the engine's own solution; None once another command was given."""
        solution, given = self._play.solution, self._play.given
        return tuple(solution[len(given) :]) if solution[: len(given)] == given else None

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        unknown = set(options) - {"game"}
        if unknown:
            raise UsageError(f"There is no reset option {unknown.pop()!r}; there is: game.")
        first = FIRST[self.split]
        seed = options.get("game", None)
        if seed is None:
            seed = first + int(self.task_random.integers(SEEDS))
        if seed not in range(first, first + SEEDS):
            raise UsageError(
                f"There is no game {seed!r} in split {self.split}, which has {first} to {first + SEEDS - 1}."
            )
        self._play = _Play(self.game, self.params, self.split, int(seed))
        self.task = self._play.task
        self._score = 0.0
        return self._outcome(self._play.seen)

    def _move(self, action: str) -> Outcome:
        return self._outcome(self._play.step(action))

    def _outcome(self, seen: Mapping[str, Any]) -> Outcome:
        score = float(seen["score"])
        gained, self._score = score - self._score, score
        won = bool(seen["tasksuccess"])
        ended = won or bool(seen["taskfailure"])
        text = str(seen["observation"]).strip()
        commands = tuple(sorted(set(seen["validActions"])))  # the engine names some twice
        return Outcome(text, commands, gained, terminated=ended, success=won, event=text)

    def _extras(self) -> dict[str, Any]:
        return {"score": self._score, "game": self._play.seed}


class _Play:
    """A game of the engine; a copy plays the same commands again.

    Attributes:
        seen: What the engine said last.
        given: The commands so far.
        solution: The engine's solution from the start; it may end before its last command.
    """

    def __init__(
        self,
        game: str,
        params: str,
        split: Split,
        seed: int,
        given: tuple[str, ...] = (),
        solution: tuple[str, ...] = (),
    ) -> None:
        self.settings = (game, params, split)
        self.seed = seed
        self.given: tuple[str, ...] = ()
        if game in APART:
            java = _started()
            weakref.finalize(self, _end, java, os.getpid())
        else:
            with _STARTING:
                java = _java(os.getpid())
        self.engine = _asked(lambda: java.jvm.textworldexpress.runtime.PythonInterface())
        refused = _asked(self.engine.load, game, params)
        if refused:
            raise UsageError(f"TextWorld-Express refuses {game!r} with the settings {params!r}: {refused}")
        self.seen = json.loads(_asked(self.engine.generateNewGameJSON, seed, split, True))
        self.task = " ".join(str(_asked(self.engine.getTaskDescription)).split())
        # It differs from copy to copy in games where one has to search.
        self.solution = solution or tuple(_asked(self.engine.getGoldActionSequence))
        for command in given:
            self.step(command)

    def step(self, command: str) -> dict[str, Any]:
        """Give a command, and return what the engine says."""
        self.seen = json.loads(_asked(self.engine.stepJSON, command))
        self.given = (*self.given, command)
        return self.seen  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies, in this process or another, by playing again: a game in Java cannot be copied."""
        return type(self), (*self.settings, self.seed, self.given, self.solution)


def _asked(question: Callable[..., Any], *about: Any) -> Any:
    """Return what the engine answers.

    Raises:
        HunchError: if its process ended.
    """
    from py4j.protocol import Py4JNetworkError  # it is there once an engine is

    try:
        return question(*about)
    except Py4JNetworkError as error:
        _java.cache_clear()  # the next game starts another
        raise HunchError("TextWorld-Express's process of Java ended: repeat the command.") from error


_STARTING: Final = Lock()
"""Held while a process of Java may be started: threads share one."""


@cache
def _java(process: int) -> Any:
    """Return the process of Java of a process of Python, which is started when it is first needed."""
    return _started()


def _started() -> Any:
    """Start a process of Java, and return the connection to it.

    Raises:
        UsageError: if the package or Java is missing.
    """
    sentence = "hunch/TextWorldExpress-v0 needs the package textworld-express"
    constants = library("textworld_express.constants", sentence, "express")
    if shutil.which("java") is None:
        raise UsageError(
            "TextWorld-Express runs in Java, and there is no 'java' here: install one, on Debian by "
            "'apt-get install default-jre-headless'."
        )
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    _leave_to_the_parent()
    # It would log a traceback for each object that is forgotten after the process of Java ended.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    port, token, java = launch_gateway(
        classpath=constants.JAR_PATH,
        die_on_exit=True,  # also if this process is killed
        create_new_process_group=True,  # Ctrl-C is for the run, which saves and may need another step
        enable_auth=True,  # or other users of the machine could give it commands
        cwd=constants.BASEPATH,
        return_proc=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token)
    return JavaGateway(gateway_parameters=parameters, java_process=java)


@cache
def _leave_to_the_parent() -> None:
    """Let a fork that forgets its copy of a game not end that of the process that it is a fork of."""
    from py4j.finalizer import ThreadSafeFinalizer

    os.register_at_fork(after_in_child=ThreadSafeFinalizer.finalizers.clear)


def _end(java: Any, process: int) -> None:
    """End a process of Java, if the process of Python that started it asks, and not a fork of it."""
    if os.getpid() != process:
        return
    with suppress(OSError):
        java.shutdown()
    java.java_process.kill()
    java.java_process.wait()
