"""The rules that know the worlds of the studies; see ``tests/envs/test_rules.py``."""

from importlib.metadata import entry_points

import pytest
from tests.envs.test_rules import known

from hunch import lm
from hunch.lm import rules

PLACES = {"kitchen": "hunch/Overcooked-Salad-v0", "partner": "hunch/SaySelect-v0"}
KNOWN = {"kitchen": ("18a0e23832eaa432", "819c4078a9fb"), "partner": ("6305602d1817696b", "adb7fd4404a2")}


@pytest.mark.parametrize("name", PLACES)
def test_the_version_of_a_rule_is_that_of_its_answers(name):
    found = known(name, PLACES[name])
    assert KNOWN.get(name) == found, (
        f"The rule {name} answers differently; if that is meant: {name!r}: {found!r}"
    )


def test_without_the_studies_their_rules_are_named():
    """The message of a missing rule knows which rules come with the studies."""
    added = {point.name for point in entry_points(group=rules.GROUP)}
    assert added - set(rules.HOMES) == set(rules.OF_STUDIES)
    for name in rules.OF_STUDIES:
        assert lm.load(f"scripted:{name}", cache=None).name == f"scripted:{name}"
