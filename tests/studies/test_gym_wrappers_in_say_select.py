"""Wrappers where two players take turns."""

import pytest
from tests.roles.test_gym_wrappers import WORDS

import hunch
from hunch.core import UsageError
from hunch.methods.reward.count_bonus import Counts
from hunch.roles.encoder.gym import Encoded
from hunch.roles.reward.gym import SourceReward
from hunch.roles.reward.rewarded import Shaping


def test_what_has_no_place_is_refused():
    with pytest.raises(UsageError, match="recall"):
        SourceReward(hunch.make("hunch/Ultimatum-v0"), Counts("event"), shaping=Shaping(recall=True))
    env = Encoded(hunch.make("hunch/SaySelect-v0"), WORDS)
    env.reset(seed=0)
    with pytest.raises(UsageError, match="No action is admissible"):
        env.step(0)  # then it is the partner's turn, whose actions are others
