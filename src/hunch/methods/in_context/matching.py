"""Matching Model: ICPI with the language model replaced by an exact look-up of past steps.

The baseline of Brooks et al. (2023), as of its source code of August 2022. If a look-up finds nothing, the
rollout ends with the return so far. Everything else is as in ICPI. (From September 2022 on, the
released policy look-up found nothing, so Q was the immediate reward when the action was last taken there.)
"""

from __future__ import annotations

from typing import Any

from hunch.methods.in_context.icpi import BROOKS, PlanConfig, PolicyIteration
from hunch.methods.method import Method
from hunch.roles.policy.in_context import LookUpPolicy
from hunch.roles.world_model.text import LookUpWorldModel


class Matching(PolicyIteration):
    """The agent of the Matching Model.

    Args:
        config: All settings; ``options`` change single ones, and ``texts`` is the wording of the domain.
    """

    def __init__(self, config: PlanConfig | None = None, **options: Any) -> None:
        super().__init__(LookUpWorldModel, LookUpPolicy, config, **options)


METHOD = Method(
    "matching",
    Matching,
    "ICPI with a look-up of past steps instead of a model; a baseline of icpi",
    BROOKS,
    environments="the domains of ICPI",
    reads={"wording"},
)
