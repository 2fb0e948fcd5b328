"""Messages for errors that the library did not raise itself."""

from __future__ import annotations

import errno

from hunch import little_memory
from hunch.core import HunchError
from hunch.extras import install

EXTRAS = {
    "torch": "torch",
    "transformers": "hf",
    "tokenizers": "hf",
    "safetensors": "hf",
    "matplotlib": "plot",
}
"""Packages that a command may lack, with the extra of ``pip install 'hunch[...]'`` that installs each."""


def known(error: HunchError) -> str:
    """Return the message of an error of Hunch, or one about memory if a lack of it caused another message."""
    unsaid = little_memory.ran_out(error.__cause__) and "not enough memory" not in str(error)
    return little_memory.sentence(error.__cause__) if unsaid else str(error)


def sentence(error: Exception) -> str:
    """Return a sentence for an unexpected error: an unusable file, a missing package, or a bug in Hunch."""
    if little_memory.ran_out(error):
        return little_memory.sentence(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"Cannot use {str(error.filename)!r}: {error.strerror}."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"Something cannot be written: {error.strerror}."
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"This needs {error.name}: {install(EXTRAS[error.name])}."
    return f"{type(error).__name__}: {error} (HUNCH_DEBUG=1 shows where)"
