"""A server of OpenEnv for a text environment (extra ``openenv``; tested with openenv 0.10.0).

A connection is a session with an environment of its own, which is closed when its client closes, or vanishes.
A text is the action: what is not admissible costs a step.
"""

from __future__ import annotations

import math
import socket
from typing import Any

import uvicorn
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State

from hunch.core import UsageError
from hunch.ext.turns import Turn, Turns

PING = 10.0
"""Seconds after which a silent client is asked whether it is there, and again until it counts as gone."""


class TextAction(Action):  # type: ignore[misc]
    """An action: its text."""

    text: str


class TextObservation(Observation):  # type: ignore[misc]
    """What an agent is shown: the fields of :class:`hunch.ext.turns.Turn`, with OpenEnv's own."""

    text: str
    task: str = ""
    actions: list[str] | None = None
    success: bool = False
    truncated: bool = False
    event: str = ""

    @classmethod
    def of(cls, turn: Turn) -> TextObservation:
        """Return a turn; a reward that is no number, of a trial that failed, is None."""
        shown = {**turn._asdict(), "actions": None if turn.actions is None else list(turn.actions)}
        return cls(**{**shown, "reward": turn.reward if math.isfinite(turn.reward) else None})


class Session(Environment[TextAction, TextObservation, State]):  # type: ignore[misc]
    """The environment of one connection.

    Args:
        turns: The environment, which belongs to this session.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self.turns, self.now = turns, State()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        episode: int | None = None,
        task_seed: int | None = None,
        **_: Any,
    ) -> TextObservation:
        """Begin an episode; the same seed gives the same one."""
        self.now = State(episode_id=episode_id)
        return TextObservation.of(self.turns.reset(seed, episode=episode, task_seed=task_seed))

    def step(self, action: TextAction, timeout_s: float | None = None, **_: Any) -> TextObservation:
        """Take a text as the action."""
        turn = self.turns.step(action.text)
        self.now.step_count += 1
        return TextObservation.of(turn)

    @property
    def state(self) -> State:
        """Id of the episode, and its number of steps."""
        return self.now

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the name of the environment."""
        spec = self.turns.env.spec
        return EnvironmentMetadata(
            name=spec.id if spec else "hunch", description="A text environment of Hunch"
        )

    def close(self) -> None:
        """Close the environment."""
        self.turns.env.close()


def application(turns: Turns, sessions: int) -> Any:
    """Return the application of a server: an environment for each of at most so many connections."""
    return create_fastapi_app(
        lambda: Session(turns.fork()), TextAction, TextObservation, max_concurrent_envs=sessions
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket on which a server listens; port 0 takes a free one.

    Raises:
        UsageError: if the address cannot be used.
    """
    try:
        return socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"Cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}."
        ) from None


def server(turns: Turns, sessions: int) -> uvicorn.Server:
    """Return a server that is not running yet."""
    how: dict[str, Any] = {"ws_ping_interval": PING, "ws_ping_timeout": PING, "log_level": "warning"}
    return uvicorn.Server(uvicorn.Config(application(turns, sessions), **how))
