"""A server of OpenEnv for a text environment (extra ``openenv``; tested with openenv 0.10.0).

Each connection has a separate environment in a process of its own, which is closed when the client
disconnects or vanishes, and ended when a step takes too long. Any text is an action; an inadmissible one
costs a step.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import uvicorn
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State

from hunch.core import HunchError, UsageError
from hunch.ext.guard import LARGEST, Guard
from hunch.ext.process import TurnsProcess
from hunch.ext.turns import Turn, Turns

PING = 10.0
"""Seconds of silence after which a client gets a ping; without a reply it is disconnected."""
SHUTDOWN = 3
"""Seconds in which connections may end after Ctrl-C."""
WAITING = 64
"""Connections besides the sessions, such as requests for the schema."""
REQUEST = 15.0
"""Seconds after which a connection is closed that is no session: a request, all of it, takes no longer."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What clients may do.

    Attributes:
        sessions: Maximum number of simultaneous sessions.
        seconds: Time limit in seconds of a reset or an action.
        idle: Seconds after which a session is closed that sends nothing.
        hosts: Names of the server besides localhost and its addresses.
        origins: Web pages that may use it.
    """

    sessions: int = 64
    seconds: float = 30.0
    idle: float = 3600.0
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


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
    pictures: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    @classmethod
    def of(cls, turn: Turn) -> TextObservation:
        """Return a turn as an observation; the nan reward of a failed trial becomes None."""
        shown = {**turn._asdict(), "actions": None if turn.actions is None else list(turn.actions)}
        return cls(**{**shown, "reward": turn.reward if math.isfinite(turn.reward) else None})


class Session(Environment[TextAction, TextObservation, State]):  # type: ignore[misc]
    """The environment of one connection.

    Args:
        turns: The environment, of which the session has its own.
        seconds: Time limit of a reset or an action.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, turns: Turns, seconds: float) -> None:
        super().__init__()
        self.turns, self.now = TurnsProcess(turns, seconds), State()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        episode: int | None = None,
        task_seed: int | None = None,
        **_: Any,
    ) -> TextObservation:
        """Begin an episode; the same seed gives the same episode.

        Raises:
            HunchError: if a number is none, or the environment fails.
        """
        for name, value in {"seed": seed, "episode": episode, "task_seed": task_seed}.items():
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and value >= 0):
                raise HunchError(f"{name} has to be a whole number from 0 on, or null.")
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
        name, _ = self.turns.made_of
        return EnvironmentMetadata(name=name, description="A text environment of Hunch")

    def close(self) -> None:
        """Close the environment."""
        self.turns.close()


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


class Server(uvicorn.Server):  # type: ignore[misc]
    """A server of OpenEnv that Ctrl-C ends, whatever its sessions do.

    Args:
        turns: The environment, of which each session has its own.
        limits: What clients may do.
    """

    def __init__(self, turns: Turns, limits: Limits) -> None:
        self.sessions = WeakSet[Session]()

        def session() -> Session:
            made = Session(turns, limits.seconds)
            self.sessions.add(made)
            return made

        app = create_fastapi_app(session, TextAction, TextObservation, max_concurrent_envs=limits.sessions)
        how: dict[str, Any] = {
            "ws_ping_interval": PING,
            "ws_ping_timeout": PING,
            "ws_max_size": LARGEST,
            "limit_concurrency": limits.sessions + WAITING,
            "timeout_graceful_shutdown": SHUTDOWN,
            "log_level": "critical",  # clients that break off are no news
        }
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # clients that break off are no news
        guarded = Guard(app, limits.hosts, limits.origins, limits.idle)
        super().__init__(uvicorn.Config(guarded, **how))
        self.requests_since = WeakKeyDictionary[
            Any, float
        ]()  # when a connection was first seen to be no session

    async def on_tick(self, counter: int) -> bool:
        """Close connections whose requests do not end, ten times a second; uvicorn would wait for ever."""
        now = time.monotonic()
        for connection in list(self.server_state.connections):
            is_request = isinstance(connection, self.config.http_protocol_class)
            if is_request and now - self.requests_since.setdefault(connection, now) > REQUEST:
                connection.transport.abort()
        return bool(await super().on_tick(counter))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all sessions, so that no thread waits for one, and then the connections."""
        self.end_sessions()
        await super().shutdown(sockets)
        self.end_sessions()

    def end_sessions(self) -> None:
        """End the processes of all sessions."""
        for session in list(self.sessions):
            session.turns.end(ended=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let a closed terminal end the server as Ctrl-C and termination do, but after ``nohup``."""
        hangup = getattr(signal, "SIGHUP", None)  # Windows has none
        before = signal.SIG_IGN if hangup is None else signal.getsignal(hangup)
        is_main = threading.current_thread() is threading.main_thread()
        with super().capture_signals():
            if hangup is None or not is_main or before is signal.SIG_IGN:
                yield
                return
            signal.signal(hangup, self.handle_exit)
            try:
                yield
            finally:
                signal.signal(hangup, before)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down after the first signal, and end at once after the second."""
        if self.should_exit:
            self.end_sessions()
            os._exit(128 + sig)
        super().handle_exit(sig, frame)


def server(turns: Turns, limits: Limits | None = None) -> Server:
    """Return a server that has not been started."""
    return Server(turns, limits or Limits())
