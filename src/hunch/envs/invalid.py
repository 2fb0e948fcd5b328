"""Whether an environment refused an action, where any text is an action.

An environment says so by its event: ``Nothing happens.`` (the wrapper :class:`hunch.envs.wrappers.Written`,
and environments that ``hunch serve`` serves), or a line that begins with ``invalid move`` or ``invalid
action``. In environments of several players such a line may end in ``of player N``; without it, it speaks of
the player who acted.
"""

from __future__ import annotations

import re
from typing import Final

from hunch.core import Transition
from hunch.envs.wrappers import REFUSED

INVALID: Final = "Invalid move"
"""Beginning of the event of a refused action."""
_LINE: Final = re.compile(r"invalid (?:move|action)\b(?: of player (\d+))?", re.IGNORECASE)


def is_invalid(transition: Transition) -> bool:
    """Return whether the environment refused the action of a transition."""
    for line in transition.event.splitlines():
        match = _LINE.match(line.strip())
        if line.strip() == REFUSED:
            return True
        if match and match[1] in (None, str(transition.state.seat)):
            return True
    return False
