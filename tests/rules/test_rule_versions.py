"""Each scripted rule has a written version. If the rule is simple, this file ties it to the rule's answers.

Stored answers are found by the version. If a test fails, a rule answers differently. If that was meant, write
a new version beside the rule (any text that was not used before), and put it here with the digest that the
message shows. The rules that read whole exchanges are tied by the short runs of ``hunch study --stale``.
"""

from hashlib import sha256

import numpy as np
import pytest

import hunch
import hunch_studies.rules.load  # noqa: F401, registers all rules
from hunch.core import State
from hunch.roles.prior.language import prompt
from hunch_studies.rules.model import RULES, VERSIONS

PLACES = {
    "frozenlake": "hunch/FrozenLake-v0",
    "kitchen": "hunch/Overcooked-Salad-v0",
    "partner": "hunch/SaySelect-v0",
    "first": "hunch/Household-Pick-v0",
    "overlap": "hunch/Household-Pick-v0",
}
KNOWN = {
    "frozenlake": ("9ec982f08dd764a7", "1182c7fce949"),
    "kitchen": ("18a0e23832eaa432", "819c4078a9fb"),
    "partner": ("6305602d1817696b", "adb7fd4404a2"),
    "first": ("7a50d00cf6b04afd", "299e76104f65"),
    "overlap": ("c2766ee2a3386e3a", "bc72356f5bb1"),
}


def answers(name):
    """Return the rule's answers along a random walk."""
    env, rng, said = hunch.make(PLACES[name]), np.random.default_rng(0), []
    observation, info = env.reset(seed=0)
    for _ in range(40):
        state = State.read(observation, info)
        said.append(RULES[name](prompt(state), state.options))
        action = state.options[int(rng.integers(len(state.options)))]
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
    return said


@pytest.mark.parametrize("name", PLACES)
def test_the_version_of_a_rule_is_that_of_its_answers(name):
    found = VERSIONS[name], sha256("\n".join(answers(name)).encode()).hexdigest()[:12]
    assert KNOWN.get(name) == found, (
        f"The rule {name} answers differently; if that is meant: {name!r}: {found!r}"
    )
