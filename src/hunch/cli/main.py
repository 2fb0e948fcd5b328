"""Entry point of the command: calls the subcommand, and prints each error as one sentence."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import NoReturn, TextIO, cast

from hunch import beginning
from hunch.cli import trusted, unexpected
from hunch.core import HunchError, UsageError
from hunch.lm.backends.secret import keys
from hunch.printable import PrintableStream, printable
from hunch.warned import warn

BUILT_IN = (
    *("run", "compare", "evaluate", "audition", "foretell", "report", "sandbox", "data", "serve", "play"),
    *("methods", "envs", "models", "cache", "completion", "lm"),
)
"""The built-in commands; :mod:`hunch.cli.commands` describes each."""
PLAIN = ("methods", "envs", "lm", "completion")
"""Commands without options."""


def command(name: str) -> Callable[[Sequence[str]], None]:
    """Return the function behind a command.

    Raises:
        UsageError: if there is no such command; the message suggests similar names.
    """
    if name not in BUILT_IN:
        from hunch.cli import commands  # only for the overview, help and wrong names

        return commands.of_another_package(name)
    module = "lists" if name in ("methods", "envs", "lm") else name
    function: Callable[[Sequence[str]], None] = getattr(import_module(f"hunch.cli.{module}"), name)
    return function


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and exit with a code if it did not succeed.

    0: done. 1: failed. 2: wrong use. 130: stopped by Ctrl-C. 141: the reader of the output has left, as in
    ``hunch methods | head -1`` (128 + SIGPIPE, which a shell reports for other programs).
    """
    warnings.showwarning = warn
    with _printable_streams():
        _main(arguments)


def _main(arguments: Sequence[str] | None) -> None:
    own_process = arguments is None
    try:
        _run(trusted.admit(sys.argv[1:] if arguments is None else arguments, own_process=own_process))
        _flush()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich exits by itself, with code 1
            _leave_without_output(end.__context__)
        try:
            _flush()
        except OSError as lost:
            _leave_without_output(lost)
        raise
    except KeyboardInterrupt as stopped:
        if own_process:
            beginning.end()
        _leave(str(stopped) or beginning.STOPPED, 130)
    except Exception as error:
        for cause in (error, error.__cause__):
            if isinstance(cause, OSError) and _is_output_lost(cause):
                _leave_without_output(cause)
        if isinstance(error, HunchError):
            _leave(unexpected.known(error) + trusted.hint(error), 2 if isinstance(error, UsageError) else 1)
        if os.environ.get("HUNCH_DEBUG"):
            raise
        _leave(unexpected.sentence(error), 1)


def _run(arguments: list[str]) -> None:
    """Run the subcommand that the arguments name."""
    while arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        from hunch.cli.commands import usage  # reads the entry points of other packages

        print(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] in ("-V", "--version"):
        print(f"hunch {version('hunch-rl')}")
        sys.exit(0)
    if arguments[0] in PLAIN and {"-h", "--help"} & set(arguments[1:]):
        from hunch.cli.commands import describe  # only for the overview, help and wrong names

        describe(arguments[0], str(command(arguments[0]).__doc__))
    else:
        if arguments[0] not in PLAIN and not {"-h", "--help"} & set(arguments):
            _require_folder()
        command(arguments[0])(arguments[1:])


@contextmanager
def _printable_streams() -> Iterator[None]:
    """Show control characters of others as escapes, and something in place of what a terminal lacks."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if isinstance(stream, TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = (cast("TextIO", stream and _printable(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _printable(stream: TextIO) -> PrintableStream:
    """Return a stream that shows no control characters, and none of the keys of the environment."""
    secrets = keys()

    def without(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "[key]")
        return text

    return PrintableStream(stream, without)


def _require_folder() -> None:
    """Raise a HunchError if the current folder was removed, which ends some libraries without a message."""
    try:
        os.getcwd()
    except OSError as error:
        raise HunchError("The current folder was removed: change to another one with 'cd'.") from error


def _flush() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _is_output_lost(error: OSError) -> bool:
    """Return whether an error is about the standard output, and not about a file or another process."""
    if error.filename is not None:
        return False
    if not isinstance(error, BrokenPipeError):
        return error.errno == errno.ENOSPC and _is_device(sys.stdout)
    try:
        waiting = select.poll()
        waiting.register(sys.stdout.fileno(), 0)
        return bool(waiting.poll(0))  # POLLERR: nobody can read any more
    except (AttributeError, OSError, ValueError):  # Windows has no poll
        return True


def _is_device(stream: TextIO) -> bool:
    """Return whether a stream goes to a device, such as a terminal or /dev/full, and not to a file."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False


def _leave_without_output(error: OSError) -> NoReturn:
    """Exit because the output cannot be written; what is left of it is thrown away."""
    with suppress(OSError, ValueError):  # else Python writes it once more at the end, and complains
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        sys.exit(141)
    _leave(f"The output cannot be written: {error.strerror}.", 1)


def _leave(sentence: str, code: int) -> NoReturn:
    with suppress(OSError):  # nobody may be there to read it
        print(printable(f"hunch: {sentence}"), file=sys.stderr)
    sys.exit(code)
