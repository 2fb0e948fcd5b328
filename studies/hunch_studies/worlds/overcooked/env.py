"""Overcooked in words, with macro-actions, as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch_studies.worlds.overcooked.kitchen import SALAD, TOMATO, Kitchen, Scene, play
from hunch_studies.worlds.overcooked.oracle import plan
from hunch_studies.worlds.overcooked.words import dish, floor_plan, look

PRIMITIVE_STEPS = 200


class Overcooked(TextEnv):
    """A cook alone in a kitchen, with macro-actions of one or more primitive steps.

    Every macro-action is always admissible, and a pointless one takes at least one step. The labels change
    with the scene, but their order does not: the foods, the bowl, the boards, serve, chop.

    A primitive step costs 0.001 and a wrong delivery 0.1; chopping a food of the recipe earns 0.2, and the
    dish 1. The reward of a macro-action is the sum over its steps, discounted by 0.99 per step from its first
    step on. The dish ends the episode. After 200 primitive steps it is ``truncated`` at the end of the
    running macro-action.

    ``info["vector"]`` is the observation in numbers, and ``info["primitive_steps"]`` the number of primitive
    steps of the last macro-action. The environment is deterministic.

    Args:
        closing: Add the closing half sentence, "To serve the dish of ..., you should first".
        max_steps: Limit of macro-actions. 200 is never reached before the limit of primitive steps; the
            priors paper stops after 31 (Tomato) and 51 (Salad).
        render_mode: ``"ansi"`` or ``"rgb_array"``: the whole kitchen, including what the cook does not see.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")
    kitchen: ClassVar[Kitchen]

    def __init__(
        self,
        *,
        closing: bool = False,
        max_steps: int = PRIMITIVE_STEPS,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.closing = f" To serve {dish(self.kitchen)}, you should first" if closing else ""
        self.task = f"serve {dish(self.kitchen)}"
        self._arrive(self.kitchen.start())

    def oracle(self) -> tuple[str, ...]:
        """Return the macro-actions that serve the dish with the highest discounted return from here."""
        return plan(self.kitchen, self._scene)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Overcooked has no reset option {next(iter(options))!r}.")
        self._arrive(self.kitchen.start())
        return Outcome(self._view.text + self.closing, self._view.labels)

    def _move(self, action: str) -> Outcome:
        result = play(self.kitchen, self._scene, self._view.labels.index(action))
        self._arrive(result.scene, result.steps, self._total + result.steps)
        return Outcome(
            self._view.text + self.closing,
            self._view.labels,
            result.reward,
            terminated=result.delivered,
            success=result.delivered,
            truncated=self._total >= PRIMITIVE_STEPS,
            event=f"The dish is served: {dish(self.kitchen)}." if result.delivered else "",
        )

    def _raw(self) -> tuple[Scene, int]:
        return self._scene, self._total

    def _place(self, raw: Any) -> Outcome:
        scene, total = raw
        self._arrive(scene, total=total)
        return Outcome(self._view.text + self.closing, self._view.labels)

    def _arrive(self, scene: Scene, steps: int = 0, total: int = 0) -> None:
        self._scene, self._view = scene, look(self.kitchen, scene)
        self._steps_of_macro, self._total = steps, total

    def _grid(self) -> list[str]:
        return floor_plan(self.kitchen, self._scene)

    def _extras(self) -> dict[str, Any]:
        return {"vector": self._view.vector, "primitive_steps": self._steps_of_macro}


class OvercookedTomato(Overcooked):
    """Chop a tomato and serve it in a bowl, in text."""

    kitchen = TOMATO


class OvercookedSalad(Overcooked):
    """Chop a tomato and a lettuce and serve both in one bowl, in text."""

    kitchen = SALAD
