"""An environment that says what would be markup in a page."""

from __future__ import annotations

import gymnasium

from hunch.core import InadmissibleActionError

ID = "Hostile-v0"
EVIL = (
    "<script>window.hacked = 1</script></script><!--<script> & <img src=x onerror='window.hacked = 2'>\u2028"
)


class Hostile(gymnasium.Env):
    """An environment that says what would be markup in a page."""

    def reset(self, *, seed=None, options=None):
        """Begin."""
        super().reset(seed=seed)
        self.left = 3
        return EVIL, self._info()

    def step(self, action):
        """Go on."""
        if action not in self._info()["actions"]:
            raise InadmissibleActionError(action)
        self.left -= 1
        return f"{EVIL} {self.left}", 1.0, self.left == 0, False, self._info()

    def _info(self):
        return {"actions": (EVIL, "wait"), "success": self.left == 0, "task": EVIL}


gymnasium.register(ID, Hostile, disable_env_checker=True, order_enforce=False)
