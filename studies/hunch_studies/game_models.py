"""Games as code: rules of search at equal calls, and what the code is worth to a player.

hunch study game-models
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hunch
from hunch import lm
from hunch.envs.tabletop.games import GAMES, Name
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.program import best
from hunch.runs.files import read_lines
from hunch_studies.code_world_models import three
from hunch_studies.game_play import SOLVED, equilibrium_table, play_table, speed
from hunch_studies.game_values import value_table
from hunch_studies.study import Part, Scale, Study, kept

CALLS = 30
"""Programs of a run."""
WRITER = "scripted:modeller?bugs=0.1&repair=0.3&break=0.1&crash=0.1"
LINES: dict[str, dict[str, Any]] = {
    "Thompson": {"search": "thompson"},
    "GIF-MCTS": {"search": "tree"},
    "linear refinement": {"search": "linear"},
    "best of n": {"search": "single"},
    "Thompson, feedback of another program": {"search": "thompson", "feedback": "shuffled"},
    "Thompson, no feedback": {"search": "thompson", "feedback": "blind"},
}
CONTROLS_IN: Name = "kuhn"
"""The game in which the controls of the feedback are run."""


def searched(game: Name, seeds: int, calls: int, folder: Path) -> list[dict[str, Any]]:
    """The runs of all lines, kept in ``runs.jsonl``."""
    env = hunch.make("hunch/GameCode-v0", game=game)
    keys = [
        (line, seed)
        for line in LINES
        for seed in range(seeds)
        if game == CONTROLS_IN or "feedback" not in LINES[line]
    ]
    return kept(folder / "runs.jsonl", keys, partial(_searched, env, calls))


def _searched(env: Any, calls: int, line: str, seed: int) -> dict[str, Any]:
    agent = GIFMCTS(lm.load(WRITER), give_up=0, **LINES[line])
    hunch.train(agent, env, steps=calls, seed=seed)
    top = best(agent.attempts)
    return {
        "fitness": top.fitness if top else 0.0,
        "first": agent.attempts[0].fitness or 0.0,
        "solved": next((a.number + 1 for a in agent.attempts if a.fitness == 1.0), None),
        "program": top.program if top else "",
        **(dict(top.components) if top else {}),
    }


def search_table(game: Name, seeds: int, calls: int, folder: Path) -> str:
    """Return the result of each rule, and the lead of the first one."""
    found = searched(game, seeds, calls, folder)
    columns = (
        "arm, tests passed, right held out, legal precision, legal recall, consistent inference, all tests"
    )
    columns += ", calls until then"
    lines = [f"| {' | '.join(columns.split(', '))} |", "|---" * 8 + "|"]
    by = {line: [row for row in found if row["key"][0] == line] for line in LINES}
    lines += [f"| {line} | {_cells(own)} |" for line, own in by.items() if own]
    zero = three(over_seeds([row["first"] for row in by["best of n"]]))
    lines.append(f"| zero-shot, the first of best of n | {zero} | | | | | | 1 |")
    return "\n".join(lines)


def ahead_table(games: Sequence[Name], folder: Path) -> str:
    """Return the lead of each rule over each other, over all games and seeds."""
    rules = [line for line, settings in LINES.items() if "feedback" not in settings]
    rows = {
        game: read_lines(folder.parent / Part(GAMES[game].title, ()).folder / "runs.jsonl") for game in games
    }
    by = {
        line: {(g, r["key"][1]): r["fitness"] for g, own in rows.items() for r in own if r["key"][0] == line}
        for line in rules
    }
    lines = [f"| tests passed, minus those of | {' | '.join(rules[1:])} |", "|---" * len(rules) + "|"]
    for line in rules[:-1]:
        cells = [
            three(over_pairs([by[line][key] - by[other][key] for key in by[line]]))
            if rules.index(other) > rules.index(line)
            else ""
            for other in rules[1:]
        ]
        lines.append(f"| {line} | {' | '.join(cells)} |")
    winners = [row for own in rows.values() for row in own if row["key"][0] in rules]
    return "\n".join([*lines, "", *_by_first(by, rows), "", _wanting(winners)])


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


def _by_first(by: dict[str, dict[Any, float]], rows: dict[Name, list[dict[str, Any]]]) -> list[str]:
    """What each rule came to, by whether the first program, the same for all, passes any test."""
    first = {(g, r["key"][1]): r["first"] for g, own in rows.items() for r in own}
    lines = ["| arm | first program passes none | it passes some |", "|---|---|---|"]
    for line, own in by.items():
        cells = []
        for some in (False, True):
            passed = [share for key, share in own.items() if (first[key] > 0) is some]
            low = sum(share < 0.5 for share in passed)
            cells.append(f"{three(over_pairs(passed))}, {low} of {len(passed)} below half")
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return lines


def deck_table(games: Sequence[Name], seeds: int, calls: int, folder: Path) -> str:
    """What GIF-MCTS finds where only one player's word is known of each match, beside the open deck."""
    columns = "game, deck, tests passed, right held out, legal precision, legal recall, consistent inference"
    columns += ", all tests, calls until then"
    lines = [f"| {' | '.join(columns.split(', '))} |", "|---" * 9 + "|"]
    for game in games:
        env = hunch.make("hunch/GameCode-v0", game=game, deck="closed")
        keys = [("GIF-MCTS", seed) for seed in range(seeds)]
        closed = kept(folder / f"{game}.jsonl", keys, partial(_searched, env, calls))
        rows = read_lines(folder.parent / Part(GAMES[game].title, ()).folder / "runs.jsonl")
        opened = [row for row in rows if tuple(row["key"]) in keys]
        lines += [
            f"| {game} | {deck} | {_cells(own)} |" for deck, own in (("open", opened), ("closed", closed))
        ]
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
    calls = max(4, round(CALLS * scale.share))
    games: tuple[Name, ...] = (CONTROLS_IN,) if scale.smoke else tuple(GAMES)
    solved = tuple(game for game in games if game in SOLVED)
    searches = [
        Part(GAMES[game].title, (), beside=partial(search_table, game, scale.seeds, calls)) for game in games
    ]
    return [
        *searches,
        Part("Rules of search over all games", (), beside=partial(ahead_table, games)),
        Part("Closed deck", (), beside=partial(deck_table, solved, min(scale.seeds, 5), calls)),
        Part("Play", (), beside=partial(play_table, games, scale.share)),
        Part("Value functions", (), beside=partial(value_table, games, min(scale.seeds, 3))),
        Part("Equilibrium", (), beside=partial(equilibrium_table, solved, min(scale.seeds, 5))),
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
