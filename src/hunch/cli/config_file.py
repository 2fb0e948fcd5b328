"""``--config FILE`` on the command line: the settings in the file become the defaults of the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, is_dataclass, make_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from hunch.cli.words import with_values
from hunch.core import UsageError
from hunch.ranges import check_value
from hunch.renamed import Renamed
from hunch.runs.settings_file import as_tuples, read_settings
from hunch.suggest import suggest


def read_line(names: list[str], arguments: Sequence[str]) -> tuple[list[str], list[str], dict[str, Any]]:
    """Take method names and ``--config FILE`` out of the arguments, and return them with the settings."""
    rest, given = list[str](), dict[str, Any]()
    for token, values in with_values(arguments):
        flag, equals, file = token.partition("=")
        if flag != "--config":
            rest += [token, *values]
        elif not (equals or values):
            raise UsageError("--config needs a value.")
        else:
            given, rest = read_settings(file if equals else values[0]), rest + values[not equals :]
    named = given.pop("method", ())
    return names or ([named] if isinstance(named, str) else list(named)), rest, given


def with_values_of(cls: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """Return a dataclass of options with values of a file as defaults.

    Raises:
        UsageError: if there is no such option, or a value has the wrong type.
    """
    hints = get_type_hints(cls, include_extras=True)
    entries = []
    for name, value in values.items():
        if issubclass(cls, Renamed) and name in cls.renamed:
            raise UsageError(f"{prefix}{name} is now {prefix}{cls.renamed[name]}.")
        if name not in hints or name == "config":
            raise UsageError(f"There is no setting {prefix}{name}; {suggest(name, list(hints))}")
        hint = hints[name]
        value = as_tuples(value)
        if is_dataclass(hint) and isinstance(value, Mapping):
            inner = with_values_of(hint, value, f"{prefix}{name}.")
            entries.append((name, inner, field(default_factory=inner)))
            continue
        if get_origin(hint) is tuple and isinstance(value, str):
            value = (value,)
        check_value(prefix + name, value, hint)
        if isinstance(value, str) and Path in get_args(hint):
            value = Path(value)
        entries.append((name, hint, field(default=value)))
    return make_dataclass(cls.__name__, entries, bases=(cls,), frozen=True, kw_only=True)
