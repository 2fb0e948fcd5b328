"""Games as code: rules of search at equal calls, and what the code is worth to a player.

hunch study game-models
python -m hunch_studies.game_models docs/assets/studies/game-models.json    # leads in recorded rows
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch_studies.code_world_models import three
from hunch_studies.game_play import SOLVED, equilibrium_table, play_table, speed
from hunch_studies.game_search import CONTROLS_IN, LINES, arm, arms, winner, winners
from hunch_studies.game_values import value_table
from hunch_studies.games.tabletop.games import GAMES, Name
from hunch_studies.study import Part, Scale, Study, runs_of

FEWER = 5
"""Seeds of the closed deck and of the equilibria."""
RULES = [line for line, settings in LINES.items() if "feedback" not in settings]
"""Rules of search; the first is compared with the others."""


def search_table(game: Name, scale: Scale, folder: Path) -> str:
    """Return the result of each rule."""
    by = winners(game, scale, folder)
    columns = (
        "arm, tests passed, right held out, legal precision, legal recall, consistent inference, all tests"
    )
    columns += ", calls until then"
    lines = [f"| {' | '.join(columns.split(', '))} |", "|---" * 8 + "|"]
    lines += [f"| {line} | {_cells(own)} |" for line, own in by.items()]
    zero = three(over_seeds([row["first"] for row in by["best of n"]]))
    lines.append(f"| zero-shot, the first of best of n | {zero} | | | | | | 1 |")
    if game == CONTROLS_IN:
        lines += [
            "",
            without_feedback({line: [row["held_out_exact"] for row in own] for line, own in by.items()}),
        ]
    return "\n".join(lines)


def ahead_table(games: Sequence[Name], scale: Scale, folder: Path) -> str:
    """Return the lead of each rule over each other, over all games and seeds."""
    rows = {game: winners(game, scale, folder) for game in games}
    by = {
        line: {(g, seed): r["fitness"] for g, own in rows.items() for seed, r in enumerate(own[line])}
        for line in RULES
    }
    lines = [f"| tests passed, minus those of | {' | '.join(RULES[1:])} |", "|---" * len(RULES) + "|"]
    for line in RULES[:-1]:
        cells = [
            three(over_pairs([by[line][key] - by[other][key] for key in by[line]]))
            if RULES.index(other) > RULES.index(line)
            else ""
            for other in RULES[1:]
        ]
        lines.append(f"| {line} | {' | '.join(cells)} |")
    every = [row for own in rows.values() for line in RULES for row in own[line]]
    first = {(g, seed): r["first"] for g, own in rows.items() for seed, r in enumerate(own[RULES[0]])}
    fitness = {
        game: {line: [r["fitness"] for r in own[line]] for line in RULES} for game, own in rows.items()
    }
    return "\n".join([*lines, "", over_games(fitness), "", *_by_first(by, first), "", _wanting(every)])


def over_games(fitness: Mapping[Name, Mapping[str, Sequence[float]]]) -> str:
    """Return the lead of Thompson over each other rule with the games as units.

    The table over pairs of game and seed holds for these games; this one is about games.

    Args:
        fitness: Share of tests passed by game, rule and seed.
    """
    leads = []
    for other in RULES[1:]:
        of_game = [float(np.mean(by[RULES[0]]) - np.mean(by[other])) for by in fitness.values()]
        leads.append(f"{other} {three(over_pairs(of_game))}")
    return f"{RULES[0]}, tests passed, over {len(fitness)} games: minus {', minus '.join(leads)}."


def without_feedback(right: Mapping[str, Sequence[float]]) -> str:
    """Return the lead of Thompson over its controls, and over best of n, which sees no feedback either.

    Args:
        right: Share of held-out positions that are right by rule and seed, in the game of the controls.
    """
    others = [line for line in right if line == RULES[-1] or "feedback" in LINES[line]]
    leads = [
        f"{other} {three(over_pairs(np.subtract(right[RULES[0]], right[other]).tolist()))}"
        for other in others
    ]
    return f"{RULES[0]}, right held out, {CONTROLS_IN}: minus {', minus '.join(leads)}."


def _wanting(winners: Sequence[dict[str, Any]]) -> str:
    """Where winners that fail a test are right all the same, and where those that pass all are not."""
    failed = [row for row in winners if row["fitness"] < 1.0]
    passed = [row for row in winners if row["fitness"] == 1.0]
    legal = sum(row.get("legal_precision") == row.get("legal_recall") == 1.0 for row in failed)
    right = sum(row.get("held_out_exact") == 1.0 for row in failed)
    wrong = sum(row["held_out_exact"] < 1.0 for row in passed)
    return (
        f"Of {len(failed)} winners that fail a test, {legal} have all held-out legal moves right, and "
        f"{right} are right on held-out positions in everything except inference. Of {len(passed)} "
        f"that pass all tests, {wrong} are not right on held-out positions."
    )


def _by_first(by: dict[str, dict[Any, float]], first: dict[Any, float]) -> list[str]:
    """What each rule came to, by whether the first program, the same for all, passes any test."""
    lines = ["| arm | first program passes none | it passes some |", "|---|---|---|"]
    for line, own in by.items():
        cells = []
        for some in (False, True):
            passed = [share for key, share in own.items() if (first[key] > 0) is some]
            low = sum(share < 0.5 for share in passed)
            cells.append(f"{three(over_pairs(passed))}, {low} of {len(passed)} below half")
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return lines


def closed(games: Sequence[Name], scale: Scale) -> tuple[Arm, ...]:
    """Return GIF-MCTS in games of which only one player's word is known of each match."""
    return tuple(arm(game, game, scale, "GIF-MCTS", deck="closed") for game in games)


def deck_table(games: Sequence[Name], scale: Scale, seeds: int, folder: Path) -> str:
    """Return what GIF-MCTS finds with a closed deck, beside the open deck."""
    columns = "game, deck, tests passed, right held out, legal precision, legal recall, consistent inference"
    columns += ", all tests, calls until then"
    lines = [f"| {' | '.join(columns.split(', '))} |", "|---" * 9 + "|"]
    for game, hidden in zip(games, closed(games, scale), strict=True):
        decks = {
            "open": winners(game, scale, folder)["GIF-MCTS"][:seeds],
            "closed": [winner(run) for run in runs_of(hidden, seeds, folder)],
        }
        lines += [f"| {game} | {deck} | {_cells(own)} |" for deck, own in decks.items()]
    return "\n".join(lines)


def _cells(rows: Sequence[dict[str, Any]]) -> str:
    solved = sorted(row["solved"] or np.inf for row in rows)
    half = solved[(len(solved) - 1) // 2]
    names = "fitness", "held_out_exact", "legal_precision", "legal_recall", "consistent"
    return " | ".join(
        [
            *(three(over_seeds([row.get(name, 0.0) for row in rows])) for name in names),
            f"{sum(row['solved'] is not None for row in rows)} of {len(rows)}",
            "not in half of the runs" if half == np.inf else f"{half:.0f} in the median",
        ]
    )


def _parts(scale: Scale, data: Path) -> list[Part]:
    games: tuple[Name, ...] = (CONTROLS_IN,) if scale.smoke else tuple(GAMES)
    solved = tuple(game for game in games if game in SOLVED)
    searches = [
        Part(GAMES[game].title, arms(game, scale), beside=partial(search_table, game, scale))
        for game in games
    ]
    fewer = min(scale.seeds, FEWER)
    hidden = partial(deck_table, solved, scale, fewer)
    return [
        *searches,
        Part("Rules of search over all games", (), beside=partial(ahead_table, games, scale)),
        Part("Closed deck", closed(solved, scale), beside=hidden, most=FEWER, apart=True),
        Part("Play", (), beside=partial(play_table, games, scale)),
        Part("Value functions", (), beside=partial(value_table, games, scale)),
        Part("Equilibrium", (), beside=partial(equilibrium_table, solved, scale, fewer)),
        Part("Speed", (), beside=lambda folder: speed(games)),
    ]


STUDIES = {
    "game-models": Study(
        "game-models",
        "Does search find the rules of a game as code, and is play with the code as good as play with the "
        "true rules?",
        "On ten games of two players, four of them new, play with code that a model wrote beats or ties "
        "with Gemini 2.5 Pro as the player in nine; gin rummy with a closed deck is the exception (Lehrach "
        "et al., Code World Models for General Game Playing, 2025).",
        "The writer is a script (L0) that knows the rules and plants errors. There are five small games, one "
        "of them ours. Play is search with random rollouts, except where value functions are compared.",
        _parts,
        seeds=10,
    )
}


def main() -> None:
    """Print leads in recorded rows."""
    parser = argparse.ArgumentParser(description="Leads of the rules of search.")
    parser.add_argument("rows", type=Path)
    recorded = json.loads(parser.parse_args().rows.read_text(encoding="utf-8"))

    def of_rule(game: Name, figure: str) -> dict[str, list[float]]:
        rows = sorted(recorded[GAMES[game].title.lower().replace(" ", "-")], key=lambda row: row["key"][1])
        by: dict[str, list[float]] = {}
        for row in rows:
            by.setdefault(row["key"][0], []).append(row.get(figure, 0.0))  # no program passed a test
        return by

    print(over_games({game: of_rule(game, "fitness") for game in GAMES}))
    print(without_feedback(of_rule(CONTROLS_IN, "held_out_exact")))


if __name__ == "__main__":
    main()
