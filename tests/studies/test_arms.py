"""Every arm of every study: its settings are resolved at both scales, and nothing is trained."""

import pytest

import hunch_studies
from hunch.core import HunchError
from hunch.runs.resolve import resolve
from hunch_studies.study import FULL, SMOKE


@pytest.mark.parametrize("name", hunch_studies.names())
def test_every_arm_can_be_resolved(name, tmp_path):
    for scale in (SMOKE, FULL):
        for part in hunch_studies.find(name).parts(scale, tmp_path):
            for arm in part.arms:
                _resolved(arm, tmp_path)


@pytest.mark.parametrize("name", ["glam", "twosome", "gflan-prior"])
def test_the_policies_are_built(name, tmp_path):
    for part in hunch_studies.find(name).parts(SMOKE, tmp_path):
        for arm in part.arms:
            if resolved := _resolved(arm, tmp_path):
                agent, _ = resolved.build()
                assert callable(agent.act)


def _resolved(arm, folder):
    """Return an arm's resolved settings; None if it needs what the study makes before its runs."""
    try:
        return resolve(arm.at(0))
    except HunchError as error:
        if str(folder) not in str(error):
            raise
        return None
