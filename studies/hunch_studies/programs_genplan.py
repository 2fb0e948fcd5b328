"""Programs that GPT-4 and GPT-3.5 wrote for planning domains, and their repairs, run again in our sandbox.

    hunch study genplan --data DIR

``DIR`` is a clone of github.com/tomsilver/llm-genplan (Silver et al., AAAI 2024). Evidence level L2: answers
of these models in 2023.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.code import extract, flaw
from hunch.sandbox import Sandbox
from hunch_studies.planbench_chance import PLANNERS, walk
from hunch_studies.study import Part, Scale, Study
from hunch_studies.worlds.strips.pddl import read, read_domain, read_problem
from hunch_studies.worlds.strips.plan_code import FUNCTION, PARAMETERS, planned
from hunch_studies.worlds.strips.task import Task

_CHAT = re.compile(r"pg3-(.+)_(\d+)_([^_]+)$")
_TURN = re.compile(r"(\d+)-response\.txt$")
FIRST = 3
"""Number of the answer that holds the first program; those after it are repairs."""
TESTED = 5
"""Test problems of a seed on which programs are run."""
WALKED = 1_000
"""Most actions of a planner by chance, many times those of a plan."""
SECONDS = 3
"""Time limit of a plan in seconds; plans that are found take milliseconds."""


@dataclass(frozen=True)
class Chat:
    """The programs of one conversation.

    Attributes:
        domain: The planning domain.
        seed: Index of its set of problems, of ten.
        model: The recorded model, with the ablation if it is one.
        programs: The first program and its repairs, in order.
    """

    domain: str
    seed: int
    model: str
    programs: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """A program on the test problems of its seed.

    Attributes:
        solved: True if each problem was solved; actions may be written with or without parentheses.
        strict: True if it was solved by actions in parentheses, which the repository's own check asks for.
        error: The first error that it raised; empty if it raised none.
    """

    solved: tuple[bool, ...]
    strict: tuple[bool, ...] = ()
    error: str = ""


def chats(folder: str | Path) -> list[Chat]:
    """Read the recorded conversations of a clone.

    Raises:
        UsageError: if there are none.
    """
    cache = Path(folder).expanduser() / "llm_genplan" / "llm_cache"
    found = []
    for path in sorted(cache.glob("pg3-*/")):
        named = _CHAT.fullmatch(path.name)
        turns = {int(m[1]): file for file in path.iterdir() if (m := _TURN.fullmatch(file.name))}
        texts = [read(turns[turn]) for turn in sorted(turns) if turn >= FIRST]
        if named and texts:
            programs = tuple(extract(text, FUNCTION) for text in texts)
            found.append(Chat(named[1], int(named[2]), named[3], programs))
    if not found:
        raise UsageError(f"{folder} is not a clone of llm-genplan: {cache} holds no conversations.")
    return found


@cache
def problems(folder: Path, domain: str, seed: int) -> tuple[Task, ...]:
    """Return the first test problems of a seed, by number; none if the clone lacks them."""
    pddl = folder / "llm_genplan" / "envs" / "assets" / "pddl" / "pg3"
    files = sorted((pddl / f"{domain}_test" / f"seed{seed}").glob("*.pddl"), key=_number)
    if not files:
        return ()
    of = read_domain(read(pddl / f"{domain}.pddl").lower(), f"{domain}.pddl")
    return tuple(Task(read_problem(read(file).lower(), of, file.name)) for file in files[:TESTED])


def _number(path: Path) -> tuple[int, str]:
    digits = re.sub(r"\D", "", path.stem)
    return int(digits or 0), path.stem


def run(box: Sandbox, program: str, tasks: Sequence[Task]) -> Run:
    """Run a program on problems until it exceeds the time limit on one; check its plans here."""
    if wrong := flaw(program, FUNCTION, PARAMETERS):
        return Run((False,) * len(tasks), (False,) * len(tasks), wrong)
    results = list(planned(box, program, tasks))
    errors = [result.error for result in results if result.error]
    solved, strict = zip(*((result.solved, result.strict) for result in results), strict=True)
    return Run(solved, strict, errors[0] if errors else "")


def executed_plans(folder: str | Path) -> Iterator[tuple[Chat, list[Run]]]:
    """Return every conversation with the runs of its programs; those without test problems are left out."""
    root = Path(folder).expanduser()
    with Sandbox(seconds=SECONDS) as box:
        for chat in chats(root):
            tasks = problems(root, chat.domain, chat.seed)
            if tasks:
                yield chat, [run(box, program, tasks) for program in chat.programs]


@dataclass(frozen=True)
class Rates:
    """The results of a model in one domain.

    Attributes:
        chats: Conversations.
        programs: Programs.
        first: Share of test problems that first programs solved.
        strict: The same, with actions in parentheses only.
        last: Share that last programs solved.
        crash: Share of programs that raised an error or were not programs.
        repair: Share of problems unsolved by a program that the next one solved.
        breaks: Share of problems solved by a program that the next one did not.
    """

    chats: int
    programs: int
    first: float
    strict: float
    last: float
    crash: float
    repair: float
    breaks: float


def rates(runs: Sequence[Sequence[Run]]) -> Rates:
    """Return rates over conversations."""
    pairs = [
        (was, now)
        for chat in runs
        for one, other in pairwise(chat)
        for was, now in zip(one.solved, other.solved, strict=True)
    ]
    return Rates(
        len(runs),
        sum(map(len, runs)),
        float(np.mean([np.mean(chat[0].solved) for chat in runs])),
        float(np.mean([np.mean(chat[0].strict) for chat in runs])),
        float(np.mean([np.mean(chat[-1].solved) for chat in runs])),
        float(np.mean([bool(one.error) for chat in runs for one in chat])),
        _share([now for was, now in pairs if not was]),
        _share([not now for was, now in pairs if was]),
    )


def _share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def study(folder: str | Path) -> Mapping[tuple[str, str], Rates]:
    """Return rates by domain and recorded model."""
    by: dict[tuple[str, str], list[list[Run]]] = defaultdict(list)
    known: set[tuple[str, int]] = set()
    for chat, runs in executed_plans(folder):
        by[chat.domain, chat.model].append(runs)
        known.add((chat.domain, chat.seed))
    for domain, seed in sorted(known):
        tasks = problems(Path(folder).expanduser(), domain, seed)
        for name, weigh in PLANNERS.items():
            walked = tuple(walk(task, weigh, WALKED, i) for i, task in enumerate(tasks))
            by[domain, name].append([Run(walked, walked)])
    return {place: rates(runs) for place, runs in sorted(by.items())}


def markdown(found: Mapping[tuple[str, str], Rates]) -> str:
    """Return the rates as a table."""
    lines = [
        "| domain | recorded model | chats | programs | first program | first, strict | last | crash "
        "| repair | break |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (domain, model), r in found.items():
        figures = " | ".join(f"{x:.2f}" for x in (r.first, r.strict, r.last, r.crash, r.repair, r.breaks))
        lines.append(f"| {domain} | {model} | {r.chats} | {r.programs} | {figures} |")
    return "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Recorded programs", (), beside=lambda folder: markdown(study(scale.data)))]


STUDIES = {
    "genplan": Study(
        "genplan",
        "How often do GPT-4's programs for whole planning domains work, and how much do repairs help?",
        "Silver et al. (AAAI 2024) report that GPT-4's programs solve most domains after debugging.",
        "Recorded answers (L2) of ChatGPT with GPT-4 (chatgpt4) and GPT-3.5 (chatgpt3) of 2023. Programs run "
        "in our sandbox on the first five test problems of each seed, and plans are checked by our planner. "
        "The paper tests on thirty. The crash rate is a share of all programs; repair and break rates are "
        "shares of problems, from one program to the next.",
        _parts,
        recorded="a clone of github.com/tomsilver/llm-genplan",
    )
}
