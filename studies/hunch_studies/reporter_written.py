"""Real models as the planner of planner, actor and reporter: what they do with reports.

The planner is frozen and reads only the instruction, its skills so far and the reports, so there are few
different transcripts. All of them can be asked at once, without environment, skills or training: that says
how often a plan would succeed if the reports were true, and if they told nothing. Between the two lies all
that a reporter can gain.

    hunch study reporter --part "Every transcript" --lm SPEC
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.core import State, World
from hunch.methods.planner.plan import Plan
from hunch.methods.settings import configure
from hunch.rl.statistics import over_pairs
from hunch.roles.planner.skills import single
from hunch.roles.prior.kinds import PriorConfig
from hunch_contrib.planner.planner_actor_reporter import PlannerActorReporter
from hunch_studies.planners import table
from hunch_studies.study import by_name, kept, loaded
from hunch_studies.worlds.secret import THINGS, VERBS, Question, SecretProperty, conditional, search

SHOWN: Final = 12
"""Examples of plans before the instruction, all about other things."""
LONGEST: Final[Mapping[Question, int]] = {"conditional": 3, "search": 5}
"""Skills until the transcript begins anew: one more than a good plan needs (the last thing of a search can be
examined as well). It bounds the number of transcripts."""
SILENT: Final = ("", "")
"""The messages of a reporter that says nothing."""
ASKED: Final[dict[str, Any]] = {
    "examples": SHOWN,
    "prior": PriorConfig(way="likelihood-unlisted", normalise="sum"),
}
"""How a model that writes is asked: as in SayCan, after examples of plans."""
BLANK: Final = {"uninstructed": True, "messages": SILENT}
"""The control: the same request without the instruction and the reports."""
KINDS: Final[dict[str, dict[str, Any]]] = {
    f"{SHOWN} examples": ASKED,
    "without examples": {"prior": PriorConfig(way="likelihood-unlisted", normalise="sum")},
    f"{SHOWN} examples, without instruction and reports": {**ASKED, **BLANK},
}
WORDS: Final = "bag-of-words"
UNINFORMED: Final = "uniform"
RULE: Final = "scripted:examiner"


class Transcript(NamedTuple):
    """What a planner has done and read.

    Attributes:
        task: The instruction.
        told: What was reported before each skill, and at last; "" before the first one.
        names: The skills.
    """

    task: str
    told: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()

    def after(self, name: str, message: str) -> Transcript:
        """Return the transcript after one more skill."""
        return Transcript(self.task, (*self.told, message), (*self.names, name))


Plans = Mapping[Transcript, str]
"""The skill that a planner names after each transcript that it can come to."""


@dataclass(frozen=True)
class Errand:
    """An instruction, and what is right.

    Attributes:
        text: The instruction.
        rooms: For each of the equally likely kinds of rooms which things are good, and which one is right.
        asked: The thing that the instruction asks about; "" if it asks about all.
    """

    text: str
    rooms: tuple[tuple[Mapping[str, bool], str], ...]
    asked: str = ""


def errands(question: Question) -> list[Errand]:
    """Return all instructions of the environment."""
    if question == "search":
        rooms = tuple(({thing: thing == right for thing in THINGS}, right) for right in THINGS)
        return [Errand(search(THINGS), rooms)]
    found = []
    for asked, yes, no in permutations(THINGS, 3):
        goods = [dict(zip(THINGS, good, strict=True)) for good in product((True, False), repeat=len(THINGS))]
        rooms = tuple((good, yes if good[asked] else no) for good in goods)
        found.append(Errand(conditional(asked, yes, no), rooms, asked))
    return found


def planner(lm: str, question: Question, options: Mapping[str, Any]) -> PlannerActorReporter:
    """Return the agent with a model as its planner, and skills that are never carried out."""
    config = configure(PlannerActorReporter, None, {"longest": LONGEST[question], **options})
    skills = [single(f"{verb} the {thing}") for verb in VERBS for thing in THINGS]
    agent = PlannerActorReporter.build(config, {"lm": loaded(lm)}, skills)
    assert isinstance(agent, PlannerActorReporter)
    return agent


def plans_of(agent: PlannerActorReporter, question: Question) -> Plans:
    """Ask a planner after every transcript that it can come to, whatever is reported.

    A plan goes on until something is picked up, or it is as long as allowed.
    """
    plans: dict[Transcript, str] = {}
    reached = [Transcript(errand.text) for errand in errands(question)]
    for _ in range(agent.config.longest):
        named = _next(agent, question, reached)
        plans |= zip(reached, named, strict=True)
        reached = [
            transcript.after(name, message)
            for transcript, name in zip(reached, named, strict=True)
            if name.startswith("examine")
            for message in dict.fromkeys(agent.config.messages)
        ]
    return plans


def _next(agent: PlannerActorReporter, question: Question, reached: Sequence[Transcript]) -> list[str]:
    """Return the skill that the planner names after each of these transcripts, with one request for all."""
    if not reached:
        return []
    agent.begin(World(examples=SecretProperty(question=question).examples), 0)
    agent.plans = {
        stream: Plan(one.task, list(one.told), list(one.names)) for stream, one in enumerate(reached)
    }
    states = [State("", one.task, (), stream=stream) for stream, one in enumerate(reached)]
    return [choice.skill.name for choice in agent.choose(states, agent.rng)]


def expected(plans: Plans, errand: Errand, messages: tuple[str, str], *, honest: bool) -> float:
    """Return the expected success of an errand if no skill fails.

    Args:
        plans: What the planner names.
        errand: The errand.
        messages: What is reported of a good thing, and of a bad one.
        honest: True if the reports are true, False if each is drawn at random.
    """

    def success(transcript: Transcript, good: Mapping[str, bool], right: str) -> float:
        name = plans.get(transcript)
        if name is None:  # longer than allowed
            return 0.0
        verb, _, thing = name.partition(" the ")
        if verb == "pick up":
            return float(thing == right)
        reports = [messages[0 if good[thing] else 1]] if honest else messages
        return float(np.mean([success(transcript.after(name, report), good, right) for report in reports]))

    return float(np.mean([success(Transcript(errand.text), good, right) for good, right in errand.rooms]))


def measured(lm: str, question: Question, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the expected success of a planner in each errand, and what it does first."""
    agent = planner(lm, question, options)
    plans = plans_of(agent, question)
    own = errands(question)
    messages = agent.config.messages
    first = [plans[Transcript(errand.text)] for errand in own]
    looks = [
        name.startswith("examine") and errand.asked in ("", name.rpartition(" ")[2])
        for name, errand in zip(first, own, strict=True)
    ]
    return {
        "true": [expected(plans, errand, messages, honest=True) for errand in own],
        "random": [expected(plans, errand, messages, honest=False) for errand in own],
        "looks": [bool(one) for one in looks],
        "transcripts": len(plans),
        "first": first[0],
    }


def every_transcript(lms: Sequence[str], folder: Path) -> str:
    """Return what each planner does with reports: its success if they are true, and if they are random."""
    asked: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
        ("rule", "examiner"): (RULE, {}),
        (WORDS, "similarity"): (WORDS, {}),
    }
    for name, lm in by_name(lms, (WORDS, UNINFORMED)).items():
        asked |= {(name, kind): (lm, options) for kind, options in KINDS.items()}
    keys = [(*planned, question) for question in LONGEST for planned in asked]

    def row(name: str, kind: str, question: Question) -> dict[str, Any]:
        lm, options = asked[name, kind]
        return measured(lm, question, options)

    return as_table(kept(folder / "transcripts.jsonl", keys, row))


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of all planners as a table in Markdown."""
    lines = []
    for row in rows:
        name, kind, question = row["key"]
        true, random = np.array(row["true"]), np.array(row["random"])
        lead = over_pairs((true - random).tolist()).short()
        looks = f"{np.mean(row['looks']):.2f}"
        ends = [f"{values.mean():.2f}" for values in (true, random)]
        lines.append((question, name, kind, looks, *ends, lead, row["transcripts"]))
    head = "question | planner | asked | examines first what is asked | true reports | random reports"
    return table(f"{head} | difference over instructions | transcripts", lines)
