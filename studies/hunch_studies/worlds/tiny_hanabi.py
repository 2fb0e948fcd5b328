"""Tiny Hanabi: two players, two cards, and one move each, by which the first may tell its card.

Source: OpenSpiel's game ``tiny_hanabi``, the matrix game of Foerster et al., "Bayesian Action Decoder for
Deep Multi-Agent Reinforcement Learning", ICML 2019. The rules are theirs, the texts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import PositiveInt
from hunch_studies.worlds.spiel import load_game

BEST: Final = 10.0
"""The largest payoff; a pair that shares a code gets it in every deal."""


class TinyHanabi(TextEnv):
    """Two players with a hidden card each move once, and share a payoff.

    Each player sees only its own card, and the second one also the first one's move. The payoff is that of
    OpenSpiel, divided by 10. If both make the safe move 2, every deal is worth 0.8. With a code, in which the
    first player's move tells its card, every deal is worth 1, which is a success.

    Args:
        max_steps: Step limit of an episode, which has two steps.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if ``open_spiel`` is not installed.
    """

    task = "earn as much as you can together; nobody sees the card of the other"
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "players": 2}  # type: ignore[misc]
    offers = ("events",)

    def __init__(self, *, max_steps: PositiveInt = 2, render_mode: str | None = None) -> None:
        super().__init__(max_steps, render_mode)
        self._game = load_game("tiny_hanabi", {}, needed_by="Tiny Hanabi")
        self._state = self._game.new_initial_state()
        self.moves = tuple(f"play {n + 1}" for n in range(self._game.num_distinct_actions()))

    @property
    def mover(self) -> int:
        """The player to move: 0 is the first, 1 the second."""
        return max(0, len(self._state.history()) - 2) % 2

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Tiny Hanabi has no reset option {next(iter(options))!r}.")
        self._state = self._game.new_initial_state()
        while self._state.is_chance_node():
            drawn = self._state.chance_outcomes()
            self._state.apply_action(drawn[int(self.task_random.integers(len(drawn)))][0])
        return Outcome(self._text(), self.moves)

    def _move(self, action: str) -> Outcome:
        event = f"The {('first', 'second')[self.mover]} player plays {self.moves.index(action) + 1}."
        self._state.apply_action(self.moves.index(action))
        over = self._state.is_terminal()
        payoff = self._state.returns()[0] if over else 0.0
        actions = () if over else self.moves
        return Outcome(self._text(), actions, payoff / BEST, over, payoff == BEST, event=event)

    def _text(self) -> str:
        """What the player to move knows; at the end, what the second one knew."""
        first, second, *moves = self._state.history()
        if not moves:
            return f"You hold card {first + 1}."
        return f"You hold card {second + 1}.\nYour partner played {moves[0] + 1}."

    def _extras(self) -> dict[str, Any]:
        return {"player": self.mover}

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        self._state = self._state.clone()
