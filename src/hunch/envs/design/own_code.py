"""The code of an environment of one's own, so that no stored trial is of an earlier version of it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

import gymnasium as gym

_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
"""Where an object lies, which is another place in each process."""


def code_of(env: gym.Env[Any, Any]) -> str:
    """Return a digest of an environment's code and registration, for a problem's identity.

    It covers the files of its class and of those that this inherits from, and no others. It is empty for an
    environment of Gymnasium that is made without arguments: Gymnasium's version stands for it.

    Args:
        env: The environment, made by its id.
    """
    parts = [_text(kind) for kind in type(env.unwrapped).__mro__ if _is_own(kind)]
    if env.spec is not None and parts:
        parts.append(str(env.spec.max_episode_steps))
    if env.spec is not None and env.spec.kwargs:
        parts.append(_ADDRESS.sub("", repr(sorted(env.spec.kwargs.items()))))
    return f" code {sha256(chr(0).join(parts).encode(errors='replace')).hexdigest()[:16]}" if parts else ""


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] not in ("builtins", "typing", "abc", "gymnasium")


def _text(kind: type) -> str:
    """Return the text of the file that defines a class; in a notebook, that of its methods."""
    for thing in (sys.modules.get(kind.__module__), kind):
        if text := "".join(_sources([thing])):
            return text
    return "\n".join(_sources(filter(inspect.isfunction, vars(kind).values())))


def _sources(things: Iterable[Any]) -> Iterator[str]:
    """Yield the source of each object that has one."""
    for thing in things:
        try:
            yield inspect.getsource(thing)
        except (OSError, TypeError):
            continue
