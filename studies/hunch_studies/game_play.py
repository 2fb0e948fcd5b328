"""The value of game code for a player: matches, equilibria, and speed; parts of ``game-models``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import hunch
from hunch.core import HunchError
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch_studies.code_world_models import three
from hunch_studies.game_search import winners
from hunch_studies.games.cfr import Policy, Tree, exploitability, solve, tree_of
from hunch_studies.games.coded_game import CodedGame, loaded
from hunch_studies.games.game import Known, View
from hunch_studies.games.inference import Filtering
from hunch_studies.games.ismcts import ISMCTS, Searching
from hunch_studies.games.matches import AtRandom, Seat, matches
from hunch_studies.games.tabletop.games import GAMES, Name
from hunch_studies.lines import draw_lines
from hunch_studies.rules.game_code import GAME_CODE
from hunch_studies.study import Scale, kept

MATCHES: dict[Name, int] = {"tic-tac-toe": 40, "connect-four": 8, "kuhn": 200, "leduc": 100, "squall": 60}
"""Matches per line, half of them in each seat."""
SIMULATIONS = 100
"""Number of simulations of the search in matches."""
RIGHT = "passes all tests"
"""In the label of code without failed tests; only in such code is a search's own policy measured."""
FILTERED = ", inference by going through all that may have happened"
"""Appended to the labels of code whose own inference fails."""
SOLVED: tuple[Name, ...] = ("kuhn", "leduc", "squall")
"""Games small enough to be enumerated."""
DEEPER: dict[Name, tuple[int, ...]] = {
    "kuhn": (10, 30, 100, 300, 1_000),
    "leduc": (10, 30, 100),
    "squall": (10,),
}
"""Numbers of simulations with which the search's own policy is measured."""


def programs(game: Name, scale: Scale, folder: Path) -> dict[str, str]:
    """Return winners of Thompson sampling and best of n: the first without failed tests, and the worst."""
    by = winners(game, scale, folder)
    return distinct_labels([*by["Thompson"], *by["best of n"]])


def distinct_labels(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the first program without failed tests and the one that fails most, each with a label."""
    rows = [row for row in rows if row["program"]]
    found: dict[str, str] = {}
    if right := [row for row in rows if row["fitness"] == 1.0]:
        found[f"code that {RIGHT} ({right[0]['held_out_exact']:.2f} right held out)"] = right[0]["program"]
    low = min((row for row in rows if row["fitness"] < 1.0), key=lambda row: row["fitness"], default=None)
    if low:
        told = f"{low['fitness']:.2f} of the tests, {low['held_out_exact']:.2f} right held out"
        found[f"code of {told}"] = low["program"]
    return found


def play_table(games: Sequence[Name], scale: Scale, folder: Path) -> str:
    """Return results of search in the code, with its inference, against the truth and random play."""
    lines = ["| game | who plays | against random | against search in the truth |", "|---" * 4 + "|"]
    for game in games:
        n = max(2, round(MATCHES[game] * scale.share / 2))
        path, codes = folder / f"{game}.jsonl", programs(game, scale, folder)
        play = partial(_played, game, n, codes)
        rows = kept(path, [(line,) for line in ("random", "the truth", *codes)], play)
        blind = [row["key"][0] for row in rows if row["lost"] > 0.5 and row["key"][0] in codes]
        rows += kept(path, [(f"{line}{FILTERED}",) for line in blind], play)
        for row in rows:
            cells = [three(over_pairs(row[against])) for against in ("random", "truth")]
            lost = f", {row['lost']:.0%} of its moves at random" if row["lost"] else ""
            lines.append(f"| {game} | {_who(row['key'][0])}{lost} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _who(line: str) -> str:
    return line if line == "random" else f"search in {line}"


def _played(game: Name, n: int, codes: dict[str, str], line: str) -> dict[str, Any]:
    """Return the results of a line, match by match, in both seats."""
    true, search = Known(GAMES[game]), ISMCTS(simulations=SIMULATIONS)
    with ExitStack() as stack:
        seat: Seat = AtRandom()
        if line == "the truth":
            seat = Searching(true, Filtering(true), search)
        elif (name := line.removesuffix(FILTERED)) in codes:
            coded = CodedGame(stack.enter_context(loaded(codes[name])))
            seat = Searching(coded, coded if name == line else Filtering(coded), search)
        others: dict[str, Seat] = {"random": AtRandom(), "truth": Searching(true, Filtering(true), search)}
        won = {name: both(true, seat, other, n) for name, other in others.items()}
        lost = seat.lost / seat.asked if isinstance(seat, Searching) else 0.0
    return {**won, "lost": lost}


def both(game: Known, seat: Seat, other: Seat, n: int, seed: int = 0) -> list[float]:
    """Return a seat's mean win over another in two matches, one from each side, with the same seed."""
    first, second = matches(game, (seat, other), n, seed), matches(game, (other, seat), n, seed)
    return ((first[:, 0] + second[:, 1]) / 2).tolist()  # type: ignore[no-any-return]


# ---- equilibria -------------------------------------------------------------------------------------------


@cache
def _true(game: Name) -> Tree:
    return tree_of(Known(GAMES[game]))


def equilibrium_table(games: Sequence[Name], scale: Scale, seeds: int, folder: Path) -> str:
    """Return the true exploitability of policies solved or searched in the code and in the truth."""
    lines = ["| game | policy | exploitability |", "|---|---|---|"]
    panels: dict[str, dict[str, dict[int, Estimate]]] = {}
    for game in games:
        codes = {"the truth": "", **programs(game, scale, folder)}
        sound = [name for name in codes if name == "the truth" or RIGHT in name]
        keys = [("even", "", 0)]
        keys += [(f"regret minimisation in {name}", name, 0) for name in codes]
        keys += [("regret minimisation in memory of the matches", "memory", 0)]
        keys += [
            (_searching(name, n), name, seed) for name in sound for n in DEEPER[game] for seed in range(seeds)
        ]
        rows = kept(folder / f"{game}.jsonl", keys, partial(_exploited, game, codes))
        for line in dict.fromkeys(key[0] for key in keys):
            found = [row["exploitability"] for row in rows if row["key"][0] == line]
            told = three(over_seeds(found)) if len(found) > 1 else f"{found[0]:.4f}"
            lines.append(f"| {game} | {line} | {told} |")
        if len(DEEPER[game]) > 1:
            panels[GAMES[game].title] = {
                f"search in {name}": {
                    n: over_seeds([r["exploitability"] for r in rows if r["key"][0] == _searching(name, n)])
                    for n in DEEPER[game]
                }
                for name in sound
            }
    draw_lines(panels, folder / "exploitability.png", "simulations of a decision", "exploitability")
    return "\n".join([*lines, "", f"![Exploitability]({folder.name}/exploitability.png)"])


def _searching(name: str, n: int) -> str:
    return f"search in {name}, {n:,} simulations"


def _exploited(game: Name, codes: dict[str, str], line: str, name: str, seed: int) -> dict[str, Any]:
    tree = _true(game)
    if line == "even":
        return {"exploitability": exploitability(tree, {})}
    with ExitStack() as stack:
        source = recited(game) if name == "memory" else codes[name]
        coded = CodedGame(stack.enter_context(loaded(source))) if source else None
        if "regret" in line:
            policy = _solved(coded or Known(GAMES[game]))
        else:
            known, n = Known(GAMES[game]), int(line.split(", ")[-1].split()[0].replace(",", ""))
            searching = Searching(
                coded or known,
                coded or Filtering(known),
                ISMCTS(simulations=n, worlds=min(n, 32)),
                mixed=True,
            )
            policy = _mixed(tree, searching, seed)
            if coded and searching.lost:
                raise HunchError(
                    f"Inference of {name} failed {searching.lost:,} times: its time may be too short."
                )
    return {"exploitability": exploitability(tree, policy)}


def _solved(game: Any) -> Policy:
    """Return the policy of regret minimisation; an empty (uniform) one if the game cannot be enumerated."""
    try:
        return solve(tree_of(game), 1_000)
    except HunchError:
        return {}


def _mixed(tree: Tree, searching: Searching, seed: int) -> Policy:
    """Return the search's shares in every information set."""
    views = [
        View(player, memory, own, np.random.default_rng([seed, i]))
        for i, ((player, memory), own) in enumerate(zip(tree.keys, tree.actions, strict=True))
    ]
    shares = [row for i in range(0, len(views), 100) for row in searching.shares(views[i : i + 100])]
    return {
        key: dict(zip(own, map(float, row), strict=True))
        for key, own, row in zip(tree.keys, tree.actions, shares, strict=True)
    }


def recited(game: Name) -> str:
    """Return code that only repeats the recorded matches; it passes all tests but knows no rules."""
    env: Any = hunch.make("hunch/GameCode-v0", game=game).unwrapped
    positions = [position for match in env.recorded for position in match]
    table = {p.history: tuple(p.look) for p in positions}
    memories = {(player, p.memories[player]): list(p.history) for p in positions for player in (0, 1)}
    return (
        f"TABLE = {table!r}\nMEMORIES = {memories!r}\nEND = (-4, (), (), ('', ''), (0.0, 0.0))\n"
        "def initial_state():\n    return ()\n"
        "def apply_action(state, action):\n    return (*state, action)\n"
        "def current_player(state):\n    return TABLE.get(state, END)[0]\n"
        "def legal_actions(state):\n    return TABLE.get(state, END)[1]\n"
        "def chance_outcomes(state):\n    return list(zip(TABLE[state][1], TABLE[state][2]))\n"
        "def observation(state, player):\n    return TABLE.get(state, END)[3][player]\n"
        "def returns(state):\n    return TABLE.get(state, END)[4]\n"
        "def resample_history(player, memory, seed):\n    return MEMORIES.get((player, tuple(memory)), [])\n"
    )


def speed(games: Sequence[Name], side: int = 64) -> str:
    """Return positions per second of many searches at once, in the sandboxed code and in the true rules."""
    told = []
    for game in games:
        code = next(code for words, code in GAME_CODE.items() if words in GAMES[game].text)
        with loaded(code) as program:
            figures = [_speed(CodedGame(program), side), _speed(Known(GAMES[game]), side)]
        told.append(f"- {game}: {figures[0]:,.0f} in the code, {figures[1]:,.0f} in the rules.")
    return f"Moves per second of a search, {side} side by side, 100 simulations each:\n\n" + "\n".join(told)


def _speed(game: Any, side: int) -> float:
    counted = _Counted(game)
    start = Known.begin(game) if isinstance(game, Known) else game.begin()
    while start.look.player < 0:
        (start,) = game.follow([start], [start.look.actions[0]])
    begun = time.perf_counter()
    ISMCTS(simulations=100).search(counted, [[start]] * side, [np.random.default_rng(i) for i in range(side)])
    return counted.moves / (time.perf_counter() - begun)


class _Counted:
    """A game that counts the requested moves."""

    def __init__(self, game: Any) -> None:
        self.game, self.moves = game, 0
        self.begin: Callable[[], Any] = game.begin

    def follow(self, positions: Sequence[Any], actions: Sequence[str]) -> Any:
        self.moves += len(positions)
        return self.game.follow(positions, actions)
