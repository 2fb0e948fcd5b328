"""The meter: what a run asked of its language model, and what that took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


@dataclass(slots=True)
class Usage:
    """What was asked so far. One request is one sample of a prompt, one prompt's options, or one text.

    Attributes:
        calls: Requests that reached the model.
        cache_hits: Requests answered from memory or disk, and repeats within one batch.
        texts_embedded: Those of the calls that embedded a text.
        prompt_tokens: Tokens that the model read, where it knows.
        completion_tokens: Tokens that the model wrote, where it knows.
        seconds: Wall-clock time inside the model.
    """

    calls: int = 0
    cache_hits: int = 0
    texts_embedded: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{key: value + getattr(other, key) for key, value in self.as_dict().items()})

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(**{key: value - getattr(earlier, key) for key, value in self.as_dict().items()})

    def as_dict(self) -> dict[str, int | float]:
        """Return all figures by name, for JSON and for checkpoints."""
        return asdict(self)

    def snapshot(self) -> Usage:
        """Return a copy that later requests leave as it is."""
        return self + Usage()

    def restore(self, figures: Mapping[str, int | float]) -> None:
        """Take up the figures that :meth:`as_dict` gave; a figure that is missing begins at zero."""
        for field in fields(self):
            setattr(self, field.name, figures.get(field.name, field.default))


TOTAL = Usage()
"""Everything asked of all models by this process."""
