"""The options of ``hunch compare``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hunch.cli.options import Launch


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Launch):
    """Options of ``hunch compare``: settings of the runs, and the folder for them."""

    lm: tuple[str, ...] = ()  # type: ignore[assignment]
    """Language models, such as minilm, uniform or hf:<name or folder>. Each method that uses a language
    model runs once with each of these. Default: the default model of each method."""
    seeds: int = 3
    """Runs per method, with seeds 0, 1, 2 ...; all methods use the same seeds. The word seed as the value
    of an option of the environment stands for the run's seed: --env.pool_seed seed."""
    control: bool = True
    """Add a control for each method that uses a model: the same method with an uninformed model. A method
    in which a model proposes actions gets a second control, with a bag of words."""
    blank_control: bool = False
    """Add each method and model a second time with the blank prompt, the control that shows whether the
    model reads its task. It asks as many questions as the model."""
    workers: int | None = None
    """Number of runs in parallel. Default: the number of processors."""
    on: Literal["here", "ray"] = "here"
    """Where the runs are executed: in processes of this machine, or on a Ray cluster."""
