"""Prompts from the user's files, which replace built-in prompts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Final, NamedTuple

from hunch.core import UsageError
from hunch.text_files import read_text

FIELDS: Final = ("task", "history", "observation", "actions", "examples")
"""Fields of every prompt file; a role fills those that apply, and may have further ones."""
FIELD: Final = re.compile(r"(?<!\{)\{([a-z_]+)\}(?!\})")
DIGEST: Final = 12
PINNED: Final = re.compile(rf"#[0-9a-f]{{{DIGEST}}}$")


class Template(NamedTuple):
    """A prompt file: a text with fields such as ``{task}``.

    Attributes:
        text: The text.
        digest: The first characters of the text's SHA-256.
    """

    text: str
    digest: str

    @classmethod
    def read(cls, named: str, fields: Collection[str] = ()) -> Template:
        """Read a prompt file.

        Args:
            named: The file, optionally with its expected digest, as ``file#digest``.
            fields: Fields that the role fills besides :data:`FIELDS`.

        Raises:
            UsageError: if the file cannot be read, has another digest, no field, or one that the role lacks.
        """
        path, _, digest = named.rpartition("#") if PINNED.search(named) else (named, "", "")
        text = _text(path)
        digest_of_text = _digest(text)
        if digest not in ("", digest_of_text):
            raise UsageError(f"The prompt {path} has changed since the run began: restore it, or begin anew.")
        known, used = [*FIELDS, *fields], FIELD.findall(text)
        if not used or (unknown := [name for name in used if name not in known]):
            listed = ", ".join(f"{{{name}}}" for name in known)
            has = f"a field {{{unknown[0]}}}" if used else "no field, so every question would be the same"
            raise UsageError(f"The prompt {path} has {has}; there are {listed}.")
        return cls(text, digest_of_text)

    def fill(self, **values: str) -> str:
        """Return the text with its fields filled in; fields without a value become empty."""
        return FIELD.sub(lambda field: values.get(field[1], ""), self.text)


def pinned(named: str) -> str:
    """Return the name of a prompt file with its digest, as settings of a run store it."""
    return named if PINNED.search(named) else f"{named}#{_digest(_text(named))}"


def _text(path: str) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise UsageError(f"The prompt {path!r} cannot be read: name a file of text.") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST]
