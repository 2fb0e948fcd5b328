"""What is said of an error that nobody raised on purpose."""

from __future__ import annotations

from hunch.extras import install

EXTRAS = {
    "torch": "torch",
    "transformers": "hf",
    "tokenizers": "hf",
    "safetensors": "hf",
    "matplotlib": "plot",
}
"""The extras that bring packages which any command may need."""


def sentence(error: Exception) -> str:
    """Return a sentence for an unexpected error: an unusable file, a missing package, or a bug in Hunch."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"Cannot use {str(error.filename)!r}: {error.strerror}."
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"This needs {error.name}: {install(EXTRAS[error.name])}."
    return f"{type(error).__name__}: {error} (HUNCH_DEBUG=1 shows where)"
