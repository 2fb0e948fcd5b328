"""Messages for errors that the library did not raise itself."""

from __future__ import annotations

from hunch.extras import install

EXTRAS = {
    "torch": "torch",
    "transformers": "hf",
    "tokenizers": "hf",
    "safetensors": "hf",
    "matplotlib": "plot",
}
"""Packages that a command may lack, with the extra of ``pip install 'hunch[...]'`` that installs each."""


def sentence(error: Exception) -> str:
    """Return a sentence for an unexpected error: an unusable file, a missing package, or a bug in Hunch."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"Cannot use {str(error.filename)!r}: {error.strerror}."
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"This needs {error.name}: {install(EXTRAS[error.name])}."
    return f"{type(error).__name__}: {error} (HUNCH_DEBUG=1 shows where)"
