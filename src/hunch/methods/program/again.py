"""``python best.py``: the best program of a run, tried again in the problem of the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from hunch.core import HunchError
from hunch.envs import make

LAST_LINE: Final = "raise SystemExit\n"
"""Ends what stands before the program in ``best.py``."""
SCORES_ITSELF: Final = f"""# "python best.py" tries it again in its problem, in the sandbox.
if __name__ == "__main__":
    from {__name__} import try_again

    try_again(__file__)
    {LAST_LINE}
"""
"""The beginning of ``best.py``. It ends before the program: a model's code runs in the sandbox only."""


def try_again(file: str) -> None:
    """Run the program of a ``best.py`` in the sandbox, and print its fitness and what became of it.

    Args:
        file: Path of the file, in the folder of its run.

    Raises:
        SystemExit: with a sentence, if the problem of the run cannot be made again.
    """
    path = Path(file)
    head, _, program = path.read_text(encoding="utf-8").partition(LAST_LINE)
    ahead = [line for line in head.splitlines() if line.startswith("from __future__ ")]
    sys.path.insert(0, "")  # where a problem of your own may lie
    try:
        run = json.loads(path.with_name("config.json").read_text(encoding="utf-8"))["run"]
        if "env" in run.get("objects", ()):
            raise HunchError(
                "the problem of this run was made in Python, and its settings do not say how: make it "
                "yourself, and give the program to its step"
            )
        problem = make(run["env"], **run["env_options"])
        problem.reset(seed=run["seed"])
        _, fitness, _, _, info = problem.step("\n".join([*ahead, program]))
    except (OSError, ValueError, LookupError, TypeError, HunchError) as error:
        where = ""
        if module := _missing(error):
            where = f" If {module} is a file of yours, run this in its folder: python PATH/TO/{path.name}."
        raise SystemExit(f"{path.name} cannot be tried again: {error}".rstrip(".") + "." + where) from None
    print(f"fitness {float(fitness):g} in {run['env']}, tried again with seed {run['seed']}")
    print(info["raw"].error or info.get("event", ""))


def _missing(error: BaseException) -> str:
    """Return the module that could not be imported, if that is why; otherwise ""."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and cause.name:  # Gymnasium's own has no name
            return cause.name
        cause = cause.__cause__
    return ""
