"""Which games of TextArena can be played here: each for 60 random texts.

    python benchmarks/games_of_textarena.py    # needs the extra textarena

A game is played, refused with a message, or fails in its own code, by an error or after :data:`SECONDS`.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from typing import Any

import textarena

import hunch
from hunch.core import HunchError
from told import told

STEPS, SECONDS = 60, 15
TEXTS = ("[0]", "[1 2]", "[up]", "[a1 b2]", "hello there", "[5]", "[call]", "[fold]", "[rock]", "", "[[")


def main() -> None:
    """Try every game that is registered in its first version."""
    signal.signal(signal.SIGALRM, overdue)
    found = Counter[str]()
    for game in sorted(name for name in textarena.envs.registration.ENV_REGISTRY if name.endswith("-v0")):
        signal.alarm(SECONDS)
        kind, why = tried(game)
        signal.alarm(0)
        found[kind] += 1
        print(f"{kind}: {game} {why}".strip())
    print(", ".join(f"{number} {kind}" for kind, number in found.most_common()))


def overdue(*_: Any) -> None:
    """End a game that does not return."""
    raise TimeoutError(f"no answer in {SECONDS} seconds")


def tried(game: str) -> tuple[str, str]:
    """Play one game; return what became of it, and why."""
    chance = random.Random(0)
    try:
        env = hunch.make(f"textarena:{game}")
        env.reset(seed=1)
        for _ in range(STEPS):
            *_, terminated, truncated, _ = env.step(chance.choice(TEXTS))
            if terminated or truncated:
                env.reset()
    except HunchError as error:
        return "refused", str(error)
    except Exception as error:  # a game may raise anything
        return "failed", f"{type(error).__name__}: {error}"
    return "played", ""


if __name__ == "__main__":
    told(__doc__)
    main()
