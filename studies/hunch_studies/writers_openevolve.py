"""The program search of the package openevolve on our beds: same model, same server, same number of programs.

The model is one behind OpenAI's routes: llama.cpp, which ``hunch`` starts and whose key is in a file of the
user, or another server at an address that asks for no key.

openevolve's evaluator runs programs with full rights. Ours only reads the text of a program and gives it to
Hunch's sandbox, and it writes down each program, so that all searches are counted alike.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import gymnasium as gym

from hunch.envs.design.code import structure
from hunch.envs.design.problem import DesignProblem
from hunch.lm.backends.openai import OpenAIModel
from hunch.lm.backends.remote import account
from hunch.lm.registry import build
from hunch.roles.writer.plain import plain_prompt
from hunch.roles.writer.programs import Attempt
from hunch.runs.files import read_lines as runs_lines
from hunch.text_files import read_lines
from hunch_studies.study import kept
from hunch_studies.writers_beds import Bed, first_program

EVALUATOR = """\
from hunch_studies.writers_openevolve import evaluated


def evaluate(path):
    return evaluated(path, {log!r}, {env!r}, {options!r}, {floor!r})
"""
"""The file that openevolve imports."""
REJECTED: Final = re.compile(r"Iteration \d+ error[^:]*: (?P<reason>.*?)(?: \| tokens: .*)?$", re.DOTALL)
"""What openevolve logs of an answer that it rejects."""
SECONDS: Final = 3_600
"""Seconds after which openevolve gives up an answer or an iteration, which then counts as a failed program.
It asks four at a time, and on a busy processor each may take minutes; the sandbox has its own limits."""


def evolved_by_openevolve(
    bed: Bed, model: str, seeds: int, programs: int, path: Path, *, workers: int = 1
) -> list[list[dict[str, Any]]] | None:
    """Return the attempts of a run per seed, from the file or from runs now.

    Args:
        bed: The problem.
        model: Spec of a model behind OpenAI's routes.
        seeds: Number of runs.
        programs: Programs of a run.
        path: File of finished runs.
        workers: Runs side by side.

    Returns:
        The attempts; None if the file lacks a run and openevolve is not installed, or the model is not
        behind such a server: recorded answers have none to openevolve's requests.
    """
    known = {row["key"][0]: row["attempts"] for row in runs_lines(path)}
    if known.keys() >= set(range(seeds)):
        return [known[seed] for seed in range(seeds)]
    if find_spec("openevolve") is None:
        return None
    _, server = build(model, {})  # in use until the last run has ended: llama.cpp's lives no longer
    if not isinstance(server, OpenAIModel):
        return None
    run = partial(_run, bed, server.model, server.line.account.base_url, programs)
    rows = kept(path, [(seed,) for seed in range(seeds)], run, workers=workers)
    return [row["attempts"] for row in rows]


def _run(bed: Bed, model: str, address: str, programs: int, seed: int) -> dict[str, Any]:
    """Let openevolve write programs, and return them as ``attempts``."""
    from openevolve import OpenEvolve
    from openevolve.config import (
        Config,
        DatabaseConfig,
        EvaluatorConfig,
        LLMConfig,
        LLMModelConfig,
        PromptConfig,
    )

    made = gym.make(bed.env, **bed.options).unwrapped
    assert isinstance(made, DesignProblem)
    problem = made.problem
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        log = place / "programs.jsonl"
        (place / "first.py").write_text(first_program(bed, problem), encoding="utf-8")
        source = EVALUATOR.format(log=str(log), env=bed.env, options=dict(bed.options), floor=bed.floor)
        (place / "evaluate.py").write_text(source, encoding="utf-8")
        writer = LLMModelConfig(
            name=model,
            api_base=address,
            api_key=account("openai", address, None, address).own_key or "none",
            temperature=0.9,
            max_tokens=500,
            timeout=SECONDS,
            retries=1,
            retry_delay=1,
            random_seed=seed,
        )
        config = Config(
            max_iterations=programs,
            checkpoint_interval=10 * programs,
            log_level="ERROR",
            random_seed=seed,
            llm=LLMConfig(models=[writer], evaluator_models=[writer]),
            prompt=PromptConfig(
                system_message=plain_prompt(problem, (), ""),
                num_top_programs=1,
                num_diverse_programs=1,
                include_artifacts=True,
            ),
            database=DatabaseConfig(num_islands=2, random_seed=seed),
            evaluator=EvaluatorConfig(timeout=SECONDS, cascade_evaluation=False, parallel_evaluations=4),
            diff_based_evolution=False,
        )
        search = OpenEvolve(
            str(place / "first.py"), str(place / "evaluate.py"), config=config, output_dir=str(place / "out")
        )
        with rejections() as reasons:
            asyncio.run(search.run(iterations=programs))
        lines = [json.loads(line) for line in read_lines(log) if line]
    known: dict[str, int] = {}
    attempts = []
    # The first program is ours, and no model wrote it.
    for number, line in enumerate(lines[1 : programs + 1]):
        first = known.setdefault(structure(line["program"], problem.function), number)
        copy_of = first if first < number else None
        attempts.append(Attempt(number, **line, copy_of=copy_of).line())
    # openevolve passes over an answer that it rejects, without an evaluation. It was asked for, so it counts
    # as failed. It has no place among the programs, which are noted when their evaluation ends.
    rejected = reasons[: max(0, programs - len(attempts))]
    for number, reason in enumerate(rejected, len(attempts)):
        attempts.append(Attempt(number, "", None, error=reason).line())
    return {"attempts": attempts}


@contextmanager
def rejections() -> Iterator[list[str]]:
    """Collect why openevolve rejects answers, in a list that grows: it only logs the reasons."""
    reasons: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if rejected := REJECTED.match(record.getMessage()):
                reasons.append(rejected["reason"])

    log, collect = logging.getLogger("openevolve.process_parallel"), Collect()
    before = log.level, log.propagate
    log.setLevel(logging.WARNING)  # its own level is above
    log.propagate = False
    log.addHandler(collect)
    try:
        yield reasons
    finally:
        log.removeHandler(collect)
        log.level, log.propagate = before


def evaluated(path: str, log: str, env: str, options: Mapping[str, Any], floor: float) -> Any:
    """Return openevolve's result of a program: its fitness above the floor, 0 if it failed.

    Args:
        path: File with the program, which is read and not imported.
        log: File in which the program and its trial are noted.
        env: Environment of the problem.
        options: Options of the environment.
        floor: Fitness that no program is below.
    """
    from openevolve.evaluation_result import EvaluationResult

    program = Path(path).read_text(encoding="utf-8")
    made = gym.make(env, **options).unwrapped
    assert isinstance(made, DesignProblem)
    made.reset(seed=0)
    trial = made.step(program)[-1]["raw"]
    with Path(log).open("a", encoding="utf-8") as file:
        noted = {"fitness": trial.fitness, "error": trial.error, "components": dict(trial.components)}
        file.write(json.dumps({"program": program, **noted}) + "\n")
    score = 0.0 if trial.fitness is None else max(0.0, trial.fitness - floor)
    return EvaluationResult(
        metrics={"combined_score": score}, artifacts={"feedback": trial.error or trial.feedback}
    )
