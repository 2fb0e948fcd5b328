"""Environments that take too long, for the tests of served environments."""

import re
import time

from hunch.envs.base import Outcome, TextEnv


class Hanging(TextEnv):
    """The action ``wait`` never ends, ``lock`` holds Python's lock for minutes, and ``fail`` raises."""

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
        return Outcome(f"{len(action)} characters.", None)
