"""``hunch run``: trains one agent, or resumes its training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hunch import methods
from hunch.cli import options
from hunch.cli.environment import split_environment
from hunch.cli.help import of_run
from hunch.core import HunchError, UsageError
from hunch.runs.resolve import resolve

MORE = "The same command with a larger budget continues it."


@dataclass(frozen=True, kw_only=True)
class RunOptions(options.Launch):
    """Options of ``hunch run``: settings of the run, and the folder for it."""

    seed: int = 0
    """Seed of the agent and of all episodes."""


def run(arguments: Sequence[str]) -> None:
    """Train one agent. The same command resumes a stopped run; with more steps it extends a finished one."""
    names, rest, given = options.split_config(arguments)
    if {"-h", "--help", "--help-all"} & set(rest):
        return of_run(RunOptions, str(run.__doc__), [*names, *rest])
    if not names:
        known = ", ".join(methods.names())
        raise UsageError(f"Name a method first, as in 'hunch run dqn-prior'; there are {known}.")
    method = methods.find(names[0])
    env_options, rest = given.pop("env_options", {}), [*names[1:], *rest]
    if any(token.startswith(("--env.", "--reader")) for token in rest):  # most runs leave them out
        rest, more = split_environment(rest)
        env_options |= more
    method_options = options.options_of(method, rest, given.pop("options", {}))
    parts = {"where_": options.with_defaults(RunOptions, given), "method_": method_options}
    parsed = options.parse(f"run {method.name}", f"{method.summary} ({method.paper})", parts, rest)
    where = parsed.where_
    config = options.run_config(method.name, where, env_options, parsed.method_, seed=where.seed)
    resolved = resolve(config, where.board)
    budget = options.budget_of(where.budget)
    if where.dry_run:
        from hunch.cli.estimate import dry_run  # it loads what runs need

        return dry_run([method.name], [resolved])
    # A wrong option is told before these are read.
    from hunch.methods.tune.agent import WritingConfig  # as said
    from hunch.runs.callbacks import Watch  # as said
    from hunch.runs.execute import execute, interruptible  # as said
    from hunch.runs.progress import RunProgress  # as said

    out = where.out or options.default_folder([config])
    try:
        with interruptible() as stop, RunProgress(method.name, config.steps, resolved.loading) as progress:
            watch = Watch(stop=stop, report=progress.update, say=progress.say)
            result = execute(resolved, out, budget=budget, watch=watch)
    except KeyboardInterrupt:
        place = f"the last checkpoint in {out}, or from the beginning without one"
        raise KeyboardInterrupt(f"stopped at once; the same command goes on from {place}.") from None
    print(result)
    if result.stopped:
        raise HunchError(f"{result.stopped} {MORE}")
    if not result.complete:
        done = f"stopped after {result.steps:,} of {config.steps:,} steps"
        raise KeyboardInterrupt(f"{done}, saved in {out}; the same command continues the run.")
    print(f"Kept in {out}.")
    per_update = 0
    if isinstance(resolved.options, WritingConfig) and result.agent is not None:
        per_update = result.agent.first_update  # 0 where something else is learnt before
    if len(result.episodes) < per_update:
        print(
            f"No update was made, so the model is as it was: {len(result.episodes):,} episodes ended, and an "
            f"update takes {per_update:,}. Take more steps, or fewer --episodes."
        )
    best = next((out / name for name in ("best.py", "best.txt") if (out / name).is_file()), None)
    if best is not None:
        print(f"Best program: {best}, fitness {result.best:.6g}.")
    elif (out / "programs.jsonl").is_file():
        print(f"No program ran; {out / 'programs.jsonl'} says of each why.")
