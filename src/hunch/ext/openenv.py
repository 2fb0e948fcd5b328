"""A server of OpenEnv for a text environment (extra ``openenv``; tested with openenv 0.10.0).

Each connection has a separate environment, which is closed when the client disconnects or vanishes.
Any text is an action; an inadmissible one costs a step.
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
"""Seconds of silence after which a client gets a ping; without a reply it is disconnected."""


class TextAction(Action):  # type: ignore[misc]
    """An action in the format of OpenEnv; its only field is the text."""

    text: str


class TextObservation(Observation):  # type: ignore[misc]
    """The agent's view: the fields of :class:`hunch.ext.turns.Turn`, and those of OpenEnv."""

    text: str
    task: str = ""
    actions: list[str] | None = None
    success: bool = False
    truncated: bool = False
    event: str = ""

    @classmethod
    def of(cls, turn: Turn) -> TextObservation:
        """Return a turn as an observation; the nan reward of a failed trial becomes None."""
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
        """Begin an episode; the same seed gives the same episode."""
        self.now = State(episode_id=episode_id)
        return TextObservation.of(self.turns.reset(seed, episode=episode, task_seed=task_seed))

    def step(self, action: TextAction, timeout_s: float | None = None, **_: Any) -> TextObservation:
        """Take a text as the action."""
        turn = self.turns.step(action.text)
        self.now.step_count += 1
        return TextObservation.of(turn)

    @property
    def state(self) -> State:
        """Id of the episode, and number of its steps so far."""
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
    """Return the web application: a separate environment for each of at most ``sessions`` connections."""
    return create_fastapi_app(
        lambda: Session(turns.fork()), TextAction, TextObservation, max_concurrent_envs=sessions
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket for a server to listen on; port 0 chooses a free port.

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
    """Return a server that has not been started."""
    how: dict[str, Any] = {"ws_ping_interval": PING, "ws_ping_timeout": PING, "log_level": "warning"}
    return uvicorn.Server(uvicorn.Config(application(turns, sessions), **how))
