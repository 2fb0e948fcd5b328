"""``scripted:player``: plays the craft world with its manual, one question at a time.

It answers the questions of the method spring, each from the contents of its prompt: manual, task, the last
observations, and earlier answers, right or wrong. Asked directly for the best action, it reasons to the end
by itself. Dials: ``error``, the share of wrong lines in its answers (another thing, another action, yes for
no); ``compound``, the number of such errors to which its answer to the direct question is exposed, because it
replaces as many steps of reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from hunch.core import UsageError
from hunch.envs.craft_manual import Recipe, recipes, sources
from hunch.lm.backends.sampling import listed_options, sample_rng
from hunch.lm.backends.scripted import RuleWriter
from hunch.lm.rules import writer

FIVE: Final = 5
"""Number of actions in a list, and the highest priority."""


@lru_cache(maxsize=8)
def _read(manual: str) -> tuple[dict[str, Recipe], tuple[str, ...]]:
    return recipes(manual), sources(manual)


@dataclass(frozen=True)
class Here:
    """The contents of the last observation.

    Attributes:
        book: The recipes, by action.
        can_find: Things that can be found somewhere.
        near: Things at this place.
        held: The inventory.
        feels: Current needs.
        walks: The places next to this one, with the previous one last.
    """

    book: Mapping[str, Recipe]
    can_find: tuple[str, ...]
    near: frozenset[str]
    held: Mapping[str, int]
    feels: frozenset[str]
    walks: tuple[str, ...]

    def possible(self, action: str) -> bool:
        """Return whether everything that an action needs is available."""
        recipe = self.book.get(action)
        if recipe is None:
            return action.removeprefix("go to the ").removeprefix("go to ") in self.walks
        return (
            self.near.issuperset(recipe.near)
            and (not recipe.holds or recipe.holds in self.held)
            and (not recipe.feels or recipe.feels in self.feels)
            and all(self.held.get(thing, 0) >= n for thing, n in recipe.uses)
        )

    def way(self, action: str) -> list[str]:
        """Return the chain of actions for an action, from the action itself to one that can be tried now."""
        way = [action]
        while (due := self._before(way[-1])) and due not in way:
            way.append(due)
        return way

    def _before(self, action: str) -> str:
        """Return the actions needed before an action; empty if there are none."""
        recipe = self.book.get(action, Recipe())
        lacking = [thing for thing, n in recipe.uses if self.held.get(thing, 0) < n]
        if recipe.holds and recipe.holds not in self.held:
            lacking.append(recipe.holds)
        makers = (a for thing in lacking for a, r in self.book.items() if r.gives == thing)
        away = [thing for thing in reversed(recipe.near) if thing not in self.near]
        builders = (a for thing in away for a, r in self.book.items() if r.puts == thing)
        finds = (f"find {thing}" for thing in away if thing in self.can_find)
        return next(makers, "") or next(builders, "") or next(finds, "")

    def step(self, action: str) -> str:
        """Return the next action towards an action; finding a thing means walking on."""
        due = self.way(action)[-1]
        return f"go to {self.walks[0]}" if due.startswith("find ") and self.walks else due


def here(prompt: str, book: Mapping[str, Recipe], can_find: tuple[str, ...]) -> Here:
    """Parse the last observations of a prompt."""
    places = re.findall(r"^You are in the (.*), next to the (.*) and the (.*)\.$", prompt, re.MULTILINE)
    last = prompt[prompt.rfind("You are in the") :]
    before = places[-2][0] if len(places) > 1 else ""
    walks = tuple(sorted(places[-1][1:], key=lambda place: place == before)) if places else ()
    seen = _listed(r"^You see (.*)\.$", last)
    held = {thing: int(n) for n, thing in re.findall(r"(\d+) ([a-z ]+)", ", ".join(_listed(_HAVE, last)))}
    feels = _listed(r"^You are ((?!in the).*)\.$", last)
    return Here(book, can_find, frozenset(seen), held, frozenset(feels), walks)


_HAVE = r"^You have (.*)\.$"


def _listed(pattern: str, text: str) -> list[str]:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].split(", ") if match else []


# ---- answers ----------------------------------------------------------------------------------------------

Chance = np.random.Generator


@dataclass(frozen=True)
class Asked:
    """A parsed prompt.

    Attributes:
        here: The last observation.
        task: The action that is the task.
        observations: The observations with the actions between them, oldest first.
        answers: Earlier answers, by words in their questions.
        options: The listed actions.
        error: Share of wrong lines.
        compound: See the module.
        rng: Random generator of errors.
    """

    here: Here
    task: str
    observations: tuple[str, ...]
    answers: Mapping[str, str]
    options: tuple[str, ...]
    error: float
    compound: int
    rng: Chance

    def other(self, right: str, pool: Sequence[str], times: int = 1) -> str:
        """Return the right word, or, with the error rate, another one of a pool."""
        others = [word for word in pool if word != right]
        wrong = self.rng.random() < 1 - (1 - self.error) ** times
        return others[int(self.rng.integers(len(others)))] if wrong and others else right

    @property
    def verbs(self) -> list[str]:
        """Return all actions of the manual."""
        return list(self.here.book)


def last(asked: Asked) -> str:
    """Return the last action."""
    done = re.findall(r"^> (.*)$", "\n".join(asked.observations), re.MULTILINE)
    return asked.other(done[-1], asked.verbs) if done else "None."


def worked(asked: Asked) -> str:
    """Return whether it changed anything."""
    parts = re.split(r"^> .*$\n?", "\n".join(asked.observations), flags=re.MULTILINE)
    changed = len(parts) < 2 or parts[-1].strip() != parts[-2].strip()
    return asked.other("Yes." if changed else "No, nothing changed.", ("Yes.", "No, nothing changed."))


def things(asked: Asked) -> str:
    """Return what is at this place, and its use."""
    seen = [asked.other(thing, asked.here.can_find) for thing in sorted(asked.here.near)]
    uses = {t: [a for a, r in asked.here.book.items() if t in r.near] for t in seen}
    lines = [f"{thing}: {', '.join(uses[thing]) or 'nothing'}" for thing in seen]
    return "\n".join(lines) or "Nothing is here."


def met(asked: Asked) -> str:
    """Return for each thing whether it can be used."""
    lines = re.findall(r"^(.*?): (.*)$", asked.answers["things are here"], re.MULTILINE)
    can = [(t, any(asked.here.possible(a) for a in actions.split(", "))) for t, actions in lines]
    return "\n".join(f"{t}: {asked.other(_yes(ok), ('yes', 'no'))}" for t, ok in can) or "There is none."


def tasks(asked: Asked) -> str:
    """Return three sub-tasks: what is due first, and its purpose."""
    way = asked.here.way(asked.task)[::-1][:3]
    return _ranked([asked.other(action, asked.verbs) for action in way])


def first(asked: Asked) -> str:
    """Return the first step of the sub-task with the highest priority."""
    ranked = _ranks(asked.answers["three sub-tasks"])
    due = asked.here.step(ranked[0] if ranked else asked.task)
    return f"First: {asked.other(due, asked.verbs)}"


def actions(asked: Asked) -> str:
    """Return five actions: the first step, the next for the task, walking on, and other possible ones."""
    said = re.search(r"First: (.*)", asked.answers["highest priority"])
    due = said[1] if said and said[1] in asked.options else ""
    walks = [f"go to {place}" for place in asked.here.walks]
    rest = [action for action in asked.verbs if action in asked.options and asked.here.possible(action)]
    every = dict.fromkeys([due, asked.here.step(asked.task), *walks, *rest])
    chosen = [action for action in every if action in asked.options][:FIVE]
    return _ranked([asked.other(action, asked.options) for action in chosen])


def possible(asked: Asked) -> str:
    """Return for each action whether everything is available."""
    can = [(action, _yes(asked.here.possible(action))) for action in _ranks(asked.answers["Which five"])]
    return "\n".join(f"{action}: {asked.other(ok, ('yes', 'no'))}" for action, ok in can)


def choice(asked: Asked) -> str:
    """Return the first possible action that did not just fail; asked directly, the next for the task."""
    if not asked.answers:
        return asked.other(asked.here.step(asked.task), asked.options, asked.compound)
    earlier_answers = asked.answers
    ranked = _ranks(earlier_answers["Which five"])
    checked = re.findall(r"^(.*): (yes|no)$", earlier_answers.get("each of these actions", ""), re.MULTILINE)
    can = dict(checked) or dict.fromkeys(ranked, "yes")  # where no question checks them
    failed = earlier_answers["taken last"] if earlier_answers.get("action work", "").startswith("No") else ""
    good = [action for action in ranked if can.get(action) == "yes" and action != failed]
    best = (good or ranked or ["nothing"])[0]
    return asked.other(best, ranked)


def _yes(so: bool) -> str:
    return "yes" if so else "no"


def _ranked(names: Sequence[str]) -> str:
    return "\n".join(f"{i}. {name} (priority {FIVE - i + 1})" for i, name in enumerate(names, start=1))


def _ranks(answer: str) -> list[str]:
    """Return the names in an answer, by priority."""
    ranked = re.findall(r"^\d+\. (.*) \(priority (\d)\)$", answer, re.MULTILINE)
    return [name for name, _ in sorted(ranked, key=lambda pair: -int(pair[1]))]


KINDS: Final[Mapping[str, Callable[[Asked], str]]] = {
    "taken last": last,
    "action work": worked,
    "things are here": things,
    "each of these things": met,
    "three sub-tasks": tasks,
    "highest priority": first,
    "Which five": actions,
    "each of these actions": possible,
    "is the best": choice,
}
"""Questions by words in them."""


@writer("player", dials=("error", "compound"))
class PlayerModel(RuleWriter):
    """Answers the questions.

    Raises:
        UsageError: if a dial is out of range.
    """

    def __init__(self, error: float = 0.0, compound: float = 1) -> None:
        if not 0 <= error <= 1 or compound < 1:
            raise UsageError("scripted:player needs an error from 0 to 1, and compound of at least 1.")
        self.error, self.compound = error, int(compound)
        self.name = "scripted:player"
        self.revision = f"1:{error},{self.compound}"

    def answer(self, prompt: str, sample: int) -> str:
        """Return the rule's answer to the last question, with its error rate."""
        asked = self._asked(prompt, sample)
        question = prompt[prompt.rfind("Question: ") :]
        kind = next((answer for words, answer in KINDS.items() if words in question), None)
        return kind(asked) if kind else ""

    def _asked(self, prompt: str, index: int) -> Asked:
        book, can_find = _read(prompt.partition("Your task is to: ")[0])
        shown = prompt.partition("Your task is to: ")[2].partition("Question: ")[0]
        task, _, observed = shown.partition("\n")
        observed = observed.partition("You are allowed to take")[0]
        pairs = re.findall(
            r"\nQuestion: ([^\n]*)\nAnswer: (.*?)(?=\n\nQuestion: |\n\nYou are allowed)", prompt, re.DOTALL
        )
        answers = {words: answer for text, answer in pairs for words in KINDS if words in text}
        return Asked(
            here(observed, book, can_find),
            task.strip(),
            tuple(observed.strip().splitlines()),
            answers,
            listed_options(prompt),
            self.error,
            self.compound,
            sample_rng(prompt, "player", index),
        )
