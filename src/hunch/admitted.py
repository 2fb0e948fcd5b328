"""What the settings of a run may start and reach: in the command, only what its user named.

The settings of a run's folder may be a stranger's. A program that they name (``mcp:COMMAND``) is not started
by ``hunch report``, ``play`` or ``evaluate``, unless it stands on the command line, too. Nor do prompts, keys
or actions go to a server that they name (``?base_url=``, ``openenv:URL``), unless it is near or stands there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from hunch.core import UsageError

SERVERS = "HUNCH_SERVERS"
"""Environment variable with the names of hosts that may be reached, divided by commas; all if it is not set.
The command sets it for itself and the processes that it starts."""

PROGRAMS = "HUNCH_PROGRAMS"
"""Environment variable with the programs that may be started, as a list in JSON; all if it is not set. The
command sets it for itself and the processes that it starts."""


def admit(programs: Iterable[str]) -> None:
    """Allow these programs, and no others from now on, also in processes of this one."""
    os.environ[PROGRAMS] = json.dumps(sorted({*programs, *(_programs() or ())}))


def _programs() -> list[str] | None:
    """Return the programs that may be started; None for all."""
    listed = os.environ.get(PROGRAMS)
    return None if listed is None else list(map(str, json.loads(listed)))


def require(program: str, what: str) -> None:
    """Refuse a program that the settings of a run name, and not the person at the command line.

    Args:
        program: The command that starts it.
        what: What starts it, for the message.

    Raises:
        UsageError: if it is not allowed.
    """
    allowed = _programs()
    if allowed is not None and program not in allowed:
        raise UsageError(
            f"{what} starts a program, which is done only if you name it: if you trust it, add --program "
            f"{shlex.quote(program)}."
        )


def admit_servers(stated: Iterable[str], names: Iterable[str]) -> None:
    """Allow the servers that a person named, and no others from now on, also in processes of this one.

    Args:
        stated: Texts that may hold addresses: a command line, and variables such as ``OPENAI_BASE_URL``.
        names: Names of hosts.
    """
    hosts = {_host(f"//{name}") for name in (*names, *os.environ.get(SERVERS, "").split(","))}
    for text in stated:
        hosts |= {_host(address) for address in _ADDRESS.findall(text)}
        hosts |= {_host(f"//{address}") for address in _WITHOUT_SCHEME.findall(text)}
    os.environ[SERVERS] = ",".join(sorted(hosts))


def require_server(address: str, what: str) -> None:
    """Refuse a server that the settings of a run name, and not the person at the command line.

    Args:
        address: Its address.
        what: What goes there, for the message.

    Raises:
        UsageError: if it is not allowed.
    """
    allowed = os.environ.get(SERVERS)
    host = _host(address)
    if allowed is None or host in allowed.split(",") or _is_near(host):
        return
    raise UsageError(
        f"{what} would go to {host}, which only the settings of the run name: if you trust it, add --server "
        f"{shlex.quote(host)}."
    )


_WITHOUT_SCHEME = re.compile(r"openenv:([^\s/?#]+)")
_ADDRESS = re.compile(r"(?:https?|wss?)://[^\s\"'?&#,]+", re.IGNORECASE)


def _host(address: str) -> str:
    with suppress(ValueError):
        return (urlsplit(address).hostname or "").removesuffix(".")
    return ""


def _is_near(host: str) -> bool:
    """Return whether a host is this machine or an address of a private network; no name is looked up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return False
