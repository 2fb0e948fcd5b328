"""``scripted:onlooker``: reads and compares pictures of rooms with a red ball, as a programmer would.

Shown two pictures, it says how many actions the agent is from facing the ball in each; asked on this text, or
with the pictures, in which the goal is better achieved, it names the one with fewer. Other goals give it
nothing to go by. Asked for the facts of one picture, it answers with a JSON object.

Dials: ``error``, the share of different pictures in which it names the other one; ``abstain``, the share in
which it names none; ``systematic``, the share of the pairs of descriptions in which errors are the same in
both orders and whenever it is asked; ``misread``, the share of facts that are guessed, always alike in the
same picture; ``draw``, another draw of the errors that last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hunch.core import UsageError
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.backends.scripted import RuleWriter
from hunch.lm.base import Verb
from hunch.lm.prompts import Prompt, shown
from hunch.lm.rules import writer
from hunch.lm.speech import ONE_LINE, Sampling, text_of
from hunch_studies.worlds.babyai.facts import SCHEMA

DIALS = ("error", "abstain", "systematic", "misread", "draw")
_TOLD = "In picture {} the agent is {} actions from facing the ball."


@writer("onlooker", dials=DIALS)
@dataclass
class Onlooker(RuleWriter):
    """The rule, with its dials."""

    verbs: ClassVar[frozenset[Verb]] = frozenset({"generate", "see"})  # type: ignore[misc]
    messages: ClassVar[bool] = True  # type: ignore[misc]
    error: float = 0.0
    abstain: float = 0.0
    systematic: float = 0.0
    misread: float = 0.0
    draw: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 <= getattr(self, dial) <= 1 for dial in DIALS[:-1]) or self.error + self.abstain > 1:
            raise UsageError(
                "The dials of scripted:onlooker must be from 0 to 1, error and abstain together."
            )
        self.name = "scripted:onlooker"
        self.revision = f"1:{self.error},{self.abstain},{self.systematic}"
        self.revision += f",{self.misread},{self.draw}" * bool(self.misread)

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k answers to each prompt: samples number ``first`` to ``first + k - 1``."""
        return [self._answers(prompt, k, sampling, first) for prompt in prompts]

    def _answers(self, prompt: Prompt, k: int, sampling: Sampling, first: int) -> list[str]:
        text, pictures = text_of(prompt), shown(prompt)
        if len(pictures) == 1:
            return [json.dumps(self._facts(pictures[0]))] * k
        if pictures:
            from hunch_studies.laboratory.tiles import actions_to_ball  # draws rooms with minigrid
        apart = [actions_to_ball(own) for own in pictures]
        told = " ".join(_TOLD.format(i, n) for i, n in enumerate(apart, 1))
        if pictures and not text.rstrip().endswith("Answer:"):
            return [told] * k
        samples = [0] * k if sampling.temperature == 0 else range(first, first + k)
        return [self.compared(f"{told}\n{text}", sample) for sample in samples]

    def _facts(self, image: str) -> dict[str, str]:
        from hunch_studies.laboratory.tiles import facts_of  # draws rooms with minigrid

        found = facts_of(image)
        for name, values in SCHEMA.fields.items():
            rng = sample_rng(f"{image} {name} {self.draw}", "onlooker")
            if rng.random() < self.misread:
                found[name] = list(values)[int(rng.random() * len(values))]
        return found

    def compared(self, text: str, sample: int) -> str:
        """Return 1, 2 or none for a text that holds both distances."""
        near = [int(n) for n in re.findall(r"is (\d+) actions from", text)[:2]]
        if len(near) < 2 or near[0] == near[1] or "ball" not in text.partition("The goal:")[2]:
            return "none"
        pair = f"{min(near)} {max(near)}"
        lasting = (
            sample_rng(f"{pair} {self.draw}" if self.draw else pair, "onlooker") if self.systematic else None
        )
        rng = (
            lasting
            if lasting and lasting.random() < self.systematic
            else sample_rng(text, "onlooker", sample)
        )
        draw = rng.random()
        if draw < self.abstain:
            return "none"
        return "1" if (near[0] < near[1]) != (draw < self.abstain + self.error) else "2"
