"""Policies, FunSearch, generalised planning and games as code with a small real model as the writer.

hunch study policies-written --lm qwen-coder-1.5b qwen-coder-0.5b
hunch study funsearch-written --lm qwen-coder-1.5b
hunch study genplan-written --lm qwen-coder-1.5b
hunch study games-written --lm qwen-coder-1.5b
python -m hunch_studies.programs_written docs/assets/studies/funsearch-written.jsonl   # the recorded rows
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from hunch.methods.program.code_policy import CodePolicyConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.methods.program.gif_mcts import GIFMCTSConfig
from hunch.rl.statistics import over_seeds
from hunch.roles.writer.programs import Attempt
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.seal import sealed_json
from hunch_studies.games.game_code import START
from hunch_studies.games.tabletop.games import Name as Game
from hunch_studies.planbench_chance import PLANNERS, walk
from hunch_studies.planners import table as table_of
from hunch_studies.programs_funsearch import MUTATED, STREAMS
from hunch_studies.programs_policies import MUTATED as MUTATED_POLICIES
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, rows_beside
from hunch_studies.worlds.cap_set import grow
from hunch_studies.worlds.strips.plan_code import Name, PlanCode
from hunch_studies.writers import BEST_OF_N, FAILURES, MODEL, compared, failure_of, result, results, tried
from hunch_studies.writers_beds import BEDS, Bed, control

ByArm: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""What :func:`~hunch_studies.writers.result` returns for each run, by arm."""

BLANK: Final = "blank prompt"
ASKED: Final[Mapping[str, Any]] = {"temperature": 0.9, "max_tokens": 500, "retries": 0, "give_up": 0}
"""The settings of the study ``writers``. A copy, and an answer without a program, count as programs."""

# ---- policies ---------------------------------------------------------------------------------------------

POLICIES_WRITTEN: Final = 16
"""Programs of a run: about five minutes of two cores."""
POLICY_BEDS: Final[Mapping[str, Bed]] = {
    "Household-Pick": control("hunch/Household-Pick-v0", 10, 0.0),
    "FrozenLake in words": control("hunch/FrozenLake-v0", 10, -1.0),
    **{name: BEDS[name] for name in ("CartPole-v1", "MountainCar-v0")},
}
"""Two worlds of texts, and two problems of the study ``writers``, which has no blank prompt.

The lake in words was added once no program had solved a household game.
"""


def policy_arms(bed: Bed, model: str, programs: int) -> tuple[Arm, ...]:
    """Return best of n with the plain request and with the blank prompt, and random changes of a program."""
    plain = CodePolicyConfig(**ASKED, search="single", request="plain")
    mutated = CodePolicyConfig(retries=0, give_up=0, search="single")

    def arm(label: str, method: str, options: CodePolicyConfig, lm: str = "", **env_options: Any) -> Arm:
        env_options = {**bed.options, **env_options}
        config = RunConfig(method=method, env=bed.env, env_options=env_options, lm=lm, options=options)
        return Arm(label, replace(config, steps=programs, envs=STREAMS))

    return (
        arm(BEST_OF_N, "code-policy", plain, model),
        arm(f"{BEST_OF_N}, {BLANK}", "code-policy", plain, model, blank=True),
        arm(MUTATED_ONCE, MUTATED_POLICIES.name, mutated),
    )


def _policy_parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(STREAMS, round(POLICIES_WRITTEN * scale.share))
    return _each(scale, POLICY_BEDS, partial(policy_arms, programs=programs), _bed_rows)


# ---- FunSearch --------------------------------------------------------------------------------------------

PROGRAMS: Final = 64
"""Programs of a run: about seven minutes of one core."""
AFTER: Final = (16, 32, 64)
"""Numbers of programs after which the best is shown."""
ISLANDS: Final = "islands and clusters"
MUTATOR: Final = "random changes on islands"
MUTATED_ONCE: Final = "random changes of the first program"
RANDOM: Final = "random priorities"
FUNSEARCH_BEDS: Final[Mapping[str, Bed]] = {
    # No chance is in the size of a set, so the winner has the same again.
    "Cap sets in dimension 6": Bed("hunch/Heuristic-CapSet-v0", {"n": 6}, {"n": 6}),
    "Online bin packing": BEDS["bin packing"],
}
"""The problems of the paper; dimension 6 is the last one in which the largest cap set is proven."""


def funsearch_arms(bed: Bed, model: str, programs: int) -> tuple[Arm, ...]:
    """Return FunSearch and best of n with the same request, the blank prompt, and both with a mutator."""

    def arm(label: str, method: str, options: FunSearchConfig, lm: str = "", **env_options: Any) -> Arm:
        config = RunConfig(
            method=method,
            env=bed.env,
            env_options={**bed.options, **env_options},
            lm=lm,
            steps=programs,
            envs=STREAMS,
            options=options,
        )
        return Arm(label, config)

    return (
        arm(ISLANDS, "funsearch", FunSearchConfig(**ASKED), model),
        arm(BEST_OF_N, "funsearch", FunSearchConfig(search="single", **ASKED), model),
        arm(f"{ISLANDS}, {BLANK}", "funsearch", FunSearchConfig(**ASKED), model, blank=True),
        arm(MUTATOR, MUTATED.name, FunSearchConfig(retries=0, give_up=0)),
        arm(MUTATED_ONCE, MUTATED.name, FunSearchConfig(search="single", retries=0, give_up=0)),
    )


def _funsearch_rows(bed: Bed, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    by_arm, tokens = results(bed, listed, seeds, folder)
    if "CapSet" in bed.env:
        programs = listed[0].config.steps
        by_arm[RANDOM] = [random_priorities(bed.options["n"], programs, seed) for seed in range(seeds)]
    return _written(by_arm, tokens, folder)


def random_priorities(n: int, draws: int, seed: int) -> dict[str, Any]:
    """Return the largest of some cap sets grown with random priorities, as a row of as many programs."""
    elements = np.array(list(itertools.product((0, 1, 2), repeat=n)))
    rng = np.random.default_rng([seed, n])
    sizes = [len(grow(elements, rng.normal(size=len(elements)))) for _ in range(draws)]
    so_far = np.maximum.accumulate(sizes)
    best = {number: float(so_far[number - 1]) for number in AFTER if number <= draws}
    shares = {"failed": 0.0, "copies": 0.0}
    return {"best": best, "unseen": float(so_far[-1]), **shares, "program": "", "mean": float(np.mean(sizes))}


def _funsearch_parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(2 * STREAMS, round(PROGRAMS * scale.share))
    return _each(scale, FUNSEARCH_BEDS, partial(funsearch_arms, programs=programs), _funsearch_rows)


# ---- generalised planning ---------------------------------------------------------------------------------

DOMAINS: Final[tuple[Name, ...]] = ("ferry", "miconic", "logistics", "blocksworld")
"""The domains that are measured; the request was written with gripper."""
ROUNDS: Final = 5
"""Programs of a chat: one, and up to four repairs after feedback (paper)."""
REPAIRS: Final = "repairs after feedback"
PAPER: Final = f"{BEST_OF_N}, the paper's request"


def planning_arms(domain: str, model: str) -> tuple[Arm, ...]:
    """Return chats with repairs, and as many first programs: asked plainly, blank, and as in the paper."""

    def arm(label: str, search: str, request: str, **env_options: Any) -> Arm:
        options: Any = CodePolicyConfig(**{**ASKED, "search": search, "request": request})
        config = RunConfig(
            method="code-policy",
            env="hunch/PlanCode-v0",
            env_options={"domain": domain, **env_options},
            lm=model,
            steps=ROUNDS,
            envs=ROUNDS if search == "single" else 1,
            options=options,
        )
        return Arm(label, config)

    return (
        arm(REPAIRS, "linear", "plain"),
        arm(BEST_OF_N, "single", "plain"),
        arm(f"{BEST_OF_N}, {BLANK}", "single", "plain", blank=True),
        arm(PAPER, "single", "paper"),
    )


def _planning_bed(domain: str) -> Bed:
    return Bed("hunch/PlanCode-v0", {"domain": domain}, {"domain": domain, "split": "test"})


def _planning_rows(domain: str, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    return _bed_rows(_planning_bed(domain), listed, seeds, folder)


def by_chance(domain: Name, steps: int = 1_000) -> dict[str, float]:
    """Return the share of the held-out problems that walks by chance solve, by the kind of walk."""
    problem = PlanCode(domain=domain, split="test")
    return {
        name: float(np.mean([walk(task, weigh, steps, i) for i, task in enumerate(problem.tasks)]))
        for name, weigh in PLANNERS.items()
    }


def _chance_table(folder: Path) -> str:
    rows = [[domain, *(f"{share:.2f}" for share in by_chance(domain).values())] for domain in DOMAINS]
    return table_of(" | ".join(["domain", *PLANNERS]), rows)


def _planning_parts(scale: Scale, data: Path) -> list[Part]:
    by_title = {domain.capitalize(): domain for domain in DOMAINS}
    parts = _each(scale, by_title, planning_arms, _planning_rows)
    return [*parts, Part("Planners by chance", (), beside=_chance_table)]


# ---- games as code ----------------------------------------------------------------------------------------

GAMES: Final[tuple[Game, ...]] = ("tic-tac-toe", "kuhn")
"""Games without and with hidden cards."""
RULES_WRITTEN: Final = 5
"""Programs of a run: four minutes of one core, beside other work."""
UNWRITTEN: Final = "no program: functions in which nothing changes"
REFINED: Final = "Thompson sampling over programs, with feedback"


def game_arms(game: Game, model: str, programs: int) -> tuple[Arm, ...]:
    """Return the search of the paper, best of n with the same request, and the blank prompt."""

    def arm(label: str, search: Any, **env_options: Any) -> Arm:
        options = GIFMCTSConfig(**{**ASKED, "max_tokens": 1_200}, request="plain", search=search)
        env_options = {"game": game, **env_options}
        config = RunConfig(
            method="gif-mcts",
            env="hunch/GameCode-v0",
            env_options=env_options,
            lm=model,
            steps=programs,
            options=options,
        )
        return Arm(label, config)

    return (
        arm(REFINED, "thompson"),
        arm(BEST_OF_N, "single"),
        arm(f"{BEST_OF_N}, {BLANK}", "single", blank=True),
    )


def _game_rows(game: Game, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    bed = Bed("hunch/GameCode-v0", {"game": game}, component="held_out_exact")
    by_arm, tokens = results(bed, listed, seeds, folder)
    by_arm[UNWRITTEN] = [unwritten(game)] * seeds
    return _written(by_arm, tokens, folder)


def unwritten(game: Game) -> dict[str, Any]:
    """Return the row of the functions as they stand in the paper's request, in which nothing changes."""
    options = {"game": game}
    trial = tried("hunch/GameCode-v0", options, START)
    bed = Bed("hunch/GameCode-v0", options, component="held_out_exact")
    return {**result(bed, [Attempt(0, START, None).after(trial)]), "program": ""}


def _game_parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(2, round(RULES_WRITTEN * scale.share))
    by_title = {game.capitalize(): game for game in GAMES}
    return _each(scale, by_title, partial(game_arms, programs=programs), _game_rows)


# ---- parts ------------------------------------------------------------------------------------------------


def _each(
    scale: Scale,
    problems: Mapping[str, Any],
    arms_of: Callable[[Any, str], tuple[Arm, ...]],
    rows_of: Callable[[Any, Sequence[Arm], int, Path], str],
) -> list[Part]:
    """Return a part for each model and problem.

    Args:
        scale: Its models, or the usual one.
        problems: What the arms are made for, by the title of the part.
        arms_of: Returns the arms of a problem and a model.
        rows_of: Keeps the rows of a problem's runs, and returns their table.
    """
    parts = []
    for model in scale.lms or (MODEL,):
        for name, problem in problems.items():
            title = name if len(scale.lms) < 2 else f"{name}, {model}"
            measure = partial(rows_of, problem)
            parts.append(Part(title, arms_of(problem, model), measure=measure, apart=True))
    return parts


# ---- rows -------------------------------------------------------------------------------------------------

OTHERS: Final[Mapping[str, str]] = {
    BEST_OF_N: BEST_OF_N,
    f"{BEST_OF_N}, {BLANK}": "the blank prompt",
    f"{ISLANDS}, {BLANK}": "the blank prompt",
    MUTATOR: MUTATOR,
    MUTATED_ONCE: MUTATED_ONCE,
    RANDOM: RANDOM,
}
"""The arms over which leads are shown, and what they are called in the head of a table."""
ROWS: Final = "rows.jsonl"
"""File in the folder of a part, with a row for each run: ``part``, ``arm``, ``seed``, and what it found."""


def _bed_rows(bed: Bed, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Keep what the runs in a bed found as rows, and return their table, in Markdown."""
    return _written(*results(bed, listed, seeds, folder), folder)


def _written(by_arm: ByArm, tokens: Mapping[str, Sequence[int]], folder: Path) -> str:
    """Keep what runs found as rows, and return their table, in Markdown."""
    lines = rows_beside(folder / ROWS, by_arm, max(map(len, by_arm.values()), default=0))
    for label, rows in by_arm.items():
        for seed, row in enumerate(rows):
            line = {"part": folder.name, "arm": label, "seed": seed, **row}
            if label in tokens:
                line["tokens"] = tokens[label][seed]
            lines.append(line)
    write_atomically(folder / ROWS, b"".join(map(sealed_json, lines)))
    return _table(by_arm, tokens)


def _table(by_arm: ByArm, tokens: Mapping[str, Sequence[int]]) -> str:
    """Return the table of arms, in Markdown."""
    numbers = [set(row["best"]) for rows in by_arm.values() for row in rows]
    common = set.intersection(*numbers) if numbers else set()  # arms may have no seed in common yet
    after = [n for n in AFTER if n in common] or sorted(common)[-1:]
    others = {arm: name for arm, name in OTHERS.items() if arm in by_arm}
    text = compared(by_arm, tokens, others, after)
    if RANDOM in by_arm:
        one = np.mean([row["mean"] for row in by_arm[RANDOM]])
        text += f"\n\nOne draw of random priorities grows a set of {one:.1f} on average."
    return text


def outcomes(by_arm: ByArm) -> str:
    """Return how many programs of games failed and why, and passed tests, in Markdown."""
    lines = []
    for label, rows in by_arm.items():
        fitness = [value for row in rows for value in row["fitness"]]
        errors = [error for row in rows for error in row["errors"]]
        why = Counter(failure_of(e) for e, value in zip(errors, fitness, strict=True) if value is None)
        passing = [value for value in fitness if value is not None]
        counts = [len(fitness), *(why[kind] for kind in FAILURES), passing.count(0.0)]
        counts.append(sum(value > 0 for value in passing))
        best = over_seeds([max((value or 0.0 for value in row["fitness"]), default=0.0) for row in rows])
        lines.append([label, *map(str, counts), best.short()])
    columns = ["arm", "programs", *FAILURES, "no test passed", "some passed", "tests passed by the best"]
    return table_of(" | ".join(columns), lines)


def recorded(file: Path) -> str:
    """Return the tables of recorded rows, in Markdown, on the seeds that all arms have."""
    by_part: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    for row in read_lines(file):
        row["best"] = {int(n): fitness for n, fitness in row["best"].items()}
        by_part.setdefault(row["part"], {}).setdefault(row["arm"], {})[row["seed"]] = row
    texts = []
    for part, by_seed in by_part.items():
        seeds = sorted(set.intersection(*(set(rows) for rows in by_seed.values())))
        by_arm = {arm: [rows[seed] for seed in seeds] for arm, rows in by_seed.items()}
        with_tokens = {arm: rows for arm, rows in by_arm.items() if all("tokens" in row for row in rows)}
        tokens = {arm: [row["tokens"] for row in rows] for arm, rows in with_tokens.items()}
        texts.append(f"### {part}\n\n{_table(by_arm, tokens)}")
        if REFINED in by_arm:
            texts.append(outcomes(by_arm))
    return "\n\n".join(texts)


STUDIES = {
    "policies-written": Study(
        "policies-written",
        "Does a small real model write policies that read its task, in household games and in control?",
        "None for writers of this size.",
        "A program chooses one of the listed commands; the request shows the beginning of an episode and ten "
        "commands taken at random. There is no search: every program is asked for afresh.",
        _policy_parts,
        lm_for="code-policy",
        seeds=3,
    ),
    "funsearch-written": Study(
        "funsearch-written",
        "With a small real model as the writer: does FunSearch find better programs than asking afresh?",
        "With millions of samples, FunSearch found heuristics for online bin packing that are better than "
        "best fit, and a cap set of 512 vectors in dimension 8.",
        "A run has 64 programs, where the paper has millions: it shows the beginning of a search. Islands "
        "are never reset in so few programs.",
        _funsearch_parts,
        lm_for="funsearch",
        seeds=3,
    ),
    "genplan-written": Study(
        "genplan-written",
        "Does a small real model write programs that plan for a whole domain, and do repairs help?",
        "Silver et al. (AAAI 2024) report that GPT-4's programs solve most domains after debugging.",
        "A chat is one request and its repairs, each of which shows the last program and its feedback alone. "
        "The paper first has the domain summarised and a strategy told, and keeps the whole conversation. "
        "The problems are drawn by us.",
        _planning_parts,
        lm_for="code-policy",
        seeds=3,
    ),
    "games-written": Study(
        "games-written",
        "Does a small real model write the rules of a game as code, and does feedback help?",
        "Play with code that Gemini 2.5 Pro wrote beats or ties with the model as the player in nine of ten "
        "games (Lehrach et al., 2025).",
        "A run has five programs. The request is the plain one: a line for each function, and no program.",
        _game_parts,
        lm_for="gif-mcts",
        seeds=1,
    ),
}

if __name__ == "__main__":
    print_table(
        recorded, "Tables of policies, FunSearch, generalised planning and games, written by a real model."
    )
