"""``hunch serve``: serves an environment over HTTP to trainers in other processes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from annotated_types import Interval

from hunch.cli.environment import split_environment
from hunch.cli.options import read
from hunch.core import UsageError
from hunch.extras import library
from hunch.ranges import PositiveFloat, PositiveInt, check_settings
from hunch.runs.processes import stoppable

DESCRIPTION = """Serve an environment by the protocol of OpenEnv (extra openenv), to TRL, verifiers and any
other client, such as --env openenv:http://127.0.0.1:8000. Any text is an action; an inadmissible one costs a
step. Every connection has a separate environment in its own process, closed when the client disconnects."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of ``hunch serve``: the environment, and the address."""

    env: Annotated[str, tyro.conf.Positional] = ""
    """Environment id; its options are given as --env.NAME VALUE."""
    host: str = "127.0.0.1"
    """Address to listen on. Only this machine can reach the default. There is no password."""
    port: Annotated[int, Interval(ge=0, le=65535)] = 8000
    """Port to listen on; 0 chooses a free one."""
    sessions: PositiveInt = 64
    """Maximum number of simultaneous connections; further ones are refused."""
    seconds: PositiveFloat = 30.0
    """Time limit in seconds of a reset or an action. Its episode ends when it is over."""
    idle: PositiveFloat = 3600.0
    """Seconds after which a connection is closed over which nothing comes."""
    hosts: tuple[str, ...] = ()
    """Names under which clients may ask for the server, besides localhost and its addresses."""
    origins: tuple[str, ...] = ()
    """Web pages that may use the server, such as http://localhost:3000. Default: none."""


def serve(arguments: Sequence[str]) -> None:
    """Serve an environment until Ctrl-C.

    Raises:
        UsageError: on an unknown or unsuitable environment, an unknown option, or a port that is in use.
    """
    rest, env_options = split_environment(arguments)
    options = read(ServeOptions, prog="hunch serve", description=DESCRIPTION, args=rest)
    check_settings(options)
    if not options.env:
        raise UsageError("Name an environment, as in 'hunch serve hunch/Household-Pick-v0'.")
    library("openenv", "Serving an environment needs openenv", "openenv")
    from hunch.ext import openenv  # needs the extra, which was asked for above
    from hunch.ext.turns import Turns  # needs the extra, which was asked for above

    turns = Turns(options.env, **env_options)
    with openenv.listen(options.host, options.port) as socket:
        host, port = socket.getsockname()[:2]
        print(
            f"{options.env} is at http://{host}:{port} (--env openenv:http://{host}:{port}); Ctrl-C ends it.",
            flush=True,
        )
        limits = openenv.Limits(
            sessions=options.sessions,
            seconds=options.seconds,
            idle=options.idle,
            hosts=(options.host, *options.hosts),
            origins=options.origins,
        )
        # Ctrl-C before it listens is no news either.
        warnings.filterwarnings("ignore", "coroutine 'Server.serve' was never awaited")
        with stoppable("stopped serving; the sessions have ended, and the same command serves again."):
            openenv.server(turns, limits).run(sockets=[socket])
