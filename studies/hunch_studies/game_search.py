"""Searches for the rules of a game as code, on which every part of ``game-models`` builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hunch.methods.program.gif_mcts import GIFMCTSConfig
from hunch.roles.writer.programs import best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.games.tabletop.games import GAMES, Name
from hunch_studies.programs_funsearch import attempts_of
from hunch_studies.study import Part, Scale, runs_of

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


def arm(label: str, game: Name, scale: Scale, line: str, **env_options: Any) -> Arm:
    """Return the runs of a rule of search in a game."""
    config = RunConfig(
        method="gif-mcts",
        env="hunch/GameCode-v0",
        env_options={"game": game, **env_options},
        lm=WRITER,
        steps=max(4, round(CALLS * scale.share)),
        options=GIFMCTSConfig(give_up=0, **LINES[line]),
    )
    return Arm(label, config)


def arms(game: Name, scale: Scale) -> tuple[Arm, ...]:
    """Return all rules of search in a game."""
    shown = [line for line in LINES if game == CONTROLS_IN or "feedback" not in LINES[line]]
    return tuple(arm(line, game, scale, line) for line in shown)


def winner(run: Path) -> dict[str, Any]:
    """Return what a run came to."""
    attempts = attempts_of(run)
    top = best(attempts)
    return {
        "fitness": top.fitness if top else 0.0,
        "first": attempts[0].fitness or 0.0,
        "solved": next((a.number + 1 for a in attempts if a.fitness == 1.0), None),
        "program": top.program if top else "",
        **(dict(top.components) if top else {}),
    }


def winners(game: Name, scale: Scale, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what the runs in a game came to, by rule and seed, given the folder of any part.

    Raises:
        UsageError: if one is not finished.
    """
    own = folder.parent / Part(GAMES[game].title, ()).folder
    return {arm.label: [winner(run) for run in runs_of(arm, scale.seeds, own)] for arm in arms(game, scale)}
