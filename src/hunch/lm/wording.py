"""The version of a prompt: a digest of its words. A run with other words is another run."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any


def version(*writers: Callable[..., Any] | str) -> str:
    """Return the version of prompts.

    Args:
        writers: The functions that write them, or texts. What counts are the texts in a function, and the
            texts and dictionaries of its module that it names.
    """
    words = [
        text for writer in writers for text in ((writer,) if isinstance(writer, str) else _words(writer))
    ]
    return sha256("\n".join(words).encode()).hexdigest()[:8]


def _words(writer: Callable[..., Any]) -> Iterator[str]:
    code = writer.__code__
    for value in (writer.__globals__.get(name) for name in code.co_names):
        if isinstance(value, (str, dict)):
            yield str(value)
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(writer))).body
    except (OSError, SyntaxError, ValueError):  # its file is not there
        yield str([value for value in code.co_consts if isinstance(value, str)])
        return
    said = ast.get_docstring(function, clean=False) if isinstance(function, ast.FunctionDef) else None
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != said:
            yield node.value
