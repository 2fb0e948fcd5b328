"""Code of a program's process: locks itself, reads the source, and answers one request at a time.

After the source is loaded, nothing in this process can be trusted, because the program shares it and may
change anything. All guarantees are enforced by the kernel (:mod:`hunch.sandbox.lock`) or by the caller.
"""

from __future__ import annotations

import linecache
import os
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from hunch.sandbox import frames, wire
from hunch.sandbox.lock import lock

PIPE = 3
"""File descriptor of the pipe to the caller; 0 to 2 are /dev/null."""
FILE = "<program>"
MODULE = "program"


def serve(memory: int) -> None:
    """Lock the process, report the active locks, then answer requests until the pipe closes."""
    try:
        locks = lock(memory)
    except OSError as error:
        return _write(frames.encode({"problem": str(error)}))
    _write(frames.encode({"locks": locks}))
    program: Callable[..., Any] | None = None
    while True:
        request = frames.decode(frames.read_frame(lambda length: os.read(PIPE, length)))
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            if "source" in request:
                program = load(request["source"], request["function"])
                chance = random.getstate(), np.random.get_state()
            if "calls" in request and program is not None:
                reply["values"] = call(program, request["calls"], chance if request["alike"] else None)
            payload = frames.encode(reply)
        except BaseException as error:  # whatever a program raises is an answer
            payload = frames.encode({"id": request["id"], "error": described(error)})
        _write(payload)


def forget_surroundings() -> None:
    """Remove information about the machine, and all means of file access, which would fail anyway.

    Only the zygote does this, because copying changed pages is most of the cost of a new process.
    """
    os.environ.clear()
    sys.argv, sys.orig_argv = [""], [""]
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Path" not in getattr(finder, "__name__", "")]


def load(source: str, function: str) -> Callable[..., Any]:
    """Run the source as a module and return its function.

    Raises:
        LookupError: if the source does not define the function.
    """
    module = types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    random.seed(0)
    np.random.seed(0)  # so that the same program gives the same values
    exec(_compiled(source), module.__dict__)
    function_object = module.__dict__.get(function)
    if not callable(function_object):
        raise MissingFunction(f"the program defines no function {function!r}")
    return function_object  # type: ignore[no-any-return]


def _compiled(source: str) -> types.CodeType:
    try:
        return compile(source, FILE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        if isinstance(error, SyntaxError) and error.filename == FILE:
            raise
        raise SyntaxError(str(error), (FILE, None, None, None)) from None  # null bytes, lone surrogates


class MissingFunction(LookupError):  # noqa: N818 (its name is read by people and models)
    """Raised if the program does not define the required function."""


class CallError(Exception):
    """Carries the index of the call that failed; the cause is the program's exception."""


def call(program: Callable[..., Any], calls: Any, chance: tuple[Any, Any] | None) -> list[Any]:
    """Call the program with each list of arguments, in order, until the answer reaches its size limit.

    Args:
        program: The function.
        calls: The arguments of all calls, encoded.
        chance: State of Python's and NumPy's global random generators at the start of each call; None
            does not reset them.
    """
    values: list[Any] = []
    size = 0
    for index, arguments in enumerate(wire.calls_from_tree(calls)):
        try:
            if chance is not None:
                random.setstate(chance[0])
                np.random.set_state(chance[1])
            values.append(wire.to_tree(program(*arguments)))
            size += wire.size(values[-1])
        except BaseException as error:
            raise CallError(index) from error
        if size > wire.FRAME // 2:
            break
    return values


def described(error: BaseException) -> dict[str, Any]:
    """Return an exception as data: kind, type, message, line and index of the call."""
    index = None
    if type(error) is CallError and error.__cause__ is not None:
        index, error = error.args[0], error.__cause__
    return {
        "kind": _kind(error),
        "type": type(error).__name__[:100],
        "message": _message(error),
        "line": _line(error),
        "index": index,
    }


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.msg)
    if isinstance(error, ModuleNotFoundError):
        return f"{error}; there are NumPy and what the standard library has without files and network"
    if isinstance(error, MemoryError) and not error.args:
        return "more memory than it may take"
    try:
        return str(error)[:2_000].encode(errors="replace").decode()
    except BaseException:  # its own __str__ fails
        return ""


def _kind(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, wire.WireError):
        return "value"
    compiled = isinstance(error, SyntaxError) and error.filename == FILE
    refused = isinstance(error, PermissionError | MissingFunction | ModuleNotFoundError)
    return "refused" if compiled or refused else "crash"


def _line(error: BaseException) -> int | None:
    """The last line of the program that the exception passed through."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == FILE else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _write(payload: bytes) -> None:
    rest = memoryview(frames.framed(payload))
    while rest:
        rest = rest[os.write(PIPE, rest) :]
