"""A crane with three axes, each of which has a place of its own to reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch.rl.cem import CEM
from hunch_studies.worlds.rewards.base import Variables, World, met


class Crane(World):
    """A crane whose slew, trolley and hoist must each come to a place of its own.

    The degree of success counts each axis by itself, so a reward for one axis is worth a third.
    """

    version = "6253428f703236b1"
    task = (
        "A crane turns, moves its trolley along the jib and lowers its hook. When the episode ends, after 6 "
        "seconds, its bearing has to be within 0.15 radians of the site's, its trolley within 0.15 metres of "
        "the site's reach, and its hook within 0.15 metres of the site's height."
    )
    variables: ClassVar[Mapping[str, str]] = {
        "bearing": "(n,), where the jib points after the step, in radians",
        "reach": "(n,), where the trolley is on the jib, in metres",
        "height": "(n,), where the hook is, in metres",
        "site_bearing": "(n,), where the jib has to point, in radians",
        "site_reach": "(n,), where the trolley has to be, in metres",
        "site_height": "(n,), where the hook has to be, in metres",
        "action": "(n, 3), the speeds of jib, trolley and hook, from -1 to 1",
    }
    horizon = 30
    learner = CEM(population=128, elites=10, generations=40, spread=0.5, noise=0.1)
    episodes = 1
    sizes = (6, 3)
    degree_description = (
        "the mean over bearing, reach and height of 0.15 divided by the distance from the site's at the end, "
        "and 1 for each that is nearer"
    )
    sparse = """import numpy as np

def reward(bearing, reach, height, site_bearing, site_reach, site_height, action):
    there = (np.abs(bearing - site_bearing) < 0.15) & (np.abs(reach - site_reach) < 0.15)
    success = (there & (np.abs(height - site_height) < 0.15)).astype(float)
    return success, {"success": success}
"""
    dense = """import numpy as np

def reward(bearing, reach, height, site_bearing, site_reach, site_height, action):
    turn = -np.abs(bearing - site_bearing)
    out = -np.abs(reach - site_reach)
    drop = -np.abs(height - site_height)
    return turn + out + drop, {"turn": turn, "out": out, "drop": drop}
"""

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """Anywhere, with the site anywhere else."""
        names = [name for name in self.variables if name != "action"]
        return {name: rng.uniform(-1.0, 1.0, n) for name in names}

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Each axis moves at the speed that its action sets, and stops at 1.5 from the middle."""
        axes = np.stack([state["bearing"], state["reach"], state["height"]])
        bearing, reach, height = np.clip(axes + 0.1 * action.T, -1.5, 1.5)
        return {**state, "bearing": bearing, "reach": reach, "height": height}

    def observe(self, state: Variables) -> FloatArray:
        """Where each axis is, and where it has to be."""
        return np.stack([state[name] for name in self.variables if name != "action"], axis=1)

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """All three axes at the site."""
        there: NDArray[np.bool_] = np.max(np.abs(self._apart(state)), axis=0) < 0.15
        return there

    def degree(self, state: Variables) -> FloatArray:
        """Return the mean over the axes of how near each is."""
        near: FloatArray = np.mean([met(0.15, np.abs(apart)) for apart in self._apart(state)], axis=0)
        return near

    @staticmethod
    def _apart(state: Variables) -> list[FloatArray]:
        return [state[f"site_{axis}"] - state[axis] for axis in ("bearing", "reach", "height")]
