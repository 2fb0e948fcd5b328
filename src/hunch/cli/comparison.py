"""The options of ``hunch compare``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hunch.cli.options import Launch


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Launch):
    """Settings of the runs, and where they are kept."""

    lm: tuple[str, ...] = ()  # type: ignore[assignment]
    """Language models that fill the role, such as minilm, uniform or hf:<name or folder>; each method that
    uses one runs with each of them. Default: the method's own."""
    seeds: int = 3
    """Runs per method, with seeds 0, 1, 2 ...; all methods use the same seeds. An option of the environment
    with the value seed varies with them: --env.pool_seed seed gives each seed its own games."""
    control: bool = True
    """Add a control for each method whose model fills a role: the same method with an uninformed model, and
    with a bag of words if its prior uses similarity."""
    workers: int | None = None
    """Runs at a time. Default: the number of processors."""
    on: Literal["here", "ray"] = "here"
    """Where the runs are executed: in processes of this machine, or on a Ray cluster."""
