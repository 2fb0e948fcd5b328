"""``hunch foretell``: measures the accuracy and speed of world models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from hunch.cli.environment import split_environment
from hunch.cli.options import read
from hunch.core import UsageError
from hunch.ranges import check_settings
from hunch.runs.foretell import Foretelling, check_model, recorded, unseen
from hunch.runs.foretell import foretell as foretold
from hunch.runs.processes import stoppable

DESCRIPTION = """Measure world models: the share of steps that they predict completely, after one step and
after several predicted steps, their calibration and their speed. A model is 'true' (the environment itself),
'look-up', 'code:FILE' (a program step(state, action), or transition and reward), or any language model,
which gets examples."""
STOPPED = (
    "stopped before the last prediction; the same command asks again only what is not in the cache of "
    "answers."
)


@dataclass(frozen=True, kw_only=True)
class ForetellOptions(Foretelling):
    """Options of ``hunch foretell``: the world models to measure."""

    models: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """World models: true (the environment), look-up, code:FILE, or specs of language models."""


def foretell(arguments: Sequence[str]) -> None:
    """Measure world models side by side, on the same episodes.

    Raises:
        UsageError: if no model is named.
    """
    rest, env_options = split_environment(arguments)
    what = read(ForetellOptions, prog="hunch foretell", description=DESCRIPTION, args=rest)
    check_settings(what)
    if not what.models:
        raise UsageError("Name the models, as in 'hunch foretell true look-up pocket --env hunch/Chain-v0'.")
    with stoppable(STOPPED):
        recording = recorded(what, env_options)
    for spec in what.models:
        check_model(spec, recording)
    depths = list(dict.fromkeys(d for d in (1, 2, what.depth) if d <= what.depth))
    grid = Table(title=_title(what, unseen(recording)), title_justify="left", box=None, pad_edge=False)
    heads = [f"after {d}" for d in depths]
    for heading in ("model", "evidence", *heads, "confidence", "calibration", "steps/s"):
        # A long spec is broken, and nothing is cut: two models of a server differ at the end of their names.
        grid.add_column(
            heading,
            justify="left" if heading in ("model", "evidence") else "right",
            overflow="fold",
            no_wrap=heading != "model",
        )
    try:
        for spec in what.models:
            with stoppable(STOPPED):
                quality, level = foretold(spec, what, recording)
            right = [f"{quality.by_depth[d - 1]:.3f}" for d in depths]
            sure = [f"{quality.confidence:.3f}", f"{quality.calibration_error:.3f}"]
            grid.add_row(spec, level or "-", *right, *sure, f"{quality.steps_per_second:,.0f}")
    finally:  # what was measured before a model failed is shown
        if grid.row_count:
            Console().print(grid)


def _title(what: Foretelling, share: float) -> str:
    return (
        f"{what.env}, {what.examples} steps shown; {share:.0%} of the steps to predict are not among them.\n"
        "Columns: share of correct steps after 1 and more steps on the model's own states; mean distance "
        "between confidence and accuracy."
    )
