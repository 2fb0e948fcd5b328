"""Every arm of every study: settings are resolved at both scales, agents are built, nothing is trained."""

import pytest

import hunch_studies
from hunch.core import HunchError
from hunch.extras import NotInstalledError
from hunch.rl.world import world_of
from hunch.runs.loading import parts_of
from hunch.runs.models import Loaded
from hunch.runs.places import NOTHING, places_of
from hunch.runs.resolve import resolve
from hunch_studies.study import FULL, SMOKE

FETCHED = "is not on this machine"
"""What is said of models that have to be fetched."""


@pytest.fixture(scope="module")
def loaded():
    """Models that the arms share."""
    return Loaded()


@pytest.mark.parametrize("name", hunch_studies.names())
def test_every_arm_can_be_resolved(name, tmp_path):
    for scale in (SMOKE, FULL):
        for part in hunch_studies.find(name).parts(scale, tmp_path):
            for arm in part.arms:
                with_what_is_there(lambda arm=arm: resolve(arm.at(0)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", hunch_studies.names())
def test_an_arm_of_each_method_is_built(name, tmp_path, loaded):
    kinds = set()
    for part in hunch_studies.find(name).parts(SMOKE, tmp_path):
        for arm in part.arms:
            config = arm.at(0)
            kind = (config.method, *sorted(config.env_options))
            if kind not in kinds and with_what_is_there(lambda arm=arm: build(arm, loaded), tmp_path):
                kinds.add(kind)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
@pytest.mark.parametrize("name", hunch_studies.names())
def test_every_arm_begins(name, tmp_path, loaded):
    for part in hunch_studies.find(name).parts(SMOKE, tmp_path):
        for arm in part.arms:
            with_what_is_there(lambda arm=arm: begin(arm, loaded), tmp_path)


def build(arm, loaded):
    """Make the environments and the agent of an arm."""
    resolved = resolve(arm.at(0))
    places = places_of(resolved, NOTHING)
    agent, _ = resolved.build(loaded=loaded, parts=parts_of(resolved.config))
    assert callable(agent.act)
    return resolved, places, agent


def begin(arm, loaded):
    """Make the agent of an arm, and let it begin in the arm's environment."""
    resolved, places, agent = build(arm, loaded)
    env = next(iter(places.all), None)
    agent.begin(world_of(None, env, resolved.config.steps, places.data), 0)


def with_what_is_there(make, folder):
    """Return what a function makes; None if it needs what the study makes before, a model, or an extra."""
    try:
        return make()
    except NotInstalledError:
        return None
    except HunchError as error:
        if str(folder.parent) not in str(error) and FETCHED not in str(error):
            raise
        return None
