"""Reads which of the options A to D an answer calls good, where the model thinks step by step.

answer     ->  sentences  ->  clauses without their reasons
a clause   ->  the options that it names, or the last ones if it says "this"; good, not good, or a guess
the answer ->  the last verdict on each option; "the best are A and D" says that the others are not
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LETTERS: Final = "ABCD"
_VERBS = "and|or|nor|is|are|isn|aren|has|have|gives?|results?|would|does|do|may|might|could|can|cannot|both"
_OPTION = re.compile(rf"\b(?:[B-D]|A(?!\s+(?!(?:{_VERBS})\b)\w))\b")
"""A letter; "A" before another word is the article."""
_ENTRY = re.compile(r"(?m)^\s*(?:[Oo]ption\s+)?([A-D])\s*[.):]\s+")
_EVERY = "all|every|each|any|anything|nothing|no|none|neither"
_SAID_ELSE = (
    (_ENTRY, r"\1, "),
    (re.compile(r"\bnot only\b", re.IGNORECASE), ""),
    (re.compile(r"\bbut also\b"), "and"),
    (re.compile(rf"\b({_EVERY})((?:\s+[\w-]+){{0,4}}?)\s+but\b", re.IGNORECASE), r"\1\2 except"),
)
"""What is written in another way before it is cut into clauses: "all but B" is "all except B"."""
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_CLAUSE = re.compile(
    r";|,?\s+(?:but|while|whereas|although|however)\b|,\s+so\b|,\s*(?=(?:and\s+)?not\b)"
    r"|(?:,\s+(?:and\s+)?|\s+and\s+)(?=(?:option\s+)?[A-D]\s+(?:is|does)\b)"
    r"|,\s+(?:and\s+)?(?=(?:options\s+)?[A-D]\s+and\s+[A-D]\s+(?:are|do)\b)"
)
_VERB = re.compile(r"\b(?:is|are|be|does|do|has|have|gives?|results?|maximizes?)\b|n't\b", re.IGNORECASE)
_SHORT = re.compile(r"[A-D]\s+(?:is|are|does|do)(?:\s+(?:too|not))?\W*$")
"""A verdict that leaves out what was said before: "B does"."""
_REASON = re.compile(
    r"\b(?:because|since|as(?! well)|by|(?<!other )than|if(?! action)|given|compared)\b.*", re.DOTALL
)
_GOOD = re.compile(r"pareto|optimal|fair|equal|same|greatest|best|highest|largest|maxim", re.IGNORECASE)
_NOT = re.compile(
    r"\b(?:not|none|nothing|neither|nor|never|cannot|hardly|fails?|lacks?|false|wrong|far from"
    r"|no(?=\s+(?:longer|one|(?:[\w-]+\s+){0,3}(?:options?|outcomes?))))\b|n't\b",
    re.IGNORECASE,
)
_NO_BETTER = re.compile(r"\bno\b.*\bbetter\b", re.IGNORECASE)
"""A reason, whether or not it says "because"."""
_BAD = re.compile(r"\b(?:dominated|inferior|unequal|unfair|sub-?optimal|inefficient)\b", re.IGNORECASE)
_GUESS = re.compile(r"\b(?:might|may|could|possibly|perhaps|probably|maybe|depends)\b", re.IGNORECASE)
_THIS = re.compile(
    r"\s*(?:so,?\s+|thus,?\s+|therefore,?\s+)?(?:this|it|that|these|they|both|neither|not)\b|.*\bcall it\b",
    re.I,
)
_ALL = re.compile(rf"\b(?:{_EVERY})\b[^,]*?\b(?:options?|outcomes?|them|these|is|are)\b", re.IGNORECASE)
_EXCEPT = re.compile(r"\b(?:except(?:\s+for)?|other\s+than|apart\s+from|besides)\b", re.IGNORECASE)
_ANSWER = re.compile(r".*\banswer is (?:all|none|neither)\b", re.IGNORECASE)
_LISTS = re.compile(r".*\b(?:answer|option|outcome|one|best)s?\b.*\b(?:is|are|be)\b", re.IGNORECASE)


def options_named(answer: str) -> set[int] | None:
    """Return the options that an answer calls good, by number; None if it has no verdict on any."""
    told: dict[int, bool] = {}
    about: set[int] = set()
    for sentence in _SENTENCE.split(_plainly(answer.strip())):
        for clause in _clauses(sentence):
            named = _letters(clause)
            about = named or about
            told |= _verdicts(clause, sentence, about)
    return {option for option, good in told.items() if good} if told else _bare(answer)


def _plainly(answer: str) -> str:
    for pattern, instead in _SAID_ELSE:
        answer = pattern.sub(instead, answer)
    return answer


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence; names without a verb join the next one, unless one says "not"."""
    held = ""
    for part in _CLAUSE.split(sentence):
        if held and any(text.lstrip().lower().startswith("not") for text in (part, held)):
            yield held
            held = ""
        held = f"{held}, {part}" if held else part
        if _VERB.search(held):
            yield held
            held = ""
    if held:
        yield held


def _verdicts(clause: str, sentence: str, about: set[int]) -> dict[int, bool]:
    """Return what a clause says of options: True for good ones; empty if it only describes or guesses."""
    said = _REASON.sub("", clause)
    every, named = set(range(len(LETTERS))), _letters(said)
    bad = _BAD.search(said)
    judged = _GOOD.search(sentence) or _SHORT.search(said) or bad or _ANSWER.match(said) or _lists(said)
    if _GUESS.search(said) or _NO_BETTER.search(said) or not judged:
        return {}
    good = bool(bad) is bool(_NOT.search(said))  # what is "not dominated" is good
    if _EXCEPT.search(said):
        return {option: (option in named) is not good for option in every}
    if _ALL.search(said) and not named:
        return dict.fromkeys(every, good)
    if re.search(r"\bonly\b", said) or (good and _lists(said)):
        return {option: (option in named) is good for option in every} if named else {}
    return dict.fromkeys(named or (about if _THIS.match(said) else ()), good)


def _lists(clause: str) -> bool:
    """Return whether the options stand behind the verb, as in "the best are A and D": no others are."""
    first = _OPTION.search(clause)
    return first is not None and _LISTS.match(clause[: first.start()]) is not None


def _letters(text: str) -> set[int]:
    return {LETTERS.index(letter) for letter in _OPTION.findall(text)}


def _bare(answer: str) -> set[int] | None:
    """Return the options of an answer that consists of nothing else."""
    bare = re.fullmatch(r"\W*(?:(?:options?|both|and|[A-D])\W*)+", answer, re.IGNORECASE)
    return _letters(answer) or None if bare else None
