"""The version of a prompt, a digest of its text. Runs with different versions are different runs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from types import CodeType
from typing import Any


def version(*writers: Callable[..., Any] | str) -> str:
    """Return the version of prompts, a short digest.

    Args:
        writers: The functions that write the prompts, or texts. The digest covers the texts in a function and
            the texts and dictionaries of its module that the function names.
    """
    words = [
        text for writer in writers for text in ((writer,) if isinstance(writer, str) else _words(writer))
    ]
    return sha256("\n".join(words).encode()).hexdigest()[:8]


def _words(writer: Callable[..., Any]) -> Iterator[str]:
    for value in (writer.__globals__.get(name) for name in writer.__code__.co_names):
        if isinstance(value, (str, dict)):
            yield str(value)
    yield from _said(writer.__code__)


@cache  # a file is read once, not by every agent
def _said(code: CodeType) -> tuple[str, ...]:
    """Return the texts in a function, without the one that documents it."""
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
    except (OSError, SyntaxError, ValueError):  # its file is not there
        return (str([value for value in code.co_consts if isinstance(value, str)]),)
    said = ast.get_docstring(function, clean=False) if isinstance(function, ast.FunctionDef) else None
    texts = (node.value for node in ast.walk(function) if isinstance(node, ast.Constant))
    return tuple(text for text in texts if isinstance(text, str) and text != said)
