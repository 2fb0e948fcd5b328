"""A game of several players in which a language model plays the other seats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, SupportsFloat

import gymnasium
import numpy as np

from hunch.core import State, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.scoring.choose import choose
from hunch.lm.settings import AskConfig
from hunch.lm.speaker import Speaker, Turn

ROLE: Final = "opponent"
SEAT: Final = 0
"""The seat that stays free: success is that of the first player."""


class Against(gymnasium.Wrapper[str, "str | int", str, "str | int"]):
    """Makes a game of several players one of the first player: a model moves for the others.

    Where any text is an action, the model writes it, with the episode as a conversation. Where actions are
    listed, it chooses one, in its best way. In equal positions of the same episode seed it makes equal moves.
    The reward of a step is the sum of the first player's rewards until its next turn, and the event tells
    what happened in the meantime.

    Args:
        env: A text environment of several players.
        opponent: The model.
        spec: The spec of this model.

    Raises:
        UsageError: if the environment has one player only.
    """

    def __init__(self, env: gymnasium.Env[str, str | int], opponent: LanguageModel, spec: str = "") -> None:
        super().__init__(env)
        self.option: Mapping[str, Any] = {"opponent": spec}
        self.models = {"opponent": opponent}
        self.opponent = opponent
        self.speaker: Speaker | None = None  # made when it is first needed
        self.metadata = {**env.metadata, "players": 1}
        self.turns: dict[int, list[Turn]] = {}  # by seat: its earlier observations with its actions
        self.random = np.random.default_rng(0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode; the model moves first if the game says so.

        Raises:
            UsageError: if the environment has one player only.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        if "player" not in info:
            name = self.env.spec.id if self.env.spec else type(self.env.unwrapped).__name__
            raise UsageError(f"{name} is no game of several players: leave opponent out.")
        self.turns = {}
        if seed is not None:  # else it goes on, as the generator of the game does
            self.random = np.random.default_rng(seed)
        observation, _, _, _, info = self._until_free(observation, 0.0, False, False, info)
        return observation, info

    def step(self, action: str | int) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Move for the first player, and let the model move until it is the first player's turn again."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        own_reward = float(info["rewards"][SEAT]) if "rewards" in info else float(reward)
        return self._until_free(observation, own_reward, terminated, truncated, info)

    def _until_free(
        self, observation: str, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        events = [str(info.get("event", ""))]
        while not (terminated or truncated) and int(info["player"]) != SEAT:
            move = self._move(observation, info)
            observation, common, terminated, truncated, info = self.env.step(move)
            reward += float(info["rewards"][SEAT]) if "rewards" in info else float(common)
            events.append(str(info.get("event", "")))
        shown = {name: value for name, value in info.items() if name not in ("player", "rewards")}
        if "success" in shown and "rewards" in info:  # a win of another seat is none of the first player
            shown["success"] = bool(shown["success"]) and info["rewards"][SEAT] == max(info["rewards"])
        if "event" in shown:
            shown["event"] = "\n".join(event for event in events if event)
        return observation, reward, terminated, truncated, shown

    def _move(self, observation: str, info: Mapping[str, Any]) -> str:
        """Let the model move for the seat whose turn it is."""
        seat = int(info["player"])
        turns = self.turns.setdefault(seat, [])
        actions = tuple(info["actions"]) if info.get("actions") else None
        state = State(observation, str(info.get("task", "")), actions, tuple(info.get("history", ())))
        if actions is None:
            if self.speaker is None:
                if "generate" not in self.opponent.verbs:
                    raise UsageError(
                        f"Any text is an action here, so the opponent has to write; {self.opponent.name} "
                        "cannot."
                    )
                self.speaker = Speaker(self.opponent, AskConfig(), ROLE)
            first = int(self.random.integers(2**31))
            (action,) = self.speaker.write([state], [[*state.history] or turns], first)
        else:
            action = self._chosen(state)
        turns.append((observation, action))
        return action

    def _chosen(self, state: State) -> str:
        """Let the model choose one of the listed actions; it is drawn by the model's probabilities."""
        listed = "\n".join(f"- {action}" for action in state.options)
        prompt = (
            f"Your task is to: {state.aim}\n{state.text()}\nIt is your move. You may take one of these "
            f"actions:\n{listed}"
        )
        (choice,) = choose(self.opponent, [prompt], [state.options], role=ROLE)
        return state.options[int(self.random.choice(len(state.options), p=choice.probabilities))]
