"""Games of TextArena: models as players against two opponents, one of which moves at random.

hunch study arena --lm qwen-coder-0.5b
python -m hunch_studies.arena docs/assets/studies/arena.jsonl   # the recorded rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np

import hunch
from hunch import lm
from hunch.core import World
from hunch.envs.invalid import INVALID
from hunch.methods.prior.zero_shot import ZeroShot, ZeroShotConfig
from hunch.rl.statistics import over_pairs
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.files import read_lines
from hunch_studies.draws import DRAWS, plays
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import print_table
from hunch_studies.rules.tabletop import moves
from hunch_studies.study import Part, Scale, Study, by_name, kept

GAMES: Final = ("TicTacToe-v0", "Nim-v0", "ConnectFour-v0")
AT_RANDOM: Final = "scripted:tabletop?skill=0"
BY_RULE: Final = "scripted:tabletop"
OPPONENTS: Final[Mapping[str, str]] = {"moves at random": AT_RANDOM, "plays by a rule": BY_RULE}
UNINFORMED, ORACLE, BLANK = "random moves", "the rule", "blank prompt"
FIRST: Final = "the first of the list"
"""A player by place: small models favour one, whatever the board."""
CONTROLS: Final[Mapping[str, str]] = {UNINFORMED: AT_RANDOM, ORACLE: BY_RULE, FIRST: "scripted:first"}
CHOOSES: Final = "chooses"
"""In a label: the model chooses among the admissible moves, where it otherwise writes one."""
EPISODES: Final = 30
"""Games against each opponent; they are the units of the intervals."""
WRITES: Final = PriorConfig(temperature=0.3, max_tokens=16)
"""How a model is asked that writes; a move has at most five tokens."""
BY_LETTER: Final = PriorConfig(way="label")
"""How a model is asked that chooses: the way of small models on the Frozen Lake, too."""
POSITION: Final = "Moves that can be made: {}\nWrite one of them."


class Blank(gymnasium.Wrapper[str, Any, str, Any]):
    """Shows the admissible moves and nothing else: neither the rules, nor the goal, nor who took what.

    The moves tell which cells of Tic-Tac-Toe are taken, and in Nim the whole position. Whoever writes is told
    in a sentence what to do, which TextArena's prompt has among its rules.
    """

    def reset(self, **options: Any) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(**options)
        return self._shown(observation, info), info

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Move."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._shown(observation, info), reward, terminated, truncated, info

    @staticmethod
    def _shown(observation: str, info: dict[str, Any]) -> str:
        # Where moves are listed as actions, whoever chooses is shown them in any case.
        return "" if info.get("actions") else POSITION.format(", ".join(moves(observation)))


class Listed(gymnasium.Wrapper[str, Any, str, Any]):
    """Lists the admissible moves as actions, so that a model chooses one instead of writing it."""

    def reset(self, **options: Any) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(**options)
        return observation, self._with_actions(observation, info)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Move."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        ended = terminated or truncated
        return (
            observation,
            reward,
            terminated,
            truncated,
            info if ended else self._with_actions(observation, info),
        )

    @staticmethod
    def _with_actions(observation: str, info: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in info.items() if name != "free_text"}
        return {**kept, "actions": tuple(moves(observation))}


class Watched(gymnasium.Wrapper[str, Any, str, Any]):
    """Counts the moves, and those that the game refused.

    Attributes:
        moved: Moves so far.
        refused: Refused ones among them.
    """

    def __init__(self, env: gymnasium.Env[str, Any]) -> None:
        super().__init__(env)
        self.moved = self.refused = 0

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Move."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.moved += 1
        # An event begins with what became of this player's move; the opponent's follows.
        self.refused += str(info.get("event", "")).startswith(f"{INVALID} of player 0")
        return observation, reward, terminated, truncated, info


def played(
    models: Mapping[str, str], game: str, opponent: str, label: str, episodes: int, draws: int = 1
) -> dict[str, Any]:
    """Play games, and return their results.

    Args:
        models: Specs of the players by label, without that of the blank prompt.
        game: Game of TextArena.
        opponent: Key of :data:`OPPONENTS`.
        label: The player.
        episodes: Number of games.
        draws: How often each is played.

    Returns:
        ``points`` of each game (1 for a win, 0 for a draw, -1 for a defeat), as means over the draws, the
        shares that were ``won`` and ``lost``, and the share of ``refused`` moves.
    """
    asked = label.removesuffix(f", {BLANK}")
    name = asked.removesuffix(f" {CHOOSES}")
    watched = Watched(hunch.make(f"textarena:{game}", opponent=OPPONENTS[opponent]))
    chooses = asked != name or label == FIRST
    env: Any = Listed(watched) if chooses else watched
    # A player by place is asked for a move of the list, and has no letters.
    prior = PriorConfig() if label == FIRST else BY_LETTER if chooses else WRITES
    agent = ZeroShot.build(ZeroShotConfig(prior=prior), {"lm": lm.load(models[name])})
    agent.begin(World(), 0)
    games = plays(agent.player, [env if asked == label else Blank(env)], episodes, draws)
    points = np.array([[np.sign(one.episode_return) for one in of_draw] for of_draw in games])
    return {
        "points": points.mean(axis=0).tolist(),
        "won": float((points == 1).mean()),
        "lost": float((points == -1).mean()),
        "refused": watched.refused / max(watched.moved, 1),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the results by game, opponent and player, in Markdown; leads are paired by a game's seed."""
    by_key = {tuple(row["key"][:4]): row for row in rows}
    lines = []
    for (game, opponent, label, episodes), row in by_key.items():
        points = row["points"]
        # Rows of before 30 November 2026 are of single games, and do not name these shares.
        won = row.get("won", np.mean([point == 1 for point in points]))
        lost = row.get("lost", np.mean([point == -1 for point in points]))
        cells = [game.removesuffix("-v0"), opponent, label, episodes, over_pairs(points).short()]
        cells += [f"{won:.2f}", f"{lost:.2f}", f"{row['refused']:.2f}"]
        for other in (UNINFORMED, FIRST, f"{label}, {BLANK}"):
            base = by_key.get((game, opponent, other, episodes))
            is_control = label in CONTROLS or label.endswith(BLANK)
            if base is None or (is_control and other != UNINFORMED) or other == label:
                cells.append("")
            else:
                pairs = zip(points, base["points"], strict=True)
                cells.append(over_pairs([a - b for a, b in pairs]).short())
        lines.append(cells)
    head = "game | opponent | player | games | points | won | lost | refused moves"
    return table_of(f"{head} | ahead of random moves | ahead of the first | ahead of the blank prompt", lines)


def _results(game: str, models: Mapping[str, str], episodes: int, folder: Path) -> str:
    players = list[str]()
    for label in models:
        if label not in CONTROLS:
            ways = [label, f"{label} {CHOOSES}"] if "label" in lm.load(models[label]).verbs else [label]
            players += [arm for way in ways for arm in (way, f"{way}, {BLANK}")]
    keys = list[tuple[Any, ...]]()
    for opponent in OPPONENTS:
        keys += [(game, opponent, label, episodes, DRAWS) for label in CONTROLS]
        keys += [(game, opponent, label, episodes) for label in players]
    return table(kept(folder / "rows.jsonl", keys, partial(played, models)))


def _parts(scale: Scale, data: Path) -> list[Part]:
    written = by_name(scale.lms)
    models = {**CONTROLS, **written}
    episodes = max(2, round(EPISODES * scale.share))
    return [Part(game, (), beside=partial(_results, game, models, episodes)) for game in GAMES]


STUDIES = {
    "arena": Study(
        "arena",
        "Do small models that write play games of TextArena better than random moves?",
        "TextArena ranks models by play against each other and against people (Guertler et al., 2025); none "
        "of this size.",
        "Opponents are rules: one moves at random, the other takes a win in one move, prevents one, and is "
        "perfect in Nim. The player moves first. A move that the game refuses twice loses it.",
        _parts,
        lm_for="zero-shot",
    )
}

if __name__ == "__main__":
    print_table(lambda file: table(read_lines(file)), "The results of games of TextArena.")
