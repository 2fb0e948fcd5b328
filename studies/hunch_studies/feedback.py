"""Study of five ways in which feedback improves a text or its writer: compression by a reward without
references, critique by principles, attack, search with rewind, and repair.

    hunch study feedback
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hunch.core import State
from hunch.lm import load
from hunch.methods.tune.rlhf import RLHFConfig
from hunch.methods.tune.sft import SFTConfig
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.stored import finished
from hunch_contrib.decode.rain import RAINConfig
from hunch_contrib.tune.compress import CompressConfig
from hunch_contrib.tune.constitutional import ConstitutionalConfig
from hunch_contrib.tune.red_team import RedTeamConfig
from hunch_contrib.tune.syndicom import SYNDICOMConfig
from hunch_studies.planners import table as table_of
from hunch_studies.rlhf import ENV as RECIPES
from hunch_studies.rlhf import RLOO, SPLITS, mean, write_well
from hunch_studies.rules.critic import harms
from hunch_studies.study import Part, Scale, Study, runs_of
from hunch_studies.worlds.attack import ANSWER, all_requests
from hunch_studies.worlds.recipes import gold, is_valid, requests, split_clauses

# ---- compression ------------------------------------------------------------------------------------------

COMPRESSION = "hunch/Compression-v0"
READER = "scratch?width=64&layers=2&vocabulary=128"
CHOICES, GROUP = 24_000, 9
"""Rewards that each arm may ask for, and choices for a sentence in each update."""
STREAMS = 16 * GROUP
SENTENCES = 300
"""Held-out sentences; climbing meets each about 80 times."""


def compressing(scale: Scale) -> tuple[Arm, ...]:
    """The policy, parts of its reward, and the controls; climbing works on the sentences it is tested on."""
    steps = max(3, round(CHOICES * scale.share / STREAMS)) * STREAMS
    run = RunConfig(method="compress", env=COMPRESSION, lm=READER, envs=STREAMS, steps=steps)
    run = replace(run, eval_every=steps, eval_episodes=64)

    def arm(label: str, env: dict[str, Any] | None = None, short: bool = False, **options: Any) -> Arm:
        own = replace(run, steps=STREAMS, eval_every=STREAMS) if short else run
        config = CompressConfig(learning_rate=1e-3, group=GROUP, **options)
        return Arm(label, replace(own, env_options=env or {}, options=config))

    held: dict[str, Any] = {"split": "held out", "sentences": SENTENCES}
    return (
        arm("compress"),
        arm("compress, shuffled rewards", shuffle=True),
        arm("compress, without fluency", {"parts": "content,length"}),
        arm("compress, without content", {"parts": "fluency,length"}),
        arm("hill climbing, the same sentences", held, choose="climb"),
        arm("first words", short=True, choose="first"),
        arm("random words", short=True, choose="random"),
    )


def compressed(listed: Sequence[Arm], seeds: int, episodes: int, folder: Path) -> str:
    """F1, whole reward and words of each arm on held-out sentences, in Markdown."""
    rows = []
    for arm in listed:
        scores = {
            measure: [
                evaluated(run, episodes, split="held out", sentences=SENTENCES, measure=measure)
                for run in runs_of(arm, seeds, folder)
            ]
            for measure in ("gold", "reward")
        }
        told = [mean([own.episode_return for own in scores[name]]) for name in ("gold", "reward")]
        kept = mean([own.figures["kept"] for own in scores["gold"]])
        rows.append((arm.label, *told, kept, mean([own.success.value for own in scores["gold"]])))
    return table_of("arm | F1 against gold | reward, all parts | words | valid", rows)


def evaluated(run: Path, episodes: int, **env: Any) -> Any:
    """Return the score of a run in a changed environment, with the same episodes for all runs."""
    options = {"parts": "fluency,content,length"} if "measure" in env else {}
    told = (Path(str(value)).name.replace(" ", "-") for value in env.values())
    name = "-".join([run.name, *told])
    trial = Trial(run=run, env_options={**options, **env}, episodes=episodes, seed=17)
    return evaluate_run(trial, run.parent / "evaluations" / name)


# ---- Constitutional AI ------------------------------------------------------------------------------------

HELPFUL = "foods,spice,close,length"
PRINCIPLES = {
    "diet": "The answer uses no food that the diet of the request forbids.",
    "sea": "The answer sounds like the sea.",
}
DRAFTS, PAIRS, UPDATES = 2_048, 600, 16
ERRORS = (0.1, 0.3, 0.5)
"""Shares of the critic's critiques and verdicts that are wrong."""


def state_principles(data: Path, updates: int) -> None:
    """Train the careless writer, and write the principles down."""
    write_well(data, updates)
    for name, text in PRINCIPLES.items():
        (data / f"{name}.txt").write_text(text + "\n", encoding="utf-8")


def criticised(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """The first stage, its controls and wrong critics; then both stages, a control, and gold labels."""
    drafts, pairs = (max(8, round(n * scale.share)) for n in (DRAFTS, PAIRS))
    run = RunConfig(method="constitutional", env=RECIPES, lm=f"hf:{data / 'writer'}", envs=256)
    rl: dict[str, Any] = {**RLOO, "pairs": pairs}
    later = -(-2 * pairs // 256) * 256 + 256 * max(2, round(UPDATES * scale.share))

    def arm(
        label: str, second: bool = False, principle: str = "diet", error: float = 0.0, **more: Any
    ) -> Arm:
        given: dict[str, Any] = {
            "judge": f"scripted:critic?error={error}",
            "principles": str(data / f"{principle}.txt"),
        }
        own = ConstitutionalConfig(compare=second, drafts=drafts, demonstrations=100, **given, **rl, **more)
        steps = -(-drafts // 256) * 256 + later * second
        env = {"terms": HELPFUL}
        return Arm(
            label, replace(run, steps=steps, eval_every=steps, eval_episodes=64, env_options=env, options=own)
        )

    people = replace(
        run, method="rlhf", options=RLHFConfig(**rl), steps=later, eval_every=later, eval_episodes=64
    )
    return (
        arm("revisions"),
        arm("revisions, another principle", principle="sea"),
        arm("revisions, no critique", critique=False),
        *(arm(f"revisions, critic error {error}", error=error) for error in ERRORS),
        arm("both stages", True),
        arm("both stages, another principle", True, "sea"),
        Arm("RLHF, gold labels of everything", people),
    )


def harmed(listed: Sequence[Arm], seeds: int, texts: int, data: Path, folder: Path) -> str:
    """Harmful clauses per answer, helpful gold, and validity of each arm, in Markdown."""
    every = {"the writer before": [data / "writer"]} | {a.label: runs_of(a, seeds, folder) for a in listed}
    rows = []
    for label, runs in every.items():
        each = np.array([[*harm(run, texts)[:4], harm(run, texts, "held out")[0]] for run in runs])
        rows.append((label, *(mean(list(column)) for column in each.T)))
    return table_of(
        "arm | harmful clauses | helpful gold | valid | distinct | harmful, held-out requests", rows
    )


def harm(
    run: Path, n: int, split: Literal["training", "held out"] = "training", seed: int = 7
) -> tuple[float, ...]:
    """Return what n answers have each: harmful clauses, helpful gold, validity, difference, tokens."""
    agent, _ = load_agent(run)
    known, rng = requests(split), np.random.default_rng(5)
    asked = [known[i] for i in rng.integers(len(known), size=n)]
    lm: Any = agent.models["lm"]
    before = lm.usage.completion_tokens
    texts = agent.player(seed).act([State(str(own)) for own in asked])
    tokens = (lm.usage.completion_tokens - before) / n
    both = list(zip(asked, texts, strict=True))
    helps = [gold(own, text, tuple(HELPFUL.split(","))) for own, text in both]
    valid = [is_valid(split_clauses(text)) for text in texts]
    harmful = [len(harms(str(own), text)) for own, text in both]
    means = [float(np.mean(own)) for own in (harmful, helps, valid)]
    return (*means, len(set(texts)) / n, tokens)


# ---- RAIN -------------------------------------------------------------------------------------------------

BUDGETS = (48, 128)


def searched(data: Path) -> tuple[Arm, ...]:
    """Search with rewind and whole texts, at two budgets and two error rates of the judge; nothing learns."""
    run = RunConfig(method="rain", env=RECIPES, lm=f"hf:{data / 'writer'}", envs=16, steps=16)
    return tuple(
        Arm(f"{name}, {budget} tokens, judge error {error}", replace(run, options=options))
        for error in (0.0, 0.2)
        for budget in BUDGETS
        for name, how in (("RAIN", "rain"), ("best of whole texts", "best"))
        for options in [
            RAINConfig(
                search=how,  # type: ignore[arg-type]
                budget=budget,
                judge=f"scripted:critic?error={error}",
                principle=PRINCIPLES["diet"],
            )
        ]
    )


def rewound(listed: Sequence[Arm], seeds: int, texts: int, data: Path, folder: Path) -> str:
    """Harmful clauses, helpful gold and tokens an answer on held-out requests, in Markdown."""
    every = {"no search": [data / "writer"] * seeds} | {a.label: runs_of(a, seeds, folder) for a in listed}
    rows = []
    for label, runs in every.items():
        each = np.array([harm(run, texts, "held out", 7 + seed) for seed, run in enumerate(runs)])
        rows.append((label, *(mean(list(column)) for column in each.T[[0, 1, 2, 4]])))
    return table_of("arm | harmful clauses | helpful gold | valid | tokens", rows)


# ---- red teaming ------------------------------------------------------------------------------------------

ATTACK = "hunch/Attack-v0"
TRIES, ROUNDS = 1_024, 30
"""Requests before anything is learnt, and updates of A2C with 64 requests each."""


def ask_and_answer(data: Path, share: float) -> None:
    """Train the model that asks, and the target, unless they are there."""
    for name, play, updates in (("asker", "ask", 300), ("target", "answer", 700)):
        if finished(data / name) is None:
            run = RunConfig(method="sft", env=ATTACK, env_options={"play": play}, lm=READER, envs=1)
            steps = max(20, round(updates * share))
            execute(replace(run, steps=steps, options=SFTConfig(max_tokens=40)), data / name)


def attacking(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """The stages at as many requests."""
    tries, rounds = max(64, round(TRIES * scale.share)), max(2, round(ROUNDS * scale.share))
    run = RunConfig(method="red-team", env=ATTACK, env_options={"target": f"hf:{data / 'target'}"}, envs=64)
    run = replace(run, lm=f"hf:{data / 'asker'}", steps=-(-tries // 64) * 64 + 64 * rounds, eval_every=10**6)

    def arm(label: str, **options: Any) -> Arm:
        own = RedTeamConfig(tries=tries, episodes=64, learning_rate=1e-3, max_tokens=16, **options)
        return Arm(label, replace(run, options=own))

    return (
        arm("zero-shot", stage="zero-shot"),
        arm("few-shot", stage="few-shot"),
        arm("supervised", stage="supervised"),
        *(arm(f"RL, KL {kl}", kl=kl) for kl in (1.0, 0.3, 0.1, 0.02)),
    )


def attacked(listed: Sequence[Arm], seeds: int, episodes: int, data: Path, folder: Path) -> str:
    """Hits and distinct requests, in 400 requests and in the run, and hits on a target tuned against RL's."""
    target = tuned(data, folder, runs_of(listed[-2], seeds, folder))
    rows = []
    for arm in listed:
        cells = []
        for name in (str(data / "target"), str(target)):
            scores = [evaluated(run, episodes, target=f"hf:{name}") for run in runs_of(arm, seeds, folder)]
            cells.append(mean([own.success.value for own in scores]))
            distinct = mean([own.figures["distinct"] for own in scores])
        hits = mean([len(set(found(run))) for run in runs_of(arm, seeds, folder)])
        rows.append((arm.label, cells[0], distinct, hits, cells[1]))
    told = " and ".join(f"{len(failing(name))} ({name.name})" for name in (data / "target", target))
    table = table_of("arm | hits | distinct | different hits in the run | hits, tuned target", rows)
    return f"{table}\n\nOf all {len(all_requests())} requests, those that hit: {told}."


def failing(target: Path) -> list[str]:
    """Return all requests that hit a target."""
    answers = load(f"hf:{target}").generate([f"{request} :" for request in all_requests()], 1, ANSWER)
    return [request for request, [text] in zip(all_requests(), answers, strict=True) if harms(request, text)]


def found(run: Path) -> list[str]:
    """Return the requests of a run that hit, in their order."""
    lines = read_lines(run / "episodes.jsonl")
    return [action.strip() for line in lines if line["return"] > 0 for action in line["actions"]]


def tuned(data: Path, folder: Path, runs: Sequence[Path]) -> Path:
    """Return the target after SFT on careful answers to the requests that RL found, among others."""
    out, file = folder / "tuned", folder / "hits.txt"
    if finished(out) is None:
        texts = dict.fromkeys(text for run in runs for text in found(run))
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        env = {"play": "answer", "tuned": str(file), "demonstrations": max(64, 2 * len(texts))}
        run = RunConfig(
            method="sft", env=ATTACK, env_options=env, lm=f"hf:{data / 'target'}", envs=1, steps=100
        )
        execute(replace(run, options=SFTConfig(max_tokens=40, learning_rate=1e-3)), out)
    return out


# ---- SYNDICOM ---------------------------------------------------------------------------------------------


def repairing(scale: Scale) -> tuple[Arm, ...]:
    """Repair with predicted feedback, without any, with that of other answers, and with the right one."""
    steps = max(10, round(2_000 * scale.share))
    run = RunConfig(
        method="syndicom", env="hunch/Repair-v0", lm=READER, envs=1, steps=steps, eval_every=10**6
    )

    def arm(label: str, how: Any, **env: Any) -> Arm:
        own = SYNDICOMConfig(feedback=how, batch_size=32, max_tokens=40, temperature=0.0)
        return Arm(f"{label} feedback", replace(run, options=own, env_options=env))

    return (
        arm("predicted", "predicted"),
        arm("none", "none"),
        arm("shuffled", "shuffled"),
        arm("true", "none", told=True),  # the environment states it, so that none is written
    )


def repaired(listed: Sequence[Arm], seeds: int, episodes: int, folder: Path) -> str:
    """Share of mended recipes of each arm, in Markdown."""
    rows = []
    for arm in listed:
        runs = runs_of(arm, seeds, folder)
        each = [[evaluated(r, episodes, split=split).success.value for r in runs] for split in SPLITS]
        rows.append((arm.label, *map(mean, each)))
    return table_of("arm | mended | mended, held-out requests", rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    seeds, texts = scale.seeds, scale.episodes(1_000)
    writer = partial(state_principles, data, max(20, round(1_000 * scale.share)))
    short, taught, sought = compressing(scale), criticised(scale, data), searched(data)
    attacks, mending = attacking(scale, data), repairing(scale)
    part = partial(Part, apart=True)  # budgets and environments differ
    return [
        part("Compression", short, beside=partial(compressed, short, seeds, scale.episodes(600))),
        part("Constitutional AI", taught, beside=partial(harmed, taught, seeds, texts, data), prepare=writer),
        part(
            "Search with rewind",
            sought,
            beside=partial(rewound, sought, seeds, texts // 2, data),
            prepare=writer,
        ),
        part(
            "Attack",
            attacks,
            beside=partial(attacked, attacks, seeds, scale.episodes(400), data),
            prepare=partial(ask_and_answer, data, scale.share),
        ),
        part("Repair", mending, beside=partial(repaired, mending, seeds, scale.episodes(400))),
    ]


STUDIES = {
    "feedback": Study(
        "feedback",
        "What do rewards without references, critique, attack, rewind and repair bring?",
        "Each system is above its baselines (Ghalandari et al., ACL 2022; Bai et al., Constitutional AI, "
        "2022; Perez et al., EMNLP 2022; Li et al., RAIN, ICLR 2024; Richardson et al., SYNDICOM, "
        "SIGDIAL 2023).",
        "All models have about 100,000 weights and are trained here, and critics are rules with an error "
        "rate: nothing here is about language models. All hyper-parameters are ours.",
        _parts,
        seeds=5,
    )
}
