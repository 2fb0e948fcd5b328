"""Value functions of games, written as code and chosen by tournament; a part of ``game-models``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch import lm
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.writer.programs import ModelWriter
from hunch_studies.code_world_models import three
from hunch_studies.game_play import RIGHT, both, programs
from hunch_studies.games.coded_game import CodedGame, loaded
from hunch_studies.games.game import Known
from hunch_studies.games.ismcts import ISMCTS
from hunch_studies.games.tabletop.games import GAMES, Name
from hunch_studies.games.value import best, candidates, problem_of, seat, standings
from hunch_studies.study import Scale, kept

WRITER: Final = "scripted:modeller?bugs=0.1&crash=0.1"
PLAYED: tuple[Name, ...] = ("tic-tac-toe", "connect-four", "leduc", "squall")
"""Games for which the scripted writer knows a value function."""
CANDIDATES: Final = 4
SPACING: Final = 1_000
"""Number of draws of the writer between two seeds."""
MATCHES: dict[Name, int] = {"tic-tac-toe": 5, "connect-four": 5, "leduc": 30, "squall": 5}
"""Matches per pair and seat in the tournament; more where luck decides most of a match."""
TRIED: Final = 2
"""Further matches per seat against search without a value function, for each of these."""
SIMULATIONS: Final = 30
"""Simulations per decision; few, because many playouts tell as much as a value function."""
SEEDS: Final = 3
"""Number of tournaments."""
NOTHING: Final = "def value(state, player):\n    return 0.0\n"


def chosen(game: Name, code: str, seed: int) -> dict[str, Any]:
    """Return a seed's candidates, their tournament's winner, and results against search without a value."""
    search = ISMCTS(simulations=SIMULATIONS)
    written = candidates(
        ModelWriter(lm.load(WRITER)), problem_of(GAMES[game].text, code), CANDIDATES, SPACING * seed
    )
    standing = standings(code, written, search, MATCHES[game], seed)
    won = [worth(game, code, value, seed) for value in (NOTHING, *written)]
    return {"winner": best(standing), "standing": standing.tolist(), "won": won}


def worth(game: Name, code: str, value: str, seed: int) -> float:
    """Return the mean result of search with a value against search without one, in the true game."""
    search, true = ISMCTS(simulations=SIMULATIONS), Known(GAMES[game])
    with ExitStack() as stack:
        one, other = (CodedGame(stack.enter_context(loaded(f"{code}\n{text}"))) for text in (value, ""))
        seats = seat(one, search, valued=True), seat(other, search, valued=False)
        return float(np.mean(both(true, *seats, TRIED * MATCHES[game], 1_000 + seed)))


def value_table(games: Sequence[Name], scale: Scale, folder: Path) -> str:
    """Return results of the tournament's winner and of a random candidate against search without a value."""
    head = "game | no value: 0 | a candidate at random | winner of the tournament | winner minus at random"
    lines = [f"| {head} | best of them afterwards | no candidate chosen |", "|---" * 7 + "|"]
    for game in (name for name in games if name in PLAYED):
        codes = programs(game, scale, folder)
        code = next((text for name, text in codes.items() if RIGHT in name), None)
        if code is None:
            lines.append(f"| {game} | no code passes all tests | | | | | |")
            continue
        rows = kept(
            folder / f"{game}.jsonl",
            [(s,) for s in range(min(scale.seeds, SEEDS))],
            partial(chosen, game, code),
        )
        lines.append(f"| {game} | {' | '.join(_cells(rows))} |")
    return (
        f"What search with a value function wins per match of search with random playouts, {SIMULATIONS} "
        f"simulations each.\n\n" + "\n".join(lines)
    )


def _cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    zero = [row["won"][0] for row in rows]
    drawn = [float(np.mean(row["won"][1:])) for row in rows]
    winner = [row["won"][row["winner"]] if row["winner"] else 0.0 for row in rows]
    top = [max(row["won"][1:]) for row in rows]
    ahead = [one - other for one, other in zip(winner, drawn, strict=True)]
    return [
        *(three(over_seeds(values)) for values in (zero, drawn, winner)),
        three(over_pairs(ahead)),
        three(over_seeds(top)),
        f"{sum(row['winner'] == 0 for row in rows)} of {len(rows)}",
    ]
