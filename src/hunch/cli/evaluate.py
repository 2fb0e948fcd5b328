"""``hunch evaluate``: evaluates a trained agent, also with another model, other proposals or other tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import tyro

from hunch import methods
from hunch.cli.environment import split_environment
from hunch.cli.help import meanings
from hunch.cli.options import read
from hunch.core import UsageError
from hunch.ranges import PositiveInt, check_value
from hunch.runs.config import RunConfig
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.folder import require_writable
from hunch.runs.processes import stoppable
from hunch.runs.stored import read_run

DESCRIPTION = """Play episodes with the agent of a run, without learning. Options of the environment
can be changed, for other tasks, with --env.NAME VALUE. Settings of the agent's model, such as --k or
--prior.way, can be changed, too: 'hunch evaluate RUN --help' lists the possible ones."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of ``hunch evaluate``: the agent's model, and the episodes."""

    lm: str = ""
    """Language model to use instead of the one that the run used. Default: the model of the run."""
    episodes: int = 100
    """Number of episodes to play."""
    checkpoint: Literal["last", "best"] = "last"
    """Checkpoint of the run: the last one, or the one of its best evaluation."""
    step: PositiveInt | None = None
    """Environment step of a checkpoint that the run kept (--keep-every); replaces --checkpoint."""
    seed: int | None = None
    """Seed of the episodes and the agent. Default: the run's seed, which repeats its evaluation episodes."""
    out: Path | None = None
    """Folder for evaluation.json. Default: the result is only printed."""


def evaluate(arguments: Sequence[str]) -> None:
    """Play episodes with the agent of a run, and print the result."""
    if {"-h", "--help"} & set(arguments[:1]):
        read(EvaluateOptions, prog="hunch evaluate RUN", description=DESCRIPTION, args=["--help"])
    if not arguments or not arguments[0] or arguments[0].startswith("-"):
        raise UsageError("Name the folder of a run first, as in 'hunch evaluate runs/demo/dqn-prior/seed-0'.")
    folder = Path(arguments[0])
    config = read_run(folder)
    changeable = {name: getattr(config.options, name) for name in _changeable(config)}
    rest, env_options = split_environment(arguments[1:])
    where, unknown = read(
        _asked(config.options, changeable),
        prog=f"hunch evaluate {folder}",
        description=DESCRIPTION,
        args=rest,
        return_unknown_args=True,
    )
    check_value("step", where.step, PositiveInt | None)
    if where.out:
        require_writable(where.out)
    given = {name: getattr(where, name) for name in changeable}
    changed = {name: value for name, value in given.items() if value != changeable[name]}
    trial = Trial(
        run=folder,
        lm=where.lm,
        options=changed | _others(unknown),
        env_options=env_options,
        episodes=where.episodes,
        seed=where.seed,
        checkpoint=where.step or where.checkpoint,
    )
    advice = f"stopped before the last episode; {folder} is unchanged, and the same command begins again."
    with stoppable(advice):
        score = evaluate_run(trial, where.out)
    for text in score.first_answers:
        print(text, file=sys.stderr)
    print(score)
    if where.out:
        print(f"Kept in {where.out}.")


def _changeable(config: RunConfig) -> list[str]:
    """Return the method's settings that an evaluation may change; none for an agent made in Python."""
    if "agent" in config.objects or config.options is None:
        return []
    method = methods.find(config.method)
    return list(method.changeable)


def _asked(options: Any, changeable: dict[str, Any]) -> type[EvaluateOptions]:
    """Return the type of an evaluation's options, including settings that it may change."""
    hints = get_type_hints(type(options), include_extras=True) if changeable else {}
    meant = meanings(type(options)) if changeable else {}
    entries = [
        (name, Annotated[hints[name], tyro.conf.arg(help=meant[name])], field(default=value))
        for name, value in changeable.items()
    ]
    return make_dataclass("EvaluateOptions", entries, bases=(EvaluateOptions,), frozen=True, kw_only=True)


def _others(unknown: Sequence[str]) -> dict[str, Any]:
    """Return options of the run that an evaluation does not have; the evaluation explains the refusal."""
    if unknown and not unknown[0].startswith("--"):
        raise UsageError(f"Only one run can be evaluated at a time; {unknown[0]!r} is one argument too many.")
    flags = [token.partition("=")[0] for token in unknown if token.startswith("--")]
    return dict.fromkeys(flag.removeprefix("--").replace("-", "_") for flag in flags)
