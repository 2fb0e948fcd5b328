"""World models as code by small real writers, on the Code World Models Benchmark.

    hunch study cwmb --lm qwen-coder-1.5b
    hunch study cwmb --part "10 calls"

The transitions are those of the authors (folder ``cwmb``, Apache-2.0). Accuracy is the fitness that the
authors use. The last fifth of the episodes is held out from the search; the accuracy of a row is that of the
winner on all transitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from hunch.envs.design.transition_file import Form, Transitions
from hunch.envs.design.world_model import START
from hunch.methods.program.code_policy import CodePolicyConfig
from hunch.methods.program.gif_mcts import GIFMCTSConfig
from hunch.rl.statistics import over_seeds
from hunch.roles.writer.programs import best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.programs_funsearch import attempts_of
from hunch_studies.study import Part, Scale, Study, runs_of

FOLDER: Final = Path(__file__).with_name("cwmb")
MODEL: Final = "qwen-coder-1.5b"
CALLS: Final = 50
"""Programs of a run, as in the paper with the smaller model."""
FEW: Final = 10
"""Programs of a short run, as in the paper with GPT-4 Turbo."""
STREAMS: Final = 1
"""The tree search of the paper asks for one program at a time."""
BASES: Final[Mapping[str, str]] = {
    "CartPole-v1": "CartPole-v1",
    "CliffWalking-v0": "CliffWalking-v1",
    "MountainCar-v0": "MountainCar-v0",
    "Taxi-v3": "Taxi-v4",
    "Acrobot-v1": "Acrobot-v1",
    "Pendulum-v1": "Pendulum-v1",
}
"""Recordings, each with the environment whose text the writer reads. Physics engines are not needed."""
TREE: Final = "GIF-MCTS"
ARMS: Final[Mapping[str, GIFMCTSConfig]] = {
    TREE: GIFMCTSConfig(give_up=0),
    "GIF-MCTS without fix": GIFMCTSConfig(give_up=0, fixes=0),
    "best of n, the paper's request": GIFMCTSConfig(give_up=0, search="single"),
}
TREE_OF_CLASSES: Final = "GIF-MCTS, a class"
SINGLE_CLASSES: Final = "best of n, the paper's request, a class"
ARMS_OF_CLASSES: Final[Mapping[str, GIFMCTSConfig]] = {
    TREE_OF_CLASSES: GIFMCTSConfig(give_up=0),
    SINGLE_CLASSES: GIFMCTSConfig(give_up=0, search="single"),
}
"""The writer is asked for the paper's class with ``set_state`` and ``step``, not for a function."""
PLAIN: Final = "best of n, plain request"
PUBLISHED: Final = """\
Accuracy with Llama-3-70B, 50 calls: CartPole 1.00, CliffWalking 1.00, MountainCar 1.00, Taxi 0.92,
Acrobot 0.54, Pendulum 0.34; without fix the mean of the discrete ones falls from 0.88 to 0.81, and the
return of planning from 0.83 to 0.55 (one seed). No row for a writer of 8 billion weights or fewer is known to
us. (Dainese et al., NeurIPS 2024, arXiv 2405.15383.)"""


def options_of(name: str) -> dict[str, Any]:
    """Return the options of the problem of a recording."""
    return {"file": str(FOLDER / f"{name}.jsonl.gz"), "base": BASES[name]}


def arms(name: str, model: str, calls: int) -> tuple[Arm, ...]:
    """Return the searches with a model as the writer."""
    run = RunConfig(
        method="gif-mcts",
        env="hunch/Transitions-v0",
        env_options=options_of(name),
        lm=model,
        steps=calls,
        envs=STREAMS,
    )
    tokens: dict[str, Any] = {"max_tokens": 1024, "temperature": 0.9}
    searches = [Arm(label, replace(run, options=replace(config, **tokens))) for label, config in ARMS.items()]
    of_classes = replace(run, env_options={**run.env_options, "form": "class"})
    searches += [
        Arm(label, replace(of_classes, options=replace(config, **tokens)))
        for label, config in ARMS_OF_CLASSES.items()
    ]
    plain = CodePolicyConfig(search="single", request="plain", retries=0, give_up=0, **tokens)
    return (*searches, Arm(PLAIN, replace(run, method="code-policy", options=plain)))


@cache
def problems(name: str, form: Form = "function") -> tuple[Transitions, Transitions]:
    """Return the problem of a recording without and with transitions that are held out."""
    options = {**options_of(name), "form": form}
    return Transitions(**options, hold_out=0.0), Transitions(**options)


def form_of(arm: str) -> Form:
    """Return what an arm's writer is asked for."""
    return "class" if arm in ARMS_OF_CLASSES else "function"


def accuracy(name: str, program: str, form: Form = "function") -> dict[str, float]:
    """Return the accuracy of a program on all transitions, and on those that were held out."""
    everything, split = problems(name, form)
    for env in (everything, split):
        env.reset(seed=0)
    whole = everything.step(program)[-1]["raw"]
    held_out = split.step(program)[-1]["raw"].components.get("held_out", 0.0)
    return {"accuracy": whole.fitness or 0.0, "held_out": held_out}


def table(name: str, model: str, seeds: int, calls: int, folder: Path) -> str:
    """Return the accuracy of the winners."""
    _, env = problems(name)
    floor = accuracy(name, START)
    lines = [
        f"{len(env.buffer)} transitions, {len(env.held_out)} held out; "
        f"no program is above {env.ceiling:.3f}.",
        "",
        "| arm | accuracy | held out | failed | copies |",
        "|---|---|---|---|---|",
        f"| nothing changes | {floor['accuracy']:.2f} | {floor['held_out']:.2f} | | |",
    ]
    for arm in arms(name, model, calls):
        found, attempts = [], []
        for run in runs_of(arm, seeds, folder):
            tried = attempts_of(run)
            attempts += tried
            top = best(tried)
            nothing = {"accuracy": 0.0, "held_out": 0.0}
            found.append(accuracy(name, top.program, form_of(arm.label)) if top else nothing)
        failed = sum(attempt.fitness is None for attempt in attempts) / len(attempts)
        copies = sum(attempt.copy_of is not None for attempt in attempts) / len(attempts)
        cells = [over_seeds([row[key] for row in found]).short() for key in ("accuracy", "held_out")]
        lines.append(f"| {arm.label} | {' | '.join(cells)} | {failed:.0%} | {copies:.0%} |")
    return "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for model in scale.lms or (MODEL,):
        for name in BASES:
            title = name if len(scale.lms) < 2 else f"{name}, {model}"
            for full, title_of in ((CALLS, title), (FEW, f"{title}, {FEW} calls")):
                calls = max(4, round(full * scale.share))
                beside = partial(table, name, model, scale.seeds, calls)
                parts.append(Part(title_of, arms(name, model, calls), beside=beside, apart=True))
    return parts


STUDIES = {
    "cwmb": Study(
        "cwmb",
        "How well do small models write world models as code, and does the tree search help them?",
        PUBLISHED,
        "The program is a function `step(state, action)`, in two arms the paper's class; accuracy only.",
        _parts,
        lm_for="gif-mcts",
        seeds=3,
    )
}
