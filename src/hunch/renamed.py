"""Settings that have another name than in earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from hunch.core import UsageError


class Renamed:
    """Base of a dataclass of settings some of which had other names."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """The settings of before, each with the one that replaces it. Options of a run are refused with its name;
    the folder of a run that has them is read."""

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse settings of before by keyword, and name what replaces them.

        Raises:
            UsageError: if there is one.
        """
        for name in options.keys() & cls.renamed.keys():
            raise UsageError(f"{cls.__name__}: {name} is now {cls.renamed[name]}.")
        return super().__new__(cls)

    @classmethod
    def current(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored settings of this or an earlier version by today's names."""
        return {cls.renamed.get(name, name): value for name, value in stored.items()}
