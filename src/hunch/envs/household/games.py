"""Pools of games: generated games, game files, and the games of ALFWorld."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, zip_longest
from pathlib import Path

from hunch.core import UsageError
from hunch.envs.household.generator import Placement, Recipe, Split, generate
from hunch.envs.household.goals import TASK_TYPES, Kind
from hunch.envs.household.house import House
from hunch.envs.household.problem import SUFFIX, read, read_json

Game = Recipe | Path

PER_KIND = 28

OFFICIAL = "official:"
OFFICIAL_SPLITS = ("official:train", "official:valid_seen", "official:valid_unseen")


@lru_cache(maxsize=256)
def house(game: Game) -> House:
    """Return a game prepared for our simulator.

    Environments with the same game share it, including its cached texts.
    """
    return House(generate(game) if isinstance(game, Recipe) else read(game))


def generated(
    kinds: Sequence[Kind], split: Split, placement: Placement, seed: int, games: int | None
) -> tuple[Recipe, ...]:
    """Return a pool of generated games, with the kinds in turn; by default :data:`PER_KIND` per kind."""
    each = range(PER_KIND if games is None else games)
    return tuple(islice((Recipe(kind, split, placement, seed, i) for i in each for kind in kinds), games))


def official(kinds: Sequence[Kind], split: str, games: int | None) -> tuple[Path, ...]:
    """Return the games of ALFWorld in a split, with the kinds in turn, each sorted by path.

    The games are read from ``ALFWORLD_DATA``, else from the default folder of ``alfworld-download``.

    Raises:
        UsageError: if the games are missing, or a file is damaged.
    """
    root = Path(os.environ.get("ALFWORLD_DATA") or "~/.cache/alfworld").expanduser()
    folder = root / "json_2.1.1" / split.removeprefix(OFFICIAL)
    if not folder.is_dir():
        raise UsageError(
            f"There is no folder {folder}: fetch the official games with alfworld-download "
            "(pip install alfworld), or set ALFWORLD_DATA to the folder that holds json_2.1.1."
        )
    kinds_and_files = _official_files(folder, tuple(kinds))
    if not kinds_and_files:
        raise UsageError(f"The folder {folder} holds no solvable game of the kind {' or '.join(kinds)}.")
    hands = [[path for kind, path in kinds_and_files if kind == wanted] for wanted in kinds]
    by_turns = (path for row in zip_longest(*hands) for path in row if path is not None)
    return tuple(islice(by_turns, games))


def files(path: Path, games: int | None) -> tuple[Path, ...]:
    """Return the game file at a path, or the game files in a folder, sorted.

    Raises:
        UsageError: if there is no game file.
    """
    if path.is_file():
        return (path,)
    if not path.exists():
        raise UsageError(f"There is no game file or folder {path}.")
    game_files = tuple(sorted(path.rglob(f"*{SUFFIX}")))
    if not game_files:
        raise UsageError(f"The folder {path} holds no {SUFFIX} file.")
    return game_files[:games]


# The training split has thousands of files, and a batch of environments asks for them all at once.
@lru_cache(maxsize=16)
def _official_files(folder: Path, kinds: tuple[Kind, ...]) -> tuple[tuple[Kind, Path], ...]:
    """The games that ALFWorld's own loader would play, by its rules."""
    kinds_and_files = []
    for description in sorted(folder.rglob("traj_data.json")):
        trial = description.parent
        path = trial / f"game{SUFFIX}"
        # These tasks cannot be solved in the text world.
        if any(word in str(trial.relative_to(folder)) for word in ("movable", "Sliced")):
            continue
        kind = TASK_TYPES.get(str(read_json(description).get("task_type")))
        if kind in kinds and path.exists() and read_json(path).get("solvable") is True:
            kinds_and_files.append((kind, path))
    return tuple(kinds_and_files)
