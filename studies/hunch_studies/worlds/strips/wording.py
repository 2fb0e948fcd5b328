"""States, goals and actions in words.

The words of Blocksworld and Logistics, and their other names, are those of PlanBench (Valmeekam et al.,
NeurIPS 2023; github.com/karthikv792/LLMs-Planning).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hunch_studies.worlds.strips.blocksworld import MYSTERY, PLAIN, Words
from hunch_studies.worlds.strips.pddl import Action, Atom, Condition, Domain

_ITEMS = re.compile(r", and |, | and ")


@dataclass(frozen=True, eq=False)
class Wording:
    r"""The wording of a domain.

    Attributes:
        name: Its name, as in the option ``words``.
        predicates: A sentence for each predicate, with ``{}`` for its objects; empty for hidden ones. Other
            predicates are written as in PDDL.
        actions: The same for actions.
        objects: The words for objects.
        others: Rules for the words of other objects: a pattern, and its words with ``\1``.
        symbols: Other names of predicates and actions, by which facts are sorted.
    """

    name: str
    predicates: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[tuple[str, str]] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)

    def thing(self, name: str) -> str:
        """Return the words for an object."""
        if name in self.objects:
            return self.objects[name]
        for pattern, words in self.others:
            if re.fullmatch(pattern, name):
                return re.sub(pattern, words, name)
        return name

    def action(self, atom: Atom) -> str:
        """Return the words for an action."""
        return self._told(atom, self.actions)

    def fact(self, atom: Atom) -> str:
        """Return the sentence for a fact; empty if it is hidden."""
        return self._told(atom, self.predicates)

    def facts(self, atoms: Iterable[Atom]) -> str:
        """Return the sentences for several facts, sorted by name."""
        return listed([text for atom in sorted(atoms, key=self.place) if (text := self.fact(atom))])

    def goal(self, goal: Condition) -> str:
        """Return the words for a goal."""
        wanted = [self.fact(atom) for atom in sorted(goal.positive, key=self.place)]
        unwanted = [f"not {self.fact(atom)}" for atom in sorted(goal.negative, key=self.place)]
        return listed([text for text in wanted + unwanted if text])

    def rules(self, domain: Domain) -> str:
        """Return the requirements and effects of each action, one per line, for a prompt."""
        return "\n".join(self._rule(action) for action in domain.actions.values())

    def _rule(self, action: Action) -> str:
        head = self.action((action.name, *(name for name, _ in action.parameters)))
        parts = {
            "needs": self.goal(action.condition),
            "makes true": self.facts(action.add),
            "makes false": self.facts(action.delete),
        }
        told = "; ".join(f"{word}: {facts}" for word, facts in parts.items() if facts)
        differ = "".join(f"; {a} and {b} differ" for a, b in action.condition.unequal)
        return f"{head} ({told}{differ})"

    def place(self, atom: Atom) -> str:
        """Return the key by which facts are sorted."""
        return " ".join((self.symbols.get(atom[0], atom[0]), *atom[1:]))

    def _told(self, atom: Atom, templates: Mapping[str, str]) -> str:
        objects = [self.thing(name) for name in atom[1:]]
        template = templates.get(atom[0])
        return " ".join([atom[0], *objects]) if template is None else template.format(*objects)


def listed(items: Sequence[str]) -> str:
    """Join items with commas, and an "and" before the last."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _blocks(name: str, words: Words, actions: Mapping[str, str]) -> Wording:
    """The words of :mod:`.blocksworld`; ``actions`` are the names of the actions."""
    others = ((r"(.+)", words.other.format(r"\1")),)
    return Wording(name, words.facts, words.actions, words.blocks, others, {**words.symbols, **actions})


BLOCKS = _blocks("plain", PLAIN, {})
MYSTERY_BLOCKS = _blocks(
    "mystery",
    MYSTERY,
    {"pick-up": "attack", "put-down": "succumb", "stack": "overcome", "unstack": "feast"},
)

_FREIGHT = (
    (r"p(\d+)", r"package_\1"),
    (r"t(\d+)", r"truck_\1"),
    (r"a(\d+)", r"airplane_\1"),
    (r"l(\d+)-(\d+)", r"location_\1_\2"),
    (r"c(\d+)", r"city_\1"),
)

FREIGHT = Wording(
    "plain",
    predicates={
        **dict.fromkeys(["obj", "truck", "location", "airplane", "city"], ""),  # their names tell
        "airport": "{} is an airport",
        "at": "{} is at {}",
        "in": "{} is in {}",
        "in-city": "{} is in the city {}",
    },
    actions={
        "load-truck": "load {} into {} at {}",
        "load-airplane": "load {} into {} at {}",
        "unload-truck": "unload {} from {} at {}",
        "unload-airplane": "unload {} from {} at {}",
        "drive-truck": "drive {} from {} to {} in {}",
        "fly-airplane": "fly {} from {} to {}",
    },
    others=_FREIGHT,
)


def _renamed(names: Mapping[str, str], actions: Mapping[str, int], predicates: Mapping[str, int]) -> Wording:
    """Other names in front of the objects, as PlanBench's obfuscated domains are told."""

    def templates(arities: Mapping[str, int]) -> dict[str, str]:
        return {name: " ".join([names[name], *["{}"] * arity]) for name, arity in arities.items()}

    others = ((r"o(\d+)", r"object_\1"),)
    return Wording("mystery", templates(predicates), templates(actions), others=others, symbols=names)


MYSTERY_FREIGHT = _renamed(
    {
        **{"obj": "hand", "truck": "sneeze", "location": "texture", "airplane": "cats", "city": "stupendous"},
        **{"airport": "spring", "at": "next", "in": "vase", "in-city": "collect"},
        **{"load-truck": "clip", "load-airplane": "sip", "unload-truck": "tightfisted"},
        **{"unload-airplane": "paltry", "drive-truck": "wretched", "fly-airplane": "memory"},
    },
    actions={
        **{"load-truck": 3, "load-airplane": 3, "unload-truck": 3, "unload-airplane": 3},
        **{"drive-truck": 4, "fly-airplane": 3},
    },
    predicates={
        **{"obj": 1, "truck": 1, "location": 1, "airplane": 1, "city": 1, "airport": 1},
        **{"at": 2, "in": 2, "in-city": 2},
    },
)

PDDL = Wording("pddl")

WORDINGS: Mapping[str, Wording] = {
    "pddl": PDDL,
    "blocksworld": BLOCKS,
    "blocksworld-mystery": MYSTERY_BLOCKS,
    "logistics": FREIGHT,
    "logistics-mystery": MYSTERY_FREIGHT,
}
"""The wordings by name; ``"pddl"`` writes everything as in the files."""
