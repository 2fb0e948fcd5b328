"""The rules that know the environments: each has a written version, tied to its answers if it is simple.

Stored answers are found by the version. If a test fails, a rule answers differently. If that was meant, write
a new version beside the rule (any text that was not used before), and put it here with the digest that the
message shows. The rules that read whole exchanges are tied by the short runs of ``hunch study --stale``.
"""

from hashlib import sha256

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import State
from hunch.envs.frozen_lake_rule import frozenlake
from hunch.lm import rules
from hunch.lm.backends import scripted  # noqa: F401 (it registers the rules that know no environment)
from hunch.lm.rules import NamedRule
from hunch.roles.prior.language import prompt

PLACES = {
    "frozenlake": "hunch/FrozenLake-v0",
    "first": "hunch/Household-Pick-v0",
    "overlap": "hunch/Household-Pick-v0",
}
KNOWN = {
    "frozenlake": ("9ec982f08dd764a7", "1182c7fce949"),
    "first": ("7a50d00cf6b04afd", "299e76104f65"),
    "overlap": ("c2766ee2a3386e3a", "bc72356f5bb1"),
}


def answers(name, place):
    """Return the rule's answers along a random walk."""
    env, rng, said = hunch.make(place), np.random.default_rng(0), []
    observation, info = env.reset(seed=0)
    for _ in range(40):
        state = State.read(observation, info)
        said.append(rules.find(name).choose(prompt(state), state.options))
        action = state.options[int(rng.integers(len(state.options)))]
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
    return said


def known(name, place):
    """Return a rule's version and the digest of its answers."""
    return rules.find(name).version, sha256("\n".join(answers(name, place)).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", PLACES)
def test_the_version_of_a_rule_is_that_of_its_answers(name):
    found = known(name, PLACES[name])
    assert KNOWN.get(name) == found, (
        f"The rule {name} answers differently; if that is meant: {name!r}: {found!r}"
    )


@pytest.mark.parametrize("name", rules.HOMES)
def test_each_rule_loads_and_has_a_version(name):
    model = lm.load(f"scripted:{name}", cache=None)
    assert model.name == f"scripted:{name}"
    named = rules.find(name)
    assert not isinstance(named, NamedRule) or named.version


def test_frozenlake_reaches_the_goal_of_the_standard_map() -> None:
    lake, moves = (
        ["SFFF", "FHFH", "FFFH", "HFFG"],
        {"Left": (0, -1), "Right": (0, 1), "Up": (-1, 0), "Down": (1, 0)},
    )
    names = {"S": "start position", "F": "a frozen cell (F)", "H": "a hole (H)", "G": "the goal (G)"}
    place, path = (0, 0), "S"
    while path[-1] not in "GH" and len(path) < 20:
        lines, leads = [], {}
        for move, (down, right) in moves.items():
            row, column = (min(max(x, 0), 3) for x in (place[0] + down, place[1] + right))
            leads[f"Go {move}"] = row, column
            lines.append(f"Go {move} leads to position ({row}, {column}), {names[lake[row][column]]}.")
        place = leads[frozenlake("\n".join(lines), tuple(leads))]
        path += lake[place[0]][place[1]]
    assert path == "SFFFFFG"
