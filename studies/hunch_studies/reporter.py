"""Planner, actor, reporter: the value of training the reporter.

hunch study reporter
python -m hunch_studies.reporter ROWS    # of planners that write, in docs/assets/studies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from hunch.envs import make
from hunch.methods.settings import configure
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import contrast, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.stored import finished
from hunch_contrib.planner.planner_actor_reporter import PlannerActorReporter
from hunch_studies import reporter_written
from hunch_studies.planners import SKILL, SKILLS, skills_part, table
from hunch_studies.recorded_rows import print_table
from hunch_studies.reporter_written import ASKED, BLANK, LONGEST, RULE, UNINFORMED, WORDS
from hunch_studies.study import Part, Scale, Seeded, Study, by_name, kept, runs_of
from hunch_studies.worlds.secret import VERBS, Question

ID: Final = "hunch/SecretProperty-v0"
Success: TypeAlias = dict[str, dict[int, float]]
"""Success by arm and seed."""
ACTOR: Final = replace(SKILL, gamma=0.9, learning_rate=0.1)
ACTOR_STEPS: Final = 80_000
"""Training steps of each of the two verbs."""
STEPS: Final = 15_000
"""Training steps of the reporter."""
EPISODES: Final = 100
LINES: Final[dict[str, dict[str, Any]]] = {
    "trained reporter": {},
    "untrained reporter": {"reporter": "untrained"},
    "scripted reporter, true": {"reporter": "scripted"},
    "scripted reporter, lies in 10 %": {"reporter": "scripted", "lies": 0.1},
    "scripted reporter, lies in 30 %": {"reporter": "scripted", "lies": 0.3},
    "scripted reporter, lies always": {"reporter": "scripted", "lies": 1.0},
}
"""The arms, and how each differs."""
REPORTERS: Final = ("trained reporter", "untrained reporter", "scripted reporter, true")
"""Those of the arms that a model that writes has as its planner."""
EVERY: Final = "Every transcript"
"""Title of the part that asks planners after every transcript."""
UNTOLD: Final = "without instruction and reports"
"""The control of such a planner: the same request, with no more than the examples and its skills so far."""
QUESTIONS: Final[dict[Question, str]] = {"conditional": "A condition", "search": "A search"}


def actors(scale: Scale) -> tuple[Arm, ...]:
    """Return the runs that train the actor, by verb."""
    return tuple(
        Arm(
            verb,
            RunConfig(
                method="q-learning",
                env="hunch/SecretSkill-v0",
                env_options={"verb": verb},
                steps=scale.steps(ACTOR_STEPS),
                options=ACTOR,
            ),
        )
        for verb in VERBS
    )


def arms(question: str, out: Path, scale: Scale) -> tuple[Arm, ...]:
    """Return every arm, and flat learning with the steps of actor and reporter together."""
    config = RunConfig(method="q-learning", env=ID, env_options={"question": question})
    steps = scale.steps(2 * ACTOR_STEPS + STEPS)
    flat = Arm(f"flat Q-learning, {steps:,} steps", replace(config, steps=steps, options=ACTOR))
    config = replace(config, method="planner-actor-reporter", lm=RULE)
    return (*(_planned(label, own, config, out, scale) for label, own in LINES.items()), flat)


def written(question: Question, lms: Sequence[str], out: Path, scale: Scale) -> tuple[Arm, ...]:
    """Return the arms of planners that write, beside the rule, a bag of words, and one that knows nothing.

    All have the same skills, and plans of the same length at most.
    """
    longest = {"longest": LONGEST[question]}
    asked = {RULE: longest, **{lm: {**longest, **ASKED} for lm in lms}}
    names = {lm: name for name, lm in by_name((RULE, *lms), (WORDS, UNINFORMED)).items()}
    listed = {
        f"{names[lm]}, {reporter}": (lm, {**own, **LINES[reporter]})
        for lm, own in asked.items()
        for reporter in REPORTERS
    }
    told = {**longest, **LINES["scripted reporter, true"]}
    listed |= {f"{names[lm]}, {UNTOLD}": (lm, {**told, **ASKED, **BLANK}) for lm in lms}
    listed |= {f"{lm}, scripted reporter, true": (lm, told) for lm in (WORDS, UNINFORMED)}
    config = RunConfig(method="planner-actor-reporter", env=ID, env_options={"question": question})
    return tuple(
        _planned(label, own, replace(config, lm=lm), out, scale) for label, (lm, own) in listed.items()
    )


def _planned(label: str, options: Mapping[str, Any], config: RunConfig, out: Path, scale: Scale) -> Seeded:
    own = configure(PlannerActorReporter, None, options)
    steps = scale.steps(STEPS) if own.reporter == "trained" else 1
    return Seeded(
        label, replace(config, steps=steps), settings_by_seed=partial(_skilled, own, actors(scale), out)
    )


def _skilled(options: Any, skills: Sequence[Arm], out: Path, seed: int) -> dict[str, Any]:
    folders = tuple(str(out / Part(SKILLS, ()).folder / arm.folder / f"seed-{seed}") for arm in skills)
    return {"options": replace(options, skills=folders)}


def measured(question: str, listed: Sequence[Arm], scale: Scale, folder: Path) -> str:
    """Return the success of every arm in new episodes."""
    found = successes(question, listed, scale, folder)
    rows = []
    for arm in listed:
        result = finished(runs_of(arm, 1, folder)[0])
        trained = "-" if result is None or arm.label.startswith("flat") else len(result.episodes)
        rows.append((arm.label, over_seeds(list(found[arm.label].values())), trained))
    return table("arm | success | episodes of training, seed 0", rows)


def measured_written(
    question: str, lms: Sequence[str], listed: Sequence[Arm], scale: Scale, folder: Path
) -> str:
    """Return the success of every arm in new episodes, and the leads of each planner's reporters."""
    names = by_name((RULE, *lms), (WORDS, UNINFORMED))
    return leads_of(successes(question, listed, scale, folder), list(names))


def leads_of(found: Mapping[str, Mapping[int, float]], names: Sequence[str]) -> str:
    """Return success by arm, and leads: over the reporter that tells nothing, and over each control.

    Args:
        found: Success of each arm, by seed.
        names: The planners.
    """
    leads = []
    for name in names:
        trained, untrained, true = (f"{name}, {reporter}" for reporter in REPORTERS)
        controls = (f"{name}, {UNTOLD}", *(f"{lm}, {REPORTERS[-1]}" for lm in (WORDS, UNINFORMED)))
        pairs = [(trained, untrained), (true, untrained), *((trained, control) for control in controls)]
        for one, other in pairs:
            if one in found and other in found:
                ahead = contrast(found[one], found[other], best=1.0)
                leads.append((one, other, ahead.said, ahead.lead.short()))
    rows = [(label, over_seeds(list(own.values()))) for label, own in found.items()]
    said = table("arm | minus | verdict | lead, paired by seed", leads)
    return f"{table('arm | success', rows)}\n\n{said}"


def successes(question: str, listed: Sequence[Arm], scale: Scale, folder: Path) -> Success:
    """Return the success of the runs of every arm in new episodes."""
    runs = {arm.label: runs_of(arm, scale.seeds, folder) for arm in listed}
    keys = [(label, seed) for label in runs for seed in range(scale.seeds)]

    def played(label: str, seed: int) -> dict[str, Any]:
        agent, _ = load_agent(runs[label][seed])
        ended = evaluate(agent.player, [make(ID, question=question)], scale.episodes(EPISODES), 1_000 + seed)
        return {"success": sum(e.success for e in ended) / len(ended)}

    return by_seed(kept(folder / "success.jsonl", keys, played))


def by_seed(rows: Sequence[Mapping[str, Any]]) -> Success:
    """Return the success in rows by arm and seed."""
    found: Success = {}
    for row in rows:
        label, seed = row["key"]
        found.setdefault(label, {})[seed] = row["success"]
    return found


def recorded(file: Path) -> str:
    """Return the tables of recorded rows of planners that write, each row with the title of its part."""
    rows = read_lines(file)
    parts = dict.fromkeys(row["part"] for row in rows)
    sections = []
    for part in parts:
        own = [row for row in rows if row["part"] == part]
        if part == EVERY:
            told = reporter_written.as_table(own)
        else:
            found = by_seed(own)
            trained = f", {REPORTERS[0]}"
            told = leads_of(found, [label.removesuffix(trained) for label in found if trained in label])
        sections.append(f"### {part}\n\n{told}")
    return "\n\n".join(sections)


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = [skills_part(actors(scale), scale)]
    for question, title in QUESTIONS.items():
        listed = arms(question, data.parent, scale)
        parts.append(Part(title, listed, beside=partial(measured, question, listed, scale), apart=True))
    asked = partial(reporter_written.every_transcript, scale.lms)
    parts.append(Part(EVERY, (), beside=asked))
    for question, title in QUESTIONS.items() if scale.lms else ():
        listed = written(question, scale.lms, data.parent, scale)
        told = partial(measured_written, question, scale.lms, listed, scale)
        parts.append(Part(f"{title}, planners that write", listed, beside=told, apart=True))
    return parts


STUDIES = {
    "reporter": Study(
        "reporter",
        "Does a reporter learn, from the reward alone, what to report to its planner?",
        "A reporter that is trained with the planner in the loop learns to report what matters, and to leave "
        "out noise; plain reinforcement learning fails on such tasks (Dasgupta et al., 2023).",
        "The planner is a script (L0) unless a model is named, which then reads twelve examples of plans "
        "about other things. The actor is Q-learning in a table, with memory of what it saw. The reporter "
        "chooses one of two sentences given the words of an event; one word is the property, and four are "
        "meaningless. Success is measured in 100 new episodes per seed.",
        _parts,
        lm_for="planner-actor-reporter",
        seeds=5,
    )
}

if __name__ == "__main__":
    print_table(recorded, "Print the tables of planners that write.")
