"""Learned sentences to be rewritten more simply; a formula judges the wording, an encoder the meaning.

A text pays by how much easier it is to read than the sentence (Flesch, A new readability yardstick, Journal
of Applied Psychology, 1948) times how similar it is in meaning, as in sentence simplification by
reinforcement learning (Zhang and Lapata, EMNLP 2017). Syllables are counted with ``pyphen`` (extra
``tasks``), which hyphenates for print and so undercounts some words: it never leaves a single letter at the
end of a line, and counts one syllable in "area", "idea", "over" and "city". The count is too low for short
words more often than for long ones. The sentences and their words are ours. A formula can be satisfied
without a sentence: look at the texts, not at the score alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from hunch.envs.base import Outcome
from hunch.envs.constraints import words
from hunch.envs.parts import Part, RequestEnv
from hunch.envs.reading import shared
from hunch.extras import library
from hunch.lm import Cached, require
from hunch.lm.base import unit
from hunch.ranges import NonNegativeInt, Share

LONGEST: Final = 8_192
"""Characters that are judged."""
EASIER: Final = 0.2
"""Simplicity above which a text counts as a success: 20 points of reading ease (ours)."""
END: Final = re.compile(r"[.!?](?!\w)")
"""The end of a sentence, unlike the point in a number."""
REQUEST: Final = "Rewrite this sentence in short and simple words: "
WHO: Final = {
    "municipality": "town",
    "metropolitan authority": "city",
    "administration of the academy": "school",
    "proprietor of the establishment": "owner of the shop",
    "executive committee": "board",
    "manufacturer of the machinery": "maker of the machines",
    "regional legislature": "state",
    "association of residents": "people of the town",
    "supervisor of the department": "boss",
    "ecclesiastical community": "church",
    "organisation of volunteers": "helpers",
    "medical practitioner": "doctor",
}
ACTIONS: Final = {
    "terminated the construction of": "stopped building",
    "initiated the renovation of": "began to mend",
    "authorised the demolition of": "let them tear down",
    "discontinued the maintenance of": "no longer looked after",
    "financed the restoration of": "paid to mend",
    "accelerated the completion of": "soon finished",
    "postponed the inspection of": "put off the check of",
    "recommended the modification of": "asked for changes to",
    "facilitated the acquisition of": "helped to buy",
    "requested the evacuation of": "asked everyone to leave",
    "announced the inauguration of": "said when they would open",
    "contemplated the relocation of": "thought about moving",
}
THINGS: Final = {
    "pedestrian bridge": "bridge",
    "municipal library": "library",
    "subterranean garage": "garage",
    "railway station": "station",
    "recreational swimming pool": "pool",
    "elementary school": "school",
    "museum of transportation": "museum",
    "experimental theatre": "theatre",
    "international airport": "airport",
    "psychiatric hospital": "hospital",
    "refrigerated warehouse": "warehouse",
    "botanical garden": "garden",
}
ENDINGS: Final = {
    "prior to the commencement of the festival": "before the festival began",
    "subsequent to the conclusion of the negotiations": "after the talks",
    "in the aftermath of the devastating inundation": "after the great flood",
    "throughout the duration of the vacation period": "all through the holidays",
    "notwithstanding considerable opposition from the inhabitants": "though many people were against it",
    "on numerous previous occasions": "many times before",
    "owing to an insufficiency of financial resources": "because there was not enough money",
    "with the assistance of numerous volunteers": "with the help of many people",
    "in accordance with governmental regulations": "as the law says",
    "without additional consultation of the public": "and did not ask the people again",
    "at the earliest available opportunity": "as soon as they could",
    "during a period of extraordinarily low temperatures": "when it was very cold",
}
"""Learned words, each with plain ones (ours)."""


class Simplicity(RequestEnv):
    """Rewrite a learned sentence more simply, and keep its meaning.

    The reward is simplicity times meaning. Simplicity is the Flesch reading ease of the text less that of the
    sentence, divided by 100 and cut to 0 to 1. Meaning is the cosine of the two under an encoder; below
    ``least`` the reward is 0, and so is that of a text without words. A simplicity above 0.2 with enough
    meaning is a success. An episode is one text.

    Args:
        judge: Spec of the encoder that compares the meanings; ``words`` is the lexical control.
        least: Minimum cosine of the text and the sentence (ours).
        part: Sentences for training (``train``), those that are held out from it (``held-out``), or ``all``.
        held_out: Share of the sentences that are held out.
        draw: Seed of the parts.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such part, or the judge is no encoder.
        NotInstalledError: if pyphen is not installed.
    """

    called = "sentence"

    def __init__(
        self,
        *,
        judge: str = "minilm",
        least: Share = 0.6,
        part: Part = "train",
        held_out: Share = 0.2,
        draw: NonNegativeInt = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(part, held_out, draw, render_mode)
        dictionary()
        encoder = require(shared(judge), "embed", "The judge of meaning")
        self.models: dict[str, Cached] = {"judge": encoder}
        self.least = least
        self.sentence = ""

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        self.sentence = self.drawn(options, lambda: learned(self.task_random))
        return Outcome(REQUEST + self.sentence, None)

    def _move(self, action: str) -> Outcome:
        text = action.strip()[:LONGEST]
        if not words(text):
            return Outcome("", None, terminated=True, event="The text has no words.")
        easier = (reading_ease(text) - reading_ease(self.sentence)) / 100
        simplicity = min(max(easier, 0.0), 1.0)
        meaning = self.meaning(text)
        kept = meaning >= self.least
        reward = simplicity * meaning if kept else 0.0
        success = kept and simplicity > EASIER
        event = f"simplicity {simplicity:.2f}, meaning {meaning:.2f}"
        return Outcome("", None, reward, terminated=True, success=success, event=event)

    def oracle(self) -> list[str]:
        """Return the sentence in plain words."""
        return [plain(self.sentence)]

    def meaning(self, text: str) -> float:
        """Return the cosine of a text and the sentence under the judge."""
        of_sentence, of_text = self.models["judge"].embed([self.sentence, text])  # each (dim,)
        return float(unit(of_sentence) @ unit(of_text))


def learned(rng: np.random.Generator) -> str:
    """Draw a sentence in learned words; there are 20,736."""
    who, action, thing, ending = (
        list(choices)[int(rng.integers(len(choices)))] for choices in (WHO, ACTIONS, THINGS, ENDINGS)
    )
    return f"The {who} {action} the {thing} {ending}."


def plain(sentence: str) -> str:
    """Return a learned sentence in plain words, ours."""
    for choices in (WHO, ACTIONS, THINGS, ENDINGS):
        for long, short in choices.items():
            sentence = sentence.replace(f" {long}", f" {short}")
    return sentence


# ---- reading ease ------------------------------------------------------------------------------------------


@cache
def dictionary() -> Any:
    """Return the English hyphenation dictionary of pyphen.

    Raises:
        NotInstalledError: if pyphen is not installed.
    """
    pyphen = library("pyphen", "Counting syllables needs pyphen", "tasks")
    return pyphen.Pyphen(lang="en_US")


def syllables(word: str) -> int:
    """Return the number of syllables of a word: one more than the places where it may be hyphenated."""
    return 1 + len(dictionary().positions(word))


def reading_ease(text: str) -> float:
    """Return the Flesch reading ease of a text with words; the higher, the easier.

    A sentence without words does not count.
    """
    sentences = [words(each) for each in END.split(text)]
    n_sentences = sum(1 for each in sentences if each)
    n_words = sum(map(len, sentences))
    n_syllables = sum(syllables(word) for each in sentences for word in each)
    return 206.835 - 1.015 * n_words / n_sentences - 84.6 * n_syllables / n_words
