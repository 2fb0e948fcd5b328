"""Each prompt has a written version, and this file ties the two together.

A version enters a checkpoint's settings, so that a run goes on only with the words with which it began. What
is compared here are the prompts themselves, rendered for fixed states. Code may be renamed or reformatted.

If a test fails, the words of a prompt have changed. If that was meant, write a new version beside the prompt
(any text that was not used before), and put it here with the digest that the message shows. If it was not,
restore the words: runs and answers of before belong to them.
"""

from hashlib import sha256

import numpy as np
import pytest

from hunch.core import State, World
from hunch.envs.design.plain import Plain
from hunch.envs.design.problem import Problem
from hunch.envs.icpi.chain import ChainTexts
from hunch.lm.base import Model, OptionScores
from hunch.lm.prompts import Prompt
from hunch.methods.prior import bc_lm
from hunch.methods.program.coding import PLAIN_WORDING, CodingAgent
from hunch.methods.program.eureka import Eureka
from hunch.methods.program.funsearch import FunSearch
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.methods.program.worldcoder import WorldCoder
from hunch.methods.reward.motif import Preference
from hunch.roles.goal.suggestions import SuggestionConfig, Suggestions
from hunch.roles.prior import language
from hunch.roles.prior.language import WORDING, prompt
from hunch.roles.reward import picture_judge
from hunch.roles.reward.judge import Judge, JudgeConfig
from hunch.roles.world_model import text as world_model_text
from hunch.roles.world_model.prompting import assemble
from hunch.roles.writer.plain import plain_prompt
from hunch.roles.writer.programs import Attempt

BARE = Problem("Act.", "act(seen) returns 0 or 1.", "", "act", ("seen",))
PLAIN = Problem(
    "Act.", "", "", "act", ("seen", "memory"), plain=Plain("Act well.", ("seen",), "It returns 0.")
)
FIRST = State("You see a door.", "open the door", ("open door", "wait"))
LATER = State(
    "You see a wall.\nIt is red.",
    "open the door",
    ("go back", "wait", "look"),
    (("You see a door.", "open door"), ("It is locked.\nYou need a key.", "wait")),
    ("find the key", "open the door"),
)
PROBLEM = Problem(
    "Pack items.", "def f(a, b): ...", "class Env: pass", "f", ("a", "b"), "def f(a, b):\n    return a\n"
)
GOOD = Attempt(0, "def f(a, b):\n    return b\n", 0.5, feedback="fine")
FAILED = Attempt(1, "def f(a, b):\n    return c\n", None, error="NameError: c")
BEGUN = Attempt(2, "def f(a, b):\n    pass\n", None)


class Asked(Model):
    """Keeps the prompts that it is asked, and answers all alike."""

    name, revision, evidence = "asked", "1", "L0"

    def __init__(self, *verbs):
        self.verbs = frozenset(verbs)
        self.prompts: list[Prompt] = []

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.prompts += prompts
        return [["yes"] * k for _ in prompts]

    def score(self, prompts, options):
        self.prompts += prompts
        return [OptionScores(np.zeros(len(own)), np.ones(len(own)), np.ones(len(own))) for own in options]


def programs(agent_class):
    requests = [((), ""), ((GOOD,), ""), ((GOOD,), "fine"), ((GOOD, FAILED), "NameError: c"), ((BEGUN,), "")]
    return [agent_class.prompt(PROBLEM, parents, feedback) for parents, feedback in requests]


def suggestions():
    model = Asked("generate", "score")
    for how in ("list", "ask"):
        source = Suggestions(model, SuggestionConfig(how=how))
        source.begin(World(), 0)
        source.suggest([FIRST, LATER])
    return model.prompts


def judge():
    model = Asked("generate")
    with_objective = Judge(model, JudgeConfig(objective="be fair"))
    account = ["A offers 5 of 10.", "B accepts."]
    return [Judge(model).prompt("share ten", account), with_objective.prompt("share ten", account)]


def motif():
    source = Preference(Asked("generate"), Asked("embed"))
    source.goal = "open the door"
    return [source.prompt("You find a key.", "You sleep.")]


def pictures():
    description = "1 shows a door, 2 a wall."
    return [
        picture_judge.described("open the door"),
        picture_judge.question("open the door", description),
        picture_judge.question("open the door", ""),
    ]


PROMPTS = {
    "the prompt of priors and policies": (
        WORDING,
        lambda: [prompt(state, listed) for state in (FIRST, LATER) for listed in (True, False)],
    ),
    "the question of the labelled prior": (
        language.LABELLED_WORDING,
        lambda: [language.question(FIRST), language.question(LATER)],
    ),
    "the question to a decision model": (
        language.DECISION_WORDING,
        lambda: [language.situation(FIRST), language.situation(LATER), language.CHOICE],
    ),
    "bc-lm": (bc_lm.WORDING, lambda: [bc_lm.text(FIRST), bc_lm.text(LATER)]),
    "ELLM": (Suggestions.wording, suggestions),
    "Kwon": (Judge.wording, judge),
    "Motif": (Preference.wording, motif),
    "a judge of pictures": (picture_judge.PictureJudge.wording, pictures),
    "ICPI": (
        world_model_text.WORDING,
        lambda: [
            world_model_text.question("assert state == 1\n", "left", ChainTexts()),
            assemble(["one example\n", "another\n"], "the query", 100, len)[0],
        ],
    ),
    "programs": (CodingAgent.wording, lambda: programs(CodingAgent)),
    "the plain request": (
        PLAIN_WORDING,
        lambda: (
            [plain_prompt(p, (), "") for p in (BARE, PLAIN)]
            + [plain_prompt(PLAIN, (Attempt(0, "def act(seen): ...", 1.0),), "fitness: 1")]
        ),
    ),
    "Eureka": (Eureka.wording, lambda: programs(Eureka)),
    "FunSearch": (FunSearch.wording, lambda: programs(FunSearch)),
    "GIF-MCTS": (GIFMCTS.wording, lambda: programs(GIFMCTS)),
    "WorldCoder": (WorldCoder.wording, lambda: programs(WorldCoder)),
}
KNOWN = {
    "the prompt of priors and policies": ("7273793e", "8edb8371b85d"),
    "the question of the labelled prior": ("eb39cd99", "0f4489c08fde"),
    "the question to a decision model": ("d5e0c7a1", "c8b122196775"),
    "bc-lm": ("a67b40be", "1a487ef086d1"),
    "ELLM": ("2f027ed1", "beaf2a991dfd"),
    "Kwon": ("735fe95e", "1c979a2b40da"),
    "Motif": ("a4c058d7", "e495eed66d78"),
    "a judge of pictures": ("92169409", "4b44179f0fe6"),
    "ICPI": ("f5ec42e5", "5876f9cb141b"),
    "programs": ("4873b7fb", "135c7a1869b7"),
    "the plain request": ("plain-1", "c6a40ac6b371"),
    "Eureka": ("46e78e90", "a244233a7d29"),
    "FunSearch": ("adc4883b", "0b1587b675fc"),
    "GIF-MCTS": ("5af60686", "e45cf2b5f55d"),
    "WorldCoder": ("4873b7fb", "e45cf2b5f55d"),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_the_version_of_a_prompt_is_that_of_its_words(name):
    version, rendered = PROMPTS[name]
    digest = sha256("\n\0\n".join(map(str, rendered())).encode()).hexdigest()[:12]
    assert KNOWN.get(name) == (version, digest), (
        f"The words of {name} are no longer those of {KNOWN.get(name)}. If the change is meant, write a new "
        f"version beside the prompt, and here: {name!r}: (the version, {digest!r})."
    )
