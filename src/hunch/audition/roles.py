"""The roles for which a model can be tested."""

from __future__ import annotations

from typing import Final

from hunch.audition.formaliser import FORMALISER
from hunch.audition.goal import GOAL
from hunch.audition.judge import JUDGE
from hunch.audition.planner import PLANNER
from hunch.audition.preference import PREFERENCE
from hunch.audition.prior import POLICY, PRIOR
from hunch.audition.question import Role
from hunch.audition.reader import READER
from hunch.audition.text_judge import TEXT_JUDGE
from hunch.audition.world_model import WORLD_MODEL
from hunch.audition.writer import WRITER
from hunch.core import UsageError
from hunch.suggest import suggest

ROLES: Final = (
    *(PRIOR, POLICY, JUDGE, PREFERENCE, GOAL, PLANNER, WORLD_MODEL, WRITER),
    *(READER, FORMALISER, TEXT_JUDGE),
)


def role_named(name: str) -> Role:
    """Return the role with this name.

    Raises:
        UsageError: if there is no such role.
    """
    for role in ROLES:
        if role.name == name:
            return role
    raise UsageError(f"There is no role {name!r}; {suggest(name, [role.name for role in ROLES])}")
