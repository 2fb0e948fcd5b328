"""A skill graph: inputs and outputs of each skill, which a language model extracts once from a manual.

A skill consumes items, requires others that are kept, and may need some places or things nearby; a skill adds
items to the inventory, or things nearby. Skills that find something leave everything else behind. Source:
Yuan et al., "Skill Reinforcement Learning and Planning for Open-World Long-Horizon Tasks" (Plan4MC), 2023,
and its table of skills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

from hunch.lm import require
from hunch.lm.answers.lines import spoken
from hunch.lm.answers.numerals import words_of
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.base import LanguageModel
from hunch.ranges import NonNegativeFloat

Counts: TypeAlias = tuple[tuple[str, int], ...]
"""Names of items, each with a number."""


@dataclass(frozen=True, kw_only=True)
class EntryConfig(AskConfig):
    """How a model is asked for the entry of each skill."""

    prompt_fields = ("manual", "skill")
    temperature: NonNegativeFloat | None = 0.0
    """Sampling temperature of the answers."""


ASKS: Final = EntryConfig()
"""Default settings: greedy sampling."""
FIELDS: Final = {
    "consumes": "numbers and things that are used up, such as 2 eggs",
    "requires": "numbers and things that have to be held and are kept",
    "nearby": "what has to be nearby",
    "obtains": "numbers and things that are held afterwards and were not before",
    "brings": "what is nearby afterwards and was not before",
    "moves": "yes if the player walks away from where it was, else no",
}
"""The names of the lines in an answer, with the content of each for the prompt."""


@dataclass(frozen=True)
class Entry:
    """Inputs and outputs of a skill.

    Attributes:
        consumes: Items that are used up.
        requires: Items that must be held and are kept.
        nearby: Things that must be nearby.
        obtains: Items that are held afterwards.
        brings: Things that are nearby afterwards.
        moves: True if the skill leaves everything else nearby behind.
    """

    consumes: Counts = ()
    requires: Counts = ()
    nearby: tuple[str, ...] = ()
    obtains: Counts = ()
    brings: tuple[str, ...] = ()
    moves: bool = False


@dataclass(frozen=True)
class SkillGraph:
    """Skills with their inputs and outputs.

    Attributes:
        entries: Entries by name of the skill.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)

    @cached_property
    def producers(self) -> dict[str, str]:
        """Return the first skill that obtains each item."""
        producers: dict[str, str] = {}
        for name, entry in self.entries.items():
            for thing, _ in entry.obtains:
                producers.setdefault(thing, name)
        return producers

    @cached_property
    def bringers(self) -> dict[str, str]:
        """Return the first skill that brings each thing nearby."""
        bringers: dict[str, str] = {}
        for name, entry in self.entries.items():
            for thing in entry.brings:
                bringers.setdefault(thing, name)
        return bringers

    def target(self, task: str) -> str | None:
        """Return the skill whose name occurs in a task (the longest if several do), or None."""
        named = [name for name in self.entries if name in task]
        return max(named, key=len, default=None)

    def plain(self) -> dict[str, dict[str, Any]]:
        """Return the graph as plain values, for a checkpoint."""
        return {name: asdict(entry) for name, entry in self.entries.items()}

    @classmethod
    def of(cls, plain: Mapping[str, Mapping[str, Any]]) -> SkillGraph:
        """Return the graph from the result of :meth:`plain`."""
        return cls({name: Entry(**values) for name, values in plain.items()})


WORDING: Final = "6c8bfb4c"
"""Version of the words of :func:`question`. Change it with them: runs with different words are different
runs."""


def question(manual: str, skill: str) -> str:
    """Return the prompt that asks for a skill's entry."""
    lines = "\n".join(f"{name}: {what}" for name, what in FIELDS.items())
    return (
        f"{manual}\n\nA player has skills. A skill to find something walks until that is nearby.\n"
        f"Skill: {skill}\n\nWhat does this skill take, and what does it bring? Answer in six lines, "
        f'with "-" for nothing, or with the one word unknown:\n{lines}\n\nAnswer:\n'
    )


def read_entry(answer: str) -> Entry | None:
    """Parse the entry in an answer; None if the answer has none of the expected lines."""
    # Lines such as "Consumes: 2 eggs", possibly after a bullet; the last of several with one name counts.
    values: dict[str, str] = {}
    for name, text in dict(re.findall(r"(?m)^[^\w\n]*+(\w+)[ \t]*+:(.*)$", answer)).items():
        if name.lower() in FIELDS:
            values[name.lower()] = text.strip()
    if not values:
        return None
    lines = {name: values.get(name, "") for name in FIELDS}
    return Entry(
        consumes=_counts(lines["consumes"]),
        requires=_counts(lines["requires"]),
        nearby=tuple(_listed(lines["nearby"])),
        obtains=_counts(lines["obtains"]),
        brings=tuple(_listed(lines["brings"])),
        moves=lines["moves"].lower().startswith("yes"),
    )


def _listed(text: str) -> list[str]:
    """Split a line at commas, semicolons and "and" before a number or an article, as in "1 egg and a pan".

    A comma within a number, as in 1,000, separates nothing; neither does the "and" within a name.
    """
    parts = (part.strip(" .") for part in re.split(r",(?!\d{3}\b)|;|\s(?i:and)\s+(?=\d|(?:an?|the)\s)", text))
    return [part for part in parts if part and part.lower() not in ("-", "nothing", "none")]


def _counts(text: str) -> Counts:
    """Parse items with their numbers; the default number is 1."""
    numbers: dict[str, int] = {}
    for part in _listed(text):
        words = words_of(part)
        counted = len(words) > 1 and words[0].start == 0 and re.fullmatch(r"\d{1,9}", words[0].text)
        n = int(words[0].text) if counted else 1
        thing = part[words[0].end :].strip() if counted else part
        if n:
            numbers[thing] = numbers.get(thing, 0) + n
    return tuple(numbers.items())


def extract(lm: LanguageModel, manual: str, skills: Sequence[str], asks: EntryConfig = ASKS) -> SkillGraph:
    """Ask a model for the entry of every skill; skills without a readable answer are left out.

    Args:
        lm: A model that generates.
        manual: Text of the manual.
        skills: Names of the skills.
        asks: How the model is asked; a prompt file may have ``{manual}`` and ``{skill}``.

    Raises:
        UsageError: if the model cannot generate.
        HunchError: if too many answers in a row are empty.
    """
    require(lm, "generate", needed_by="A skill graph")
    asking = Asking(lm, asks, tokens=120, stop=("\n\n",), role="planner")
    prompts = [asking.prompt(question(manual, name), manual=manual, skill=name) for name in skills]
    answers = [spoken(answer) for (answer,) in asking.generate(prompts)]
    entries = [read_entry(answer) for answer in answers]
    unknown = ["unknown" if "unknown" in answer.lower() else None for answer in answers]
    asking.hear(answers, [entry or no for entry, no in zip(entries, unknown, strict=True)], abstains=True)
    read = dict(zip(skills, entries, strict=True))
    return SkillGraph({skill: entry for skill, entry in read.items() if entry is not None})
