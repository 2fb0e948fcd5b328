"""Value functions of game positions as code: a model writes candidates, and a tournament selects one.

A search uses the value function instead of random play. The candidates play against each other and against a
search without a value function, in the game's code, so the true game is not needed. Source: Lehrach et al.,
"Code World Models for General Game Playing", 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from hunch.core import FloatArray
from hunch.envs.design.problem import Problem
from hunch.roles.writer.programs import Writer
from hunch.sandbox import ProgramError
from hunch_studies.games.coded_game import CodedGame, loaded
from hunch_studies.games.inference import Filtering
from hunch_studies.games.ismcts import ISMCTS, Searching
from hunch_studies.games.matches import tournament


def problem_of(text: str, code: str) -> Problem:
    """Return the problem that candidates solve.

    Args:
        text: The rules in words.
        code: The rules as code; a candidate may call their functions.
    """
    return Problem(
        f"Write what a position of this game is worth to a player: {text}",
        "Interface:\n"
        "- state: as the functions below have it; a player is to move.\n"
        "- player: 0 or 1.\n"
        "- Returns a float: what the player will win on average, in the units of `returns`. A search asks it "
        "in the place of playing on at random, so that it has to be fast.",
        source=code,
        function="value",
        parameters=("state", "player"),
    )


def candidates(writer: Writer, problem: Problem, n: int, first: int = 0) -> list[str]:
    """Let a writer write n value functions; those that cannot be run are left out.

    Args:
        writer: The writer.
        problem: The problem, from :func:`problem_of`.
        n: Number of programs.
        first: Number of the first program; each number is a separate draw.
    """
    written = [p for p in writer.write(problem, (), "", n, first) if p and not problem.flaw(p)]
    return [program for program in written if _runs(f"{problem.source}\n{program}")]


def _runs(code: str) -> bool:
    try:
        loaded(code).close()
    except ProgramError:
        return False
    return True


def seat(game: CodedGame, search: ISMCTS, *, valued: bool) -> Searching:
    """Return a player that searches in the code, with or without its value function."""
    return Searching(game, Filtering(game), replace(search, value=game.values if valued else None))


def standings(code: str, values: Sequence[str], search: ISMCTS, n: int, seed: int) -> FloatArray:
    """Return each candidate's mean win per match against the others, shape (1 + candidates,).

    The first entry is a search without a value function.

    Args:
        code: The game's rules as code.
        values: The candidates.
        search: The search that all of them use.
        n: Matches per pair and seat.
        seed: Seed of the matches.

    Raises:
        HunchError: if the code fails in a position.
    """
    with ExitStack() as stack:
        games = [CodedGame(stack.enter_context(loaded(f"{code}\n{value}"))) for value in ("", *values)]
        seats = [seat(game, search, valued=i > 0) for i, game in enumerate(games)]
        won = tournament(games[0], seats, n, seed)
    mean: FloatArray = won.sum(axis=1) / max(len(values), 1)
    return mean


def best(standing: FloatArray) -> int:
    """Return the winner of a tournament; 0 for no value function, which also wins ties."""
    return int(np.argmax(standing))
