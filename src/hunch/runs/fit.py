"""Checks before anything is loaded whether a method can use an environment."""

from __future__ import annotations

from hunch import methods
from hunch.core import UsageError
from hunch.envs.offers import acts, declared
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import name_of


def require_fit(method: str, env: TextEnvironment) -> None:
    """Check that an environment has the actions that a method takes, and provides what the method reads.

    An environment without declarations is only refused if the method does not choose from listed actions.

    Raises:
        UsageError: if it does not fit; the message names method and environment.
    """
    wants, offers, name = methods.find(method), declared(env), name_of(env)
    takes = acts(offers)
    if wants.acts != takes and (wants.acts != "any" or takes == "program"):
        hint = ": use a design problem (hunch envs)" if wants.acts == "program" else ""
        raise UsageError(f"{method} {_ACTS[wants.acts]}, and {name} takes {_TAKES[takes]}{hint}.")
    lacking = sorted(wants.reads - wants.optional - (wants.reads if offers is None else offers))
    if lacking:
        raise UsageError(f"{method} reads {READS[lacking[0]]}, and {name} offers none.")


_ACTS = {
    "listed": "chooses from listed actions",
    "text": "writes any text",
    "program": "writes programs",
    "any": "writes or chooses texts",
}
_TAKES = {"listed": "listed actions", "text": "any text", "program": "programs"}
READS = {
    "events": "events (what happened, in words)",
    "raw": "raw states (the environment's own)",
    "pictures": "pictures (--env.picture)",
    "wording": "how states and actions are written in prompts",
}
