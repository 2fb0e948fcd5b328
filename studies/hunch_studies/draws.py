"""Plays of a control: the same episodes several times, so that a comparison does not lean on one draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hunch.core import Player
from hunch.rl.episodes import evaluate
from hunch.rl.rollout import Finished, TextEnvironment

DRAWS: Final = 20
"""How often a control that costs nothing plays each episode; its score there is the mean."""


def plays(
    player: Callable[[int], Player], envs: Sequence[TextEnvironment], episodes: int, draws: int
) -> list[list[Finished]]:
    """Return the same episodes, played by players that differ in what they draw.

    Args:
        player: Makes a player from a seed, such as ``agent.player``.
        envs: Text environments for parallel episodes.
        episodes: Number of episodes.
        draws: How often each is played.

    Returns:
        Shape (draws, episodes).
    """
    played = []
    for draw in range(draws):

        def drawn(seed: int, draw: int = draw) -> Player:
            return player(seed + draw)

        played.append(evaluate(drawn, envs, episodes, 0))
    return played
