"""A bag of words in which function words count little: the lexical control of sentence encoders.

A sentence encoder may know the meaning of words, or only which words are equal. This model knows only the
latter, so an encoder's advantage over it is due to knowledge of language. Evidence level L0.
"""

from __future__ import annotations

import re

from hunch.lm.backends.bag_of_words import BagOfWords
from hunch.lm.base import Backend

BACKEND = Backend(
    "words",
    f"{__name__}:Words",
    frozenset({"embed"}),
    "a bag of words with low weight on function words: the lexical control of minilm",
    costly=False,
)

PLACES = 4096
"""Length of a vector, large enough that words rarely share an index."""
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an and any are as at be but by can did do does for from had has have here how i if in into is it
        its may must no not of off on or out over some that the their them then there these they this those to
        under up upon was were what when where which who will with you your""",
    )
)
FUNCTION_WEIGHT, NUMBER_WEIGHT = 0.15, 0.3


class Words(BagOfWords):
    """Signed counts of hashed words; function words and punctuation weigh 0.15, numbers 0.3, others 1."""

    version, usual = "words-1", PLACES

    def weight(self, word: str) -> float:
        """Return the weight of a word."""
        if word.isdigit():
            return NUMBER_WEIGHT
        return FUNCTION_WEIGHT if word in FUNCTION_WORDS or not word[0].isalnum() else 1.0
