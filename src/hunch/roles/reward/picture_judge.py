"""A judge of pairs of pictures: which of the two is nearer to a goal in words?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hunch.lm import Message, picture, require
from hunch.lm.asking import AskConfig, Asking, listed
from hunch.lm.base import LanguageModel
from hunch.lm.pictures import message
from hunch.lm.prompts import Prompt
from hunch.ranges import LATER, NonNegativeFloat
from hunch.roles.reward.comparer import CHOICES, Comparer, CompareWay


@dataclass(frozen=True, kw_only=True)
class PictureAsking(AskConfig):
    """Settings of the questions about two pictures."""

    prompt_fields = ("description",)
    goal: str = ""
    """Goal in the judge's prompt. Default: the environment's task."""
    describe: bool = True
    """First ask what both pictures show, and then ask for a verdict on this description alone (paper)."""
    way: CompareWay = field(default="auto", metadata=LATER)
    """Way of asking for a verdict; see :class:`hunch.roles.reward.comparer.Comparer`."""
    temperature: NonNegativeFloat | None = 0.1
    """Temperature of descriptions and verdicts (our choice)."""


class PictureJudge:
    """Decides which of two pictures is nearer to a goal.

    A model that writes is asked (Wang et al., ICML 2024): first what both pictures show and how they differ,
    then for a verdict. An answer without a verdict is requested once more. A model that embeds pictures and
    texts, such as CLIP, prefers the picture that is more similar to the goal.

    Args:
        lm: A model that reads pictures, and generates or embeds.
        config: How the model is asked.

    Raises:
        UsageError: if the model does not support this.
    """

    wording = "92169409"
    """Version of the words of :func:`described` and :func:`question`. Change it with them: runs with
    different words are different runs."""

    def __init__(self, lm: LanguageModel, config: PictureAsking) -> None:
        self.lm, self.config = require(lm, "see", needed_by="A judge of pictures"), config
        self.writes = "generate" in lm.verbs
        if self.writes:
            asking = Asking(lm, config, tokens=16, stop=(), role="preference")
            self.comparer = Comparer(lm, asking, way=config.way)
            without_file = replace(config, prompt=None)
            self.describing = Asking(lm, without_file, tokens=256, stop=(), role="preference")
        else:
            require(lm, "embed", needed_by="A judge of pictures that does not write")

    def verdicts(self, goal: str, pairs: Sequence[tuple[bytes, bytes]]) -> list[int | None]:
        """Return 1 or 2 for the better picture of each pair, 0 for neither, and None without a verdict.

        Args:
            goal: The goal, in words.
            pairs: Pictures as PNG files.
        """
        if not self.writes:
            return self._by_likeness(goal, pairs)
        shown = [(picture(one), picture(other)) for one, other in pairs]
        if not self.config.describe:
            return self.comparer.verdicts([self._question(goal, "", pictures) for pictures in shown])
        questions = [(Message("user", described(goal), pictures),) for pictures in shown]
        answers = self.describing.generate(questions)
        return self.comparer.verdicts([self._question(goal, text.strip()) for (text,) in answers])

    def _by_likeness(self, goal: str, pairs: Sequence[tuple[bytes, bytes]]) -> list[int | None]:
        (vector,) = self.lm.embed([goal])
        first, second = (self.lm.embed([message(pair[i]) for pair in pairs]) for i in (0, 1))
        leads = ((first - second) @ vector).tolist()
        return [1 if lead > 0 else 2 if lead < 0 else 0 for lead in leads]

    def _question(self, goal: str, description: str, shown: tuple[str, ...] = ()) -> Prompt:
        fields = {"task": goal, "actions": listed(CHOICES), "description": description}
        prompt = self.comparer.asking.prompt(question(goal, description), **fields)
        text = prompt if isinstance(prompt, str) else prompt[-1].content
        return (Message("user", text, shown),) if shown else prompt


def described(goal: str) -> str:
    """Return the first question, which asks for a description of two pictures."""
    return (
        "Here are two pictures, 1 and 2.\nWhat does picture 1 show? What does picture 2 show?\n"
        f"The goal: {goal}\nHow do the two differ with regard to this goal?"
    )


def question(goal: str, description: str) -> str:
    """Return the question for a verdict, about a description of two pictures or about the pictures."""
    return (
        f"{description}\nThe goal: {goal}\nIn which of the two pictures is it better achieved? "
        "Say none if this is not clear or there is no difference.\n- 1\n- 2\n- none\nAnswer:"
    ).lstrip()
