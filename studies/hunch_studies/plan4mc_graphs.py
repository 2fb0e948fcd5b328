"""Skill graphs for the study of Plan4MC, by words, by models and wrong on purpose; the kinds of failures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.lm.base import LanguageModel
from hunch_contrib.planner.skill_graph import FIELDS, Entry, EntryConfig, SkillGraph, extract

ROOM: Final = 100
"""Maximum tokens of a model's answer about a skill; the longest right answer has about 60 (ours)."""
REQUESTS: Final[Mapping[str, EntryConfig]] = {
    "plain": EntryConfig(max_tokens=ROOM),
    "examples": EntryConfig(max_tokens=ROOM, prompt=str(Path(__file__).parent / "plan4mc_examples.txt")),
}
"""Ways of asking for a skill: Plan4MC's own request, and one with four answers about another world."""
TOGETHER: Final = 10
"""Number of skills in a call, after which answers are stored (ours)."""


def written(lm: LanguageModel, manual: str, skills: Sequence[str], request: str) -> SkillGraph:
    """Ask a model for the graph of some skills.

    Args:
        lm: The model.
        manual: Text of the manual; empty for the blank prompt.
        skills: Names of the skills.
        request: One of :data:`REQUESTS`.
    """
    entries: dict[str, Entry] = {}
    for start in range(0, len(skills), TOGETHER):
        part = extract(lm, manual, skills[start : start + TOGETHER], REQUESTS[request])
        entries.update(part.entries)
    return SkillGraph(entries)


def agreement(graph: SkillGraph, truth: SkillGraph) -> dict[str, tuple[int, int, int, int]]:
    """Return, for each field of an entry, how many skills have it right.

    The first two numbers are those of skills for which the true field says something: how many are right, of
    how many. The other two are those of skills for which it is empty. A writer that leaves every field empty
    is right in all of these. The order of things does not count. A skill without an entry is wrong.
    """
    agreed = {}
    for field in FIELDS:
        right = {True: 0, False: 0}
        skills = {True: 0, False: 0}
        for name, entry in truth.entries.items():
            true_value = _content(entry, field)
            says_something = bool(true_value)
            skills[says_something] += 1
            if name in graph.entries and _content(graph.entries[name], field) == true_value:
                right[says_something] += 1
        agreed[field] = (right[True], skills[True], right[False], skills[False])
    return agreed


def fields_right(graph: SkillGraph, truth: SkillGraph) -> list[int]:
    """Return how many of the six fields of each skill are right, in the order of the true graph."""
    counts = []
    for name, entry in truth.entries.items():
        own = graph.entries.get(name)
        counts.append(sum(own is not None and _content(own, f) == _content(entry, f) for f in FIELDS))
    return counts


def with_field(truth: SkillGraph, graph: SkillGraph, field: str) -> SkillGraph:
    """Return a graph in which one field of all skills is that of another; empty where that has no skill."""
    entries = {}
    for name, entry in truth.entries.items():
        changed: dict[str, Any] = {field: getattr(graph.entries.get(name, Entry()), field)}
        entries[name] = replace(entry, **changed)
    return SkillGraph(entries)


def _content(entry: Entry, field: str) -> Any:
    value = getattr(entry, field)
    return value if isinstance(value, bool) else frozenset(value)


def by_words(manual: str, skills: Sequence[str]) -> SkillGraph:
    """Write a graph by word overlap: the lexical control of a model that reads the manual.

    A thing is what a skill's name says after its first word. Of the sentence that shares the most words
    with the name, each other thing is used up if it stands after a number, else it has to be nearby. What a
    skill is named after is held afterwards, and nearby. A skill that finds something walks.
    """
    sentences = sorted(re.sub(r"[^\w\s]", " ", manual.lower()).splitlines(), key=len)
    things = sorted({name.partition(" ")[2] for name in skills if " " in name}, key=len, reverse=True)
    entries = {}
    for name in skills:
        own = name.partition(" ")[2]
        if name.startswith("find "):
            entries[name] = Entry(brings=(own,), moves=True)
            continue
        best = max(sentences, key=lambda sentence: len({*sentence.split()} & {*name.split()}))
        others = _named(best.replace(name, ""), things)
        entries[name] = Entry(
            consumes=tuple((thing, n) for n, thing in others if n and thing != own),
            nearby=tuple({thing: None for n, thing in others if not n and thing.removeprefix("a ") != own}),
            obtains=((own, 1),) if own else (),
            brings=(own, f"a {own}"),
        )
    return SkillGraph(entries)


def _named(sentence: str, things: Sequence[str]) -> list[tuple[int, str]]:
    """Return the things in a sentence, the longest first, each with the number before it, or 0."""
    found = list[tuple[int, str]]()
    for thing in things:
        pattern = rf"\b(\d+ |a )?{re.escape(thing)}\b"
        for own in re.finditer(pattern, sentence):
            number = (own[1] or "").strip()
            found.append((int(number), thing) if number.isdigit() else (0, own[0]))
        sentence = re.sub(pattern, "", sentence)
    return found


def corrupted(graph: SkillGraph, edges: int, rng: np.random.Generator) -> SkillGraph:
    """Return a graph with a number of wrong edges: inputs or outputs of skills that are missing or replaced.

    A random half of them are left out; the others name another thing of the same kind in the graph.
    """
    places = sorted({thing for e in graph.entries.values() for thing in (*e.nearby, *e.brings)})
    things = sorted(
        {thing for e in graph.entries.values() for thing, _ in (*e.consumes, *e.requires, *e.obtains)}
    )
    entries = dict(graph.entries)
    every = [
        (name, side, i)
        for name, entry in entries.items()
        for side in ("consumes", "requires", "nearby", "obtains", "brings")
        for i in range(len(getattr(entry, side)))
    ]
    chosen = [every[i] for i in rng.choice(len(every), edges, replace=False)]
    for name, side, i in sorted(chosen, reverse=True):  # from the back, as the places of the others stay
        entries[name] = _wrong(entries[name], side, i, places, things, rng)
    return SkillGraph(entries)


def _wrong(
    entry: Entry, side: str, i: int, places: Sequence[str], things: Sequence[str], rng: np.random.Generator
) -> Entry:
    own = list(getattr(entry, side))
    now = own.pop(i)
    pool = [p for p in places if p != now] if isinstance(now, str) else [t for t in things if t != now[0]]
    if rng.random() < 0.5 and pool:
        other = pool[int(rng.integers(len(pool)))]
        own.insert(i, other if isinstance(now, str) else (other, now[1]))
    changed: dict[str, Any] = {side: tuple(own)}
    return replace(entry, **changed)


def reason(problem: str) -> str:
    """Return the kind of a failure from its report."""
    for start, kind in _KINDS.items():
        if re.match(start, problem):
            return kind
    return SILENT


SILENT: Final = "nothing"
_KINDS: Final = {
    r"Nothing obtains": "nothing obtains a thing",
    r"Nothing brings": "nothing brings a thing nearby",
    r"To .* takes to": "a skill needs itself first",
    r"No end": "no end of the plan",
    r"No skill": "no skill is the target",
}
