"""Environments that take too long, for the tests of served environments."""

import re
import time

from hunch.envs.base import Outcome, TextEnv

ODD = {"half": "a \ud800 b", "number": 42}


class MuteError(Exception):
    """An error without a text."""

    def __str__(self):
        raise RuntimeError


class Hanging(TextEnv):
    """The action ``wait`` never ends, ``lock`` holds Python's lock for minutes, and ``fail`` raises.

    ``interrupt`` raises what is no ``Exception``, ``mute`` an error without text, ``long`` a long one.
    ``half`` shows half of a character, and ``number`` no text.
    """

    offers = ("free_text",)

    def __init__(self, max_steps: int = 10) -> None:
        super().__init__(max_steps)

    def _begin(self, options):
        return Outcome("Begin.", None)

    def _move(self, action):
        if action == "wait":
            time.sleep(10_000)
        if action == "lock":
            re.match(r"(a+)+$", "a" * 60 + "b")
        if action == "fail":
            raise ZeroDivisionError("by zero")
        if action == "interrupt":
            raise KeyboardInterrupt
        if action == "mute":
            raise MuteError
        if action == "long":
            raise ValueError("x" * 100_000)
        if action in ODD:
            return Outcome(ODD[action], None)
        return Outcome(f"{len(action)} characters.", None)
