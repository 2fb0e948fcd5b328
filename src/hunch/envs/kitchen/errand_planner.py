"""``scripted:errands``: a rule that plans the errands of the Kitchen environment from its transcript.

It knows what each instruction means and where things usually are. Everything else comes from the transcript:
it assumes that a skill worked unless the feedback says otherwise, and believes descriptions of the scene.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hunch.envs.kitchen.errands import ERRANDS, Fact, paraphrases
from hunch.envs.kitchen.world import CONTAINERS, DONE, HOMES, PLACES, THINGS
from hunch.lm.rules import rule

GOALS = {errand.text: errand.goal for errand in (*ERRANDS, *paraphrases())}
LIST = "You are allowed to take the following actions:"


@dataclass
class Belief:
    """The planner's beliefs.

    Attributes:
        held: The thing in hand.
        near: The place or thing at which the robot stands.
        where: Known places of things.
        opened: Open containers.
        missed: Things that were looked for and not found.
        absent: Things that are reported as missing.
        saw_all: True if the scene was ever described.
    """

    held: str = ""
    near: str = ""
    where: dict[str, str] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    missed: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    saw_all: bool = False

    def took(self, skill: str) -> None:
        """Assume that a skill worked."""
        verb, _, aim = skill.rpartition(" the ")
        if verb in ("find", "go to"):
            self.near = aim
            self.missed.discard(aim)
        elif verb == "pick up":
            self.held = aim
            self.where.pop(aim, None)
        elif verb == "put down":
            self.held = ""
            self.where[aim] = self.near
        elif verb == "open":
            self.opened.add(aim)

    def failed(self, skill: str) -> None:
        """Assume that a skill failed: the thing to grasp or put down is not where it was."""
        verb, _, aim = skill.rpartition(" the ")
        self.near = ""
        if verb == "find":
            self.missed.add(aim)
        elif verb == "put down":
            self.held = ""
        self.where.pop(aim, None)

    def saw(self, line: str) -> None:
        """Believe a line of the scene's description."""
        if match := re.match(r"You stand at .*?(?:beside the (\w+))?\.$", line):
            self.near, self.saw_all = match[1] or "", True
            self.where.clear()
        elif match := re.match(r"You hold (?:the )?(\w+)\.$", line):
            self.held = "" if match[1] == "nothing" else match[1]
        elif match := re.match(r"The (\w+) is closed\.$", line):
            self.opened.discard(match[1])
        elif match := re.match(r"(?:At the (\w+):|The (\w+) is open, with) (.*)\.$", line):
            place = match[1] or match[2]
            self.opened |= {place} & set(CONTAINERS)
            self.where |= {thing: place for thing in THINGS if f"the {thing}" in match[3]}
            self.missed -= set(self.where)
        elif match := re.match(r"The person says: the (\w+) is at the (\w+)\.$", line):
            self.where[match[1]] = match[2]
        elif match := re.match(r"The person says: there is no (\w+)\.$", line):
            self.absent.add(match[1])

    def knows(self, thing: str) -> bool:
        """Return whether the place of a thing is known."""
        return thing in (*self.where, self.held, *self.absent)

    def in_vain(self, thing: str) -> bool:
        """Return whether a thing is not where it could be."""
        home = HOMES.get(thing, "")
        hidden = home and home not in self.opened
        unseen = self.saw_all and thing != self.held and thing not in self.where
        return thing in self.absent or ((thing in self.missed or unseen) and not hidden)


@rule("errands", "f15b4579012b0889")
def errands(prompt: str, options: tuple[str, ...]) -> str:
    """Name the next skill of an errand."""
    *_, asked = re.split(r"(?m)^(?:Your task is to|Instruction): ", prompt.partition(LIST)[0])
    lines = asked.splitlines()  # behind the examples of plans, if there are any
    goal = GOALS.get(lines[0].strip(), ((),))
    belief = _believed(lines[1:])
    ways = [facts for facts in goal if not any(f.what in THINGS and belief.in_vain(f.what) for f in facts)]
    facts = (ways or goal)[0]
    unknown = (f.what for f in facts if f.kind in ("at", "held") and not belief.knows(f.what))
    question = next((q for thing in unknown if (q := f"ask where the {thing} is") in options), "")
    best = question or next((skill for fact in facts if (skill := _towards(fact, belief))), DONE)
    return best if best in options else options[0]


def _believed(lines: Sequence[str]) -> Belief:
    belief, skill = Belief(), ""
    for i, line in enumerate(lines):
        if line.startswith("> "):
            skill = line[2:]
            if "That failed." in lines[i + 1 : i + 2]:
                belief.failed(skill)
            else:
                belief.took(skill)
        else:
            belief.saw(line)
    return belief


def _towards(fact: Fact, belief: Belief) -> str:
    kind, what, place = fact
    if kind == "near":
        return "" if belief.near == what else f"go to the {what}"
    if kind == "open":
        return "" if what in belief.opened else _opening(what, belief)
    if kind == "held":
        return "" if belief.held == what else _getting(what, belief)
    if belief.where.get(what) == place:
        return ""
    if belief.held != what:
        return _getting(what, belief)
    return f"put down the {what}" if belief.near == place else f"go to the {place}"


def _opening(container: str, belief: Belief) -> str:
    return f"{'open' if belief.near == container else 'go to'} the {container}"


def _getting(thing: str, belief: Belief) -> str:
    """Return the skill that brings a thing into the hand, which may hold another."""
    place = belief.where.get(thing, "")
    if belief.held:
        known = belief.near in PLACES and belief.near not in set(CONTAINERS) - belief.opened
        return f"put down the {belief.held}" if known else "go to the counter"
    if not place:
        home = HOMES[thing] if thing not in belief.missed or HOMES[thing] not in belief.opened else ""
        closed = [c for c in CONTAINERS if c not in belief.opened]
        place = home or (closed[0] if thing in belief.missed and closed else "")
    if place in CONTAINERS and place not in belief.opened:
        return _opening(place, belief)
    near = belief.near == thing or (belief.near != "" and belief.near == belief.where.get(thing))
    return f"{'pick up' if near else 'find'} the {thing}"
