"""The wording of a random decision process: names, brackets, operators, forms of actions and rewards.

Every document of the corpus has its own wording, drawn here. Names do not include words of the domains on
which the model is evaluated, but they include words of the form, such as ``assert``, ``state`` and
``reward``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_lowercase
from typing import Final

from hunch_studies.laboratory.processes import GONE, Process, Vector


def listed(words: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(words.split())


HELD_OUT: Final = frozenset(
    listed(
        "paddle ball descend ship alien aliens shoot try_goal left right up down stay pos vel accel decel "
        "tug aft fore winch bulbs tap nudge knock"
    )
)
"""Words that only the domains of the evaluation use; no document about a process contains them."""

NAMES: Final = listed(
    "a b x y n s t u p q node cell place level count tank door lamp robot agent cart light box tile card "
    "here item spot depth heat load gear score_board token stack queue row column site fuel water height "
    "train car boat plane bird fish cat dog fox cow snake stone rock tree river bridge tower castle hero "
    "player enemy guard thief king queen ghost rocket planet star moon sun comet drone crane lift pump "
    "valve bank coin gem key chest wagon truck bus horse wheel arrow target marker pointer cursor dial "
    "clock temp volume speed power charge signal channel page line word value total left_over block brick"
)
VERBS: Final = listed(
    "go turn add drop push pull open close inc dec next prev north south east west raise lower press wait "
    "step jump swap mix flip roll fill pour hold keep pass take give heat cool climb forward back "
    "start stop walk run crawl swim fly dig cut join split load unload lock unlock grab release throw "
    "catch kick hit strike rotate spin shift slide shrink grow send fetch read write sell buy bid fold "
    "call check bet rest sleep eat drink look scan use skip undo redo reset_all tilt steer brake boost fire"
)
CALLS: Final = ("C", "P", "V", "at", "xy", "Point", "Cell", "pt")
SYLLABLES: Final = listed(
    "ba co de fi gu ha jo ke li mu no pa re si to vu wa xe yo za br st ion er al "
    "ight ing en ow ay oo sh ch tr pl ent ad el or an in"
)


def name(rng: Random, pool: Sequence[str]) -> str:
    """Draw a name: a common word, or a new one."""
    if rng.random() < 0.4:
        return rng.choice(pool)
    while (made := _made_up(rng)) in HELD_OUT:
        pass
    return made


def _made_up(rng: Random) -> str:
    """Make a word of letters, syllables or other pieces: the model must learn to copy several tokens."""
    sort = rng.random()
    if sort < 0.25:
        return "".join(rng.choices(ascii_lowercase, k=rng.randint(2, 5)))
    if sort < 0.65:
        pools = (NAMES, VERBS, SYLLABLES, ascii_lowercase)
        return "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(2, 3)))
    made = "".join(rng.choices(SYLLABLES, k=rng.randint(1, 3)))
    return f"{made}_{rng.choice(SYLLABLES)}" if rng.random() < 0.15 else made


def names(rng: Random, pool: Sequence[str], count: int) -> list[str]:
    """Draw different names."""
    drawn: list[str] = []
    while len(drawn) < count:
        if (new := name(rng, pool)) not in drawn:
            drawn.append(new)
    return drawn


@dataclass(frozen=True)
class Wording:
    """The wording of one document. All pieces end with a line break.

    Attributes:
        layout: How the numbers are grouped: a list, a call, a call with keywords, pairs, a pair and a group
            of pairs, or each alone.
        names: Names of the numbers, or of the things that hold them.
        call: Name of calls and pairs.
        prefix: Beginning of a state.
        relation: Text between a name and its value.
        joint: Text between clauses.
        actions: The text of each action.
        rewards: Text before and after the number of a reward.
        real_rewards: True if a reward is written with a decimal point.
        done: Texts at the end of an episode, and before it.
        reset: The line that opens an episode.
    """

    layout: str
    names: tuple[str, ...]
    call: str
    prefix: str
    relation: str
    joint: str
    actions: tuple[str, ...]
    rewards: tuple[str, str]
    real_rewards: bool
    done: tuple[str, str]
    reset: str
    reals: tuple[bool, ...]

    def state(self, state: Vector) -> str:
        """Return the text of a state."""
        texts = [_told(v, real) for v, real in zip(state, self.reals, strict=True)]
        return self.prefix + self.joint.join(self._clauses(texts)) + "\n"

    def reward(self, reward: float) -> str:
        """Return the text of a reward."""
        before, behind = self.rewards
        return f"{before}{float(reward) if self.real_rewards else int(reward)}\n{behind}"

    def end(self, done: bool) -> str:
        """Return the text that says whether the episode is over."""
        return self.done[0] if done else self.done[1]

    def _clauses(self, texts: Sequence[str]) -> list[str]:
        r = self.relation
        if self.layout == "list":
            return [f"{self.names[0]}{r}[{', '.join(texts)}]"]
        if self.layout == "call":
            return [f"{self.names[0]}{r}{self.call}({', '.join(texts)})"]
        if self.layout == "keywords":
            inner = ", ".join(f"{key}={text}" for key, text in zip("ijkl", texts, strict=False))
            return [f"{self.names[0]}{r}{self.call}({inner})"]
        if self.layout in ("pairs", "group"):
            padded = [*texts, "0"] if len(texts) % 2 else list(texts)
            places = zip(padded[::2], padded[1::2], strict=True)
            pairs = [x if x == str(None) else f"{self.call}({x}, {y})" for x, y in places]
            if len(pairs) == 1:
                return [f"{self.names[0]}{r}{pairs[0]}"]
            if self.layout == "group":
                return [f"{self.names[0]}{r}{pairs[0]}", f"{self.names[1]}{r}[{', '.join(pairs[1:])}]"]
            return [f"{n}{r}{pair}" for n, pair in zip(self.names, pairs, strict=False)]
        return [f"{n}{r}{text}" for n, text in zip(self.names, texts, strict=False)]


def _told(value: float, real: bool) -> str:
    """Return the text of a number; None for a thing that is gone."""
    return str(None) if value == GONE else f"{value:.2f}" if real else str(int(value))


def draw(rng: Random, process: Process, ease: float = 1.0) -> Wording:
    """Draw a wording for a process.

    Args:
        rng: Random generator.
        process: The process to describe.
        ease: Share of plain wordings, from 0 to 1.
    """
    plain, count = rng.random() < ease, len(process.numbers)
    layout = rng.choice(("list", "list", "call", "keywords", "pairs", "alone"))
    if process.things:
        layout = rng.choice(("pairs", "pairs", "group"))
    own = names(rng, NAMES, 4)
    code = plain or rng.random() < 0.6
    if layout in ("list", "call", "keywords") and rng.random() < 0.4:
        own[0] = "state"
    pointed = rng.random() < (0.5 if process.numbers[0].kind == "drift" else 0.03)
    return Wording(
        layout=layout,
        names=tuple(own),
        call=rng.choice(CALLS),
        prefix="assert " if code else rng.choice(("", "# ", "now ", "obs: ", ">>> ", "- ")),
        relation=" == " if code else rng.choice((" = ", ": ", " is ", " == ", "=")),
        joint=" and " if code or count == 1 else rng.choice((" and ", ", ", "; ")),
        actions=_actions(rng, len(process.moves), own, layout, count),
        rewards=_rewards(rng, code, own),
        real_rewards=rng.random() < 0.3,
        done=_done(rng, code),
        reset=_reset(rng, own),
        reals=tuple(number.real or pointed for number in process.numbers),
    )


def _actions(rng: Random, count: int, own: Sequence[str], layout: str, size: int) -> tuple[str, ...]:
    """Draw the texts of the actions, in one or two forms."""
    *verbs, then = names(rng, VERBS, count + 1)
    thing = own[0]
    forms = (
        "{thing} = {verb}()\n",
        "{thing}, reward = {verb}()\n",
        "reward = {verb}({thing})\n",
        "{thing}.{verb}()\n",
        "reward = {thing}.{verb}()\n{other}.{then}()\n",
        "{thing} = {verb}({thing})\n",
        "{thing}, {other} = {verb}({thing}, {other})\n",
        "> {verb}\n",
        "{verb}\n",
        "act({verb})\n",
    )
    drawn = rng.choices(forms[:6] if size == 1 else forms, k=2 if rng.random() < 0.4 else 1)
    return tuple(rng.choice(drawn).format(thing=thing, other=own[1], verb=verb, then=then) for verb in verbs)


def _rewards(rng: Random, code: bool, own: Sequence[str]) -> tuple[str, str]:
    before = "assert reward == " if code else rng.choice(("reward: ", "r = ", "# reward ", "+", "got "))
    behind = f"for i in {own[2]}:\n    i.{rng.choice(VERBS)}()\n" if rng.random() < 0.07 else ""
    return before, behind


def _done(rng: Random, code: bool) -> tuple[str, str]:
    if code and rng.random() < 0.8:
        return "assert done\n", "assert not done\n"
    return rng.choice(
        (
            ("done\n", "not done\n"),
            ("done = 1\n", "done = 0\n"),
            ("over: yes\n", "over: no\n"),
            ("assert end\n", "assert not end\n"),
        )
    )


def _reset(rng: Random, own: Sequence[str]) -> str:
    return rng.choice(
        (
            f"\n{own[0]}, reward = reset()\n",
            f"\n{own[0]}, {own[1]} = reset()\n",
            "\n# episode\n",
            "\nstart()\n",
        )
    )
