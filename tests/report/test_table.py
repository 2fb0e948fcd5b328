"""The verdict below a table: what the seeds at hand show, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from math import isnan, nan
from pathlib import Path

from rich.console import Console

from hunch.cli.arms import _render
from hunch.envs import DesignProblem
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.report.curves import searches
from hunch.report.table import Row, _median_reached, rows, verdict, write
from hunch.rl.statistics import over_seeds
from hunch.runs.compare import Arm, Outcome, jobs
from hunch.runs.execute import RunConfig, execute


def row(label: str, model: str, evidence: str, *scores: float) -> Row:
    return Row(
        label=label,
        environment="e",
        model=model,
        evidence=evidence,
        seeds=len(scores),
        steps=1,
        success=over_seeds(scores),
        returns=over_seeds(scores),
        area=over_seeds(scores),
        steps_to_half=None,
        by_seed=dict(enumerate(scores)),
        requests={"action prior": 7} if model != "none" else {},
        calls=0,
        hits=0,
        tokens=0,
        model_seconds=0.0,
        seconds=0.0,
    )


TABLE = (
    row("dqn", "none", "-", 0.0, 0.1, 0.05),
    row("dqn-prior", "minilm", "L3", 0.7, 0.75, 0.73),
    row("dqn-prior, random k", "uniform", "L0", 0.0, 0.1, 0.0),
    row("dqn-prior, words", "words", "L0", 0.64, 0.66, 0.72),
)


def test_long_names_are_folded_and_not_cut_at_80_columns() -> None:
    spec = "scripted:frozenlake?error=0.3&refusal=0.1"
    console = Console(width=80, file=StringIO())
    console.print(_render([row("my_package:METHOD, random k", spec, "L0", 0.1, 0.2, 0.3)], "a title"))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)


def test_the_verdict_says_what_is_shown() -> None:
    """Ahead of two lines, and not of the lexical control."""
    assert verdict(TABLE) == [
        "dqn-prior (L3) over dqn: shown, by 0.68 [0.61, 0.74]; "
        "over dqn-prior, random k: shown, by 0.69 [0.59, 0.79]; "
        "over dqn-prior, words: not shown, by 0.05 [-0.05, 0.15]"
    ]


def test_each_of_several_models_has_a_verdict() -> None:
    """A model of a lower evidence level has one, too; controls have none."""
    writes = row("dqn-prior, pocket", "pocket", "L1", 0.9, 0.95, 0.93)
    first, second = verdict([*TABLE[1:], writes])
    assert "; over dqn-prior, pocket: not shown, by -0.20 [-0.20, -0.20]" in first
    assert second.startswith("dqn-prior, pocket (L1) over dqn-prior: shown, by 0.20 [0.20, 0.20]; ")
    assert "over dqn-prior, words: shown, by 0.25 [0.15, 0.35]" in second


def test_the_blank_prompt_is_a_control() -> None:
    [said] = verdict([*TABLE[:2], row("dqn-prior, blank prompt", "minilm", "L3", 0.1, 0.15, 0.13)])
    assert "over dqn-prior, blank prompt: shown, by 0.60 [0.60, 0.60]" in said


def test_the_verdict_turns_with_the_data() -> None:
    worse = row("dqn-prior", "minilm", "L3", 0.7, 0.75, 0.05)
    assert "over dqn: not shown, by 0.45" in verdict([*TABLE[:1], worse, *TABLE[2:]])[0]
    two = [row(r.label, r.model, r.evidence, *list(r.by_seed.values())[:2]) for r in TABLE]
    (said,) = verdict(two)  # one sentence, not one for each pair of arms
    assert said.startswith("none from 2 seeds in common, 3 are needed (--seeds 3). Success, best first: ")
    listed = said.partition("best first: ")[2].split("; ")
    assert listed[0].startswith("dqn-prior (L3) 0.7")
    assert sorted(listed) == sorted(f"{r.label} ({r.evidence}) {r.success.short()}" for r in two)


def test_runs_with_the_same_seed_are_compared() -> None:
    """Pools differ more than methods do; a run without a partner does not count."""
    own = row("dqn-prior", "minilm", "L3", 0.3, 0.5, 0.7, 0.8, 0.95)
    words = row("dqn-prior, words", "words", "L0", 0.2, 0.41, 0.59, 0.7, 0.86, 1.0)
    assert verdict([own, words]) == ["dqn-prior (L3) over dqn-prior, words: shown, by 0.10 [0.09, 0.11]"]
    worse = row("dqn-prior, words", "words", "L0", 0.2, 0.61, 0.59, 0.7, 0.86)
    assert verdict([own, worse]) == ["dqn-prior (L3) over dqn-prior, words: not shown, by 0.06 [-0.06, 0.17]"]


def test_where_there_is_no_room_nothing_can_be_shown() -> None:
    rule = row("rule", "none", "-", 1.0, 1.0, 0.98)
    (said,) = verdict([TABLE[1], rule])
    assert "over rule: cannot be shown here (no room: the other has 0.99 of 1), lead -0.27" in said


def test_without_a_model_nothing_is_claimed() -> None:
    assert verdict([TABLE[0], TABLE[2]]) == []
    assert verdict([TABLE[1]]) == []


def test_it_is_written_beside_the_table(tmp_path: Path) -> None:
    write(TABLE, tmp_path)
    assert (
        (tmp_path / "verdict.txt")
        .read_text()
        .startswith("dqn-prior (L3) over dqn: shown, by 0.68 [0.61, 0.74]; over dqn-prior, random k: shown")
    )
    stored = json.loads((tmp_path / "table.json").read_text())
    assert (stored[1]["requests, action prior"], "requests, action prior" in stored[0]) == (7, False)
    assert stored[1]["by_seed"] == {"0": 0.7, "1": 0.75, "2": 0.73}
    assert (stored[1]["success_low"], stored[1]["success_range_of"]) == (0.7, 3)


# ---- searches for programs --------------------------------------------------------------------------------


def search(label: str, model: str, *best: float) -> Row:
    """A search in which no program solves the problem."""
    known = {"best": over_seeds(best), "best_by_seed": dict(enumerate(best))}
    return replace(row(label, model, "L3" if model == "m" else "-", *[0.0] * len(best)), **known)


def test_a_search_for_programs_is_judged_by_its_best_programs() -> None:
    table = [search("bandit", "m", -117.0, -117.0, -120.0), search("mutator", "none", -200.0, -200.0, -190.0)]
    assert verdict(table) == ["bandit (L3) over mutator: shown, by 78.67 [60.02, 97.31]"]
    assert verdict([replace(each, best=None) for each in table]) == [
        "bandit (L3) over mutator: cannot be shown here (no run of either ever succeeded), "
        "lead 0.00 [0.00, 0.00]"
    ]


def letters() -> DesignProblem:
    start = "def f(x):\n    return x\n"
    return DesignProblem(
        lambda program: float(len(program)),
        task="Write a long function.",
        function="f",
        parameters=("x",),
        start=start,
    )


def test_the_score_is_the_best_program_where_a_function_makes_the_problem(tmp_path: Path) -> None:
    config = RunConfig(
        method="funsearch",
        env=f"{__name__}:letters",
        lm="scripted:mutator",
        steps=2,
        options=FunSearchConfig(),
    )
    (job,) = jobs([Arm("funsearch", config)], seeds=1, out=tmp_path)
    (row,) = rows([Outcome(job, execute(job.config, job.folder))])
    assert row.measure == "best program"
    assert row.score.value > 1


def test_a_search_is_known_by_its_method_where_the_problem_cannot_be_imported() -> None:
    written = RunConfig(method="funsearch", env="nowhere_at_all:problem", options=FunSearchConfig())
    assert searches(Arm("funsearch", written))
    assert not searches(Arm("alone", replace(written, method="zero-shot", options=ZeroShotConfig())))


def test_seeds_without_an_episode_at_the_end_are_left_out(tmp_path: Path) -> None:
    """An episode takes up to 20 steps; of 22 steps the last quarter may see no end."""
    config = RunConfig(method="zero-shot", env="hunch/FrozenLake-v0", lm="uniform", steps=22)
    todo = jobs([Arm("zero-shot", config)], seeds=6, out=tmp_path)
    (made,) = rows([Outcome(job, execute(job.config, job.folder)) for job in todo])
    known = [success for success in made.by_seed.values() if not isnan(success)]
    assert 0 < len(known) < len(made.by_seed)
    assert made.success == over_seeds(known)
    assert not isnan(made.success.value)
    assert not isnan(made.returns.value)


def test_a_run_without_a_program_that_runs_has_no_score() -> None:
    table = [search("bandit", "m", 3.0, 4.0, 5.0, 6.0), search("mutator", "none", 1.0, nan, 1.0, 1.0)]
    assert verdict(table) == ["bandit (L3) over mutator: not shown, by 3.67 [-0.13, 7.46]"]  # of three pairs


def test_few_searches_are_listed_by_their_best_programs() -> None:
    table = [search("bandit", "m", -117.0), search("mutator", "none", -100.0)]
    (line,) = verdict(table)
    assert line.startswith(
        "none from 1 seed in common, 3 are needed (--seeds 3). Best program, best first: mutator"
    )


def test_the_file_of_a_table_has_the_best_programs_of_a_search_only(tmp_path: Path) -> None:
    write([search("bandit", "m", 1.0, 2.0, 3.0)], tmp_path / "search")
    (stored,) = json.loads((tmp_path / "search" / "table.json").read_text())
    assert (stored["best"], stored["best_by_seed"]) == (2.0, {"0": 1.0, "1": 2.0, "2": 3.0})
    write(TABLE, tmp_path / "table")
    assert "best" not in json.loads((tmp_path / "table" / "table.json").read_text())[0]


def test_steps_to_half_where_exactly_half_of_the_runs_get_there():
    assert _median_reached([100, 200, None, None]) == 200
    assert _median_reached([100, 200, 300, None]) == 250
    assert _median_reached([100, None, None]) is None
    assert _median_reached([100, 300]) == 200
