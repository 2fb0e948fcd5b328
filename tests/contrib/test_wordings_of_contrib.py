"""The versions of the prompts of hunch-rl-contrib; if a test fails, see ``tests/test_wordings.py``."""

from hashlib import sha256

import pytest

from hunch.core import State, World
from hunch.envs.design.problem import Problem
from hunch.lm.base import Model
from hunch.roles.writer.programs import Attempt
from hunch_contrib.goal.rl_adapter import Lesson, Mentor, MentorConfig
from hunch_contrib.planner import skill_graph, spring
from hunch_contrib.program.song import Song
from hunch_contrib.program.text2reward import Text2Reward
from hunch_contrib.tune import constitutional

STATE = State("It is red.", "open the door", ("go back", "wait"), (("You see a door.", "open door"),))
PROBLEM = Problem(
    "Pack items.", "def f(a, b): ...", "class Env: pass", "f", ("a", "b"), "def f(a, b):\n    return a\n"
)
GOOD = Attempt(0, "def f(a, b):\n    return b\n", 0.5, feedback="fine")
FAILED = Attempt(1, "def f(a, b):\n    return c\n", None, error="NameError: c")


class Named(Model):
    """A model that is never asked."""

    name, revision, evidence = "named", "1", "L0"
    verbs = frozenset({"generate", "embed"})


def programs(agent_class):
    requests = [((), ""), ((GOOD,), ""), ((GOOD,), "fine"), ((GOOD, FAILED), "NameError: c")]
    return [agent_class.prompt(PROBLEM, parents, feedback) for parents, feedback in requests]


def springs(ask):
    agent = spring.SPRING(Named(), ask=ask)
    agent.begin(World(manual="A manual."), 0)
    answers = dict.fromkeys(agent.questions, "an answer")
    return [agent.prompt(name, STATE, answers) for name in agent.order]


def mentor():
    source = Mentor(Named(), Named(), MentorConfig(), 0.9)
    return [source.question(STATE, lesson) for lesson in (Lesson(), Lesson("a prompt", "a summary"))]


PROMPTS = {
    "SPRING, all questions": (spring.WORDINGS["graph"], lambda: springs("graph")),
    "SPRING, one question": (spring.WORDINGS["direct"], lambda: springs("direct")),
    "RLAdapter": (Mentor.wording, mentor),
    "Plan4MC": (skill_graph.WORDING, lambda: [skill_graph.question("A manual.", "take wood")]),
    "Song": (Song.wording, lambda: programs(Song)),
    "Text2Reward": (Text2Reward.wording, lambda: programs(Text2Reward)),
    "Constitutional AI": (
        constitutional.QUESTION_WORDING,
        lambda: [
            constitutional.question(STATE, "an answer", "be kind") + words
            for words in (constitutional.CRITICISE, constitutional.REVISE)
        ],
    ),
}
KNOWN = {
    "SPRING, all questions": ("a38192ad", "9621d45f4287"),
    "SPRING, one question": ("bd89f2ed", "0cdab1804dde"),
    "RLAdapter": ("41036d23", "a1ce519af63e"),
    "Plan4MC": ("6c8bfb4c", "313487ca6be8"),
    "Song": ("e039e509", "2ea649fe6b4a"),
    "Text2Reward": ("29255f34", "ad81315615d4"),
    "Constitutional AI": ("970e53f6", "57072f69c0ab"),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_the_version_of_a_prompt_is_that_of_its_words(name):
    version, rendered = PROMPTS[name]
    digest = sha256("\n\0\n".join(map(str, rendered())).encode()).hexdigest()[:12]
    assert KNOWN.get(name) == (version, digest), (
        f"The words of {name} are no longer those of {KNOWN.get(name)}. If the change is meant, write a new "
        f"version beside the prompt, and here: {name!r}: (the version, {digest!r})."
    )
