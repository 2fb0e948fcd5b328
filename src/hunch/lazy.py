"""Names of a package that are imported at first use, so that importing Hunch loads no heavy library."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def homes(files: Mapping[str, str]) -> dict[str, str]:
    """Return the file of each name, given a text with the names of each file."""
    return {name: file for file, named in files.items() for name in named.split()}


def importer(package: str, homes: Mapping[str, str], modules: Sequence[str] = ()) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` (PEP 562): a name from its file, or one of the modules."""

    def named(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return named
