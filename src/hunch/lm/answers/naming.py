"""Finds where a text names options: exactly, in another form, or in short form.

Texts are compared word by word, and numbers by value (:mod:`hunch.lm.answers.numerals`). A number that could
also mean the number of another option names none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Final, NamedTuple

from hunch.lm.answers import english
from hunch.lm.answers.lines import BULLET
from hunch.lm.answers.numerals import GROUPED, MAYBE_GROUPED, Word, is_ordinal, plain, words_of

_LETTER: Final = re.compile(r"(?<![\w'’])[(\[*\"'`]*([A-Z])(?![\w'’])|[(\[]([a-z])[)\]]|\boption ([a-z])\b")
_SUM: Final = re.compile(r"\d\)? ?[+*×÷=] ?\(?-?\d|\d\)? [-/] \(?\d")
"""An option with signs between numbers, such as "13 - 4 = 9"."""
_LIST: Final = re.compile(r"\d+(?:\s*,\s*\d+)+")
"""A list of numbers, such as "1, 2, 3"."""
_ROMAN: Final = re.compile(r"\W{0,2}(?:I{2,3}|IV|VI{0,3}|IX|XI{0,3})\b")
"""A Roman number after a name, as in "apple II"."""
_CLAUSE: Final = re.compile(r"(?<!\b[Nn]o)(?<!\b[Nn]r)[.!?;:]\s|\n")
"""What ends a clause, but not the dot of "No. 2"."""
SPELLED_OUT: Final = 1_000
"""Characters by which a text may be longer than four times the longest option, and still equal an option."""


class Mention(NamedTuple):
    """A place in a text that names an option."""

    option: int
    start: int
    end: int


class _Pattern(NamedTuple):
    """Words after the first one that name an option; the option with the most words comes first."""

    rank: tuple[int, int]
    option: int
    brief: bool


class _Said:
    """The words of a text, and the numbers in its clauses.

    Attributes:
        text: The text.
        words: Its words, in order.
        texts: The same as texts in the form in which they are compared.
    """

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.texts = [word.text for word in words]
        self._starts = [word.start for word in words]
        cuts = list(_CLAUSE.finditer(text))
        self._cut_starts = [cut.start() for cut in cuts]
        self._cut_ends = [cut.end() for cut in cuts]
        self._numbers: dict[tuple[int, int], frozenset[str]] = {}

    def numbers_around(self, start: int, end: int) -> frozenset[str]:
        """Return the numbers, but for ordinals that say when, in the clause of a passage of the text."""
        cuts_before = bisect_right(self._cut_ends, start)
        cut_after = bisect_left(self._cut_starts, end)
        clause = cuts_before, cut_after
        if clause not in self._numbers:
            begin = self._cut_ends[cuts_before - 1] if cuts_before else 0
            finish = self._cut_starts[cut_after] if cut_after < len(self._cut_starts) else len(self.text)
            inside = self.words[bisect_left(self._starts, begin) : bisect_left(self._starts, finish)]
            numbers = {word.text for word in inside if word.number}
            self._numbers[clause] = frozenset(numbers - english.ADVERBS)
        return self._numbers[clause]


class Names:
    """Finds the names of options in texts, including common short forms.

    Args:
        options: The options.
    """

    def __init__(self, options: tuple[str, ...]) -> None:
        self.options = options
        self.places = {option: i for i, option in reversed(list(enumerate(options)))}
        self.longest = SPELLED_OUT + 4 * max(map(len, options))
        self.letters = all(len(option) == 1 and option.isalpha() for option in options)
        self._choose_reading([plain(option) for option in options])
        self.words = [self._texts(words) for words in self._split_options]
        self.numbers = [[word.text for word in words if word.number] for words in self._split_options]
        self.amounts = [_amounts(words) for words in self._split_options]
        self.known = frozenset(number for numbers in self.numbers for number in numbers)
        self.numeric = self._differ_in_numbers()
        self.written = self._written()
        self.decimals = any(re.search(r"\.\d", number) for number in self.written)
        # What all options begin with may be left out: "5" for "bid 5".
        shared = 0
        for words_at_place in zip(*self.words, strict=False):
            if len(set(words_at_place)) > 1:
                break
            shared += 1
        self.ends = [words[shared:] for words in self.words] if shared and len(options) > 1 else []
        self.tails = self._only(english.without_verb)
        self.kinds = self._only(english.without_numbers)
        self.by_words = _index(self.words), _index(self.ends)
        self.by_tail = _index(self.tails)
        self.by_short_form = self.by_tail, _index(self.kinds), _index(self._only(english.joined))
        self.starts = self._patterns()

    def _choose_reading(self, options: Sequence[str]) -> None:
        """Find a way to split texts into words in which the options differ."""
        self.skipped = english.SKIPPED
        self.signs = any(_SUM.search(option) for option in options)
        lists = [numbers[0] for option in options for numbers in _LIST.finditer(option)]
        self.lists = any(not GROUPED.fullmatch(numbers) for numbers in lists)
        self.literal = False
        self._split_options = [self._split_option(option) for option in options]
        if not self._distinct():
            self.signs = True
            self._split_options = [self._split_option(option) for option in options]
        if not self._distinct():
            self.literal = True  # such as "room 07" and "room 7"
            self._split_options = [self._split_option(option) for option in options]
        # "in/on the table" is said as "on the table", and "left" as "to the left".
        either = {word for option in self.options for pair in english.EITHER.findall(option) for word in pair}
        for small_words in (either, {"to"}):
            self.skipped |= small_words
            if not self._distinct():
                self.skipped -= small_words

    def _patterns(self) -> dict[str, dict[int, dict[tuple[str, ...], _Pattern]]]:
        """Return how options go on after their first word, by this word and by the number of words."""
        starts: dict[str, dict[int, dict[tuple[str, ...], _Pattern]]] = {}
        for option, words in enumerate(self.words):
            rank = -len(words), option
            for form in english.forms(words[0]) if words else ():
                by_length = starts.setdefault(form, {})
                for way, brief in ((words, False), (self.kinds[option], True)):
                    rest = tuple(way[1:])
                    pattern = _Pattern(rank, option, brief)
                    if way:
                        same = by_length.setdefault(len(rest), {})
                        same[rest] = min(same.get(rest, pattern), pattern)
        return starts

    def _only(self, form: Callable[[list[str]], list[str]]) -> list[list[str]]:
        """Return the options in another form; none where it is also another option's, or a part of one."""
        options = [f" {' '.join(words)} " for words in self.words]
        forms = [form(words) for words in self.words]
        form_texts = [f" {' '.join(words)} " for words in forms]
        all_options = "\n".join(options)
        counts = Counter(form_texts)
        unique: list[list[str]] = []
        for words, text, option in zip(forms, form_texts, options, strict=True):
            in_another = all_options.count(text) > option.count(text)
            unique.append(words if words and counts[text] == 1 and not in_another else [])
        return unique

    # ---- equal texts --------------------------------------------------------------------------------------

    def exact(self, text: str) -> int | None:
        """Return the option that equals a text, but for case, articles, quotes, punctuation and numbering."""
        bare = text.strip()
        if bare in self.places:
            return self.places[bare]
        if len(bare) > self.longest:
            return None
        if " " not in bare:
            bare = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", bare)
        return self._equal(bare, self.by_words)

    def brief(self, text: str) -> int | None:
        """Return the only option that equals a text apart from verb, numbers or spaces, such as "forward"."""
        return self._equal(english.BECAUSE.split(text.strip())[0], self.by_short_form)

    def _equal(self, text: str, forms: Sequence[Mapping[tuple[str, ...], int]]) -> int | None:
        words = self._split(text)
        for prefix in (None, BULLET.match(text), english.LABELLED.match(text)):
            # The words are those of the whole text, where "- 1" may be less than 0.
            first = prefix.end() if prefix else 0
            texts = [word.text for word in self._without_articles(w for w in words if w.end > first)]
            said = [tuple(texts), tuple(english.joined(texts))]
            for option_of, spelling in product(forms, said):
                if spelling in option_of:
                    return option_of[spelling]
        return None

    # ---- names in a text ----------------------------------------------------------------------------------

    def mentions(self, text: str) -> list[Mention]:
        """Return the places where a text names options, in order; longer options hide shorter ones."""
        if self.letters:
            return list(self._lettered(text))
        said = _Said(text, self._without_articles(self._split(text)))
        words = said.words
        mentions: list[Mention] = []
        i = 0
        while i < len(words):
            pattern, last = self._named_at(said, i) if words[i].opens else (None, i)
            if pattern is not None:
                end = words[last].end
                if last > i or not english.GOES_ON.match(text, end):
                    mentions.append(Mention(pattern.option, words[i].start, end))
                i = last
            i += 1
        return mentions or list(self._moved(words))

    def _named_at(self, said: _Said, i: int) -> tuple[_Pattern | None, int]:
        """Return the longest option that is named from a word on, and the place of its last word."""
        best, last = None, i
        for length, patterns in self.starts.get(said.texts[i], {}).items():
            pattern = patterns.get(tuple(said.texts[i + 1 : i + 1 + length]))
            if pattern is None or (best is not None and best < pattern):
                continue
            if not said.words[i + length].closes:
                continue  # in the middle of "1-3"
            if not (pattern.brief and self._says_another(pattern, said, i, i + length)):
                best, last = pattern, i + length
        return best, last

    def _says_another(self, pattern: _Pattern, said: _Said, first: int, last: int) -> bool:
        """Return whether a short form without numbers stands beside a number, as in "take apple no. 2"."""
        start, end = said.words[first].start, said.words[last].end
        number_follows = last + 1 < len(said.words) and said.words[last + 1].number
        if number_follows or _ROMAN.match(said.text, end):
            return True
        return not said.numbers_around(start, end).issubset(self.numbers[pattern.option])

    def _moved(self, words: Sequence[Word]) -> Iterator[Mention]:
        """Yield ways to move that are named by a verb of no option: "head left" for "go left"."""
        for verb, way in pairwise([word for word in words if word.text != "to"]):
            moves = english.MOVES.fullmatch(verb.text) and verb.text not in self.starts
            if moves and (way.text,) in self.by_tail:
                option = self.by_tail[way.text,]
                if self.words[option][0] in english.GOES:
                    yield Mention(option, verb.start, way.end)

    def _lettered(self, text: str) -> Iterator[Mention]:
        """Yield letters that stand for options, and not for an article or a pronoun."""
        known = {option.upper(): i for i, option in enumerate(self.options)}
        for match in _LETTER.finditer(text):
            letter = (match[1] or match[2] or match[3]).upper()
            if letter not in known:
                continue
            if letter in "AI" and english.AFTER_A.match(text, match.end()):
                continue
            yield Mention(known[letter], match.start(), match.end())

    # ---- words --------------------------------------------------------------------------------------------

    def _distinct(self) -> bool:
        return len({tuple(self._texts(words)) for words in self._split_options}) == len(self.options)

    def _texts(self, words: Sequence[Word]) -> list[str]:
        return [word.text for word in self._without_articles(words)]

    def _differ_in_numbers(self) -> bool:
        """Return whether some options differ in their numbers only, such as "bid 1" and "bid 5"."""
        numbered = [
            tuple(word.text for word in words if not word.number)
            for words, amounts in zip(self._split_options, self.amounts, strict=True)
            if amounts
        ]
        return len(set(numbered)) < len(numbered)

    def _written(self) -> frozenset[str]:
        """Return the numbers of the options as they are written there, such as "1,000"."""
        return frozenset(
            plain(option)[word.start : word.end]
            for option, words in zip(self.options, self._split_options, strict=True)
            for word in words
            if word.number
        )

    def _split_option(self, option: str) -> list[Word]:
        words = words_of(option, signs=self.signs, lists=self.lists)
        return self._as_written(words, option) if self.literal else words

    def _split(self, text: str) -> list[Word]:
        """Return the words of an answer; a number that may also be another option's is no option's word."""
        words = words_of(text, signs=self.signs, lists=self.lists, known=self.known)
        if self.literal:
            return self._as_written(words, text)
        return [self._unless_ambiguous(word, text) for word in words]

    def _unless_ambiguous(self, word: Word, text: str) -> Word:
        """Return a number, or a word that names no option if the number may be another one."""
        if word.text not in self.known:
            return word
        written = plain(text[word.start : word.end])
        unclear = word.opposite in self.known
        if written not in self.written:  # otherwise this is how an option writes it
            unclear |= not self.known.isdisjoint(word.others)
            unclear |= bool(word.parts) and self.known.issuperset(word.parts)
            # "10.000" beside whole numbers only
            unclear |= not self.decimals and bool(MAYBE_GROUPED.fullmatch(written.lstrip("-+")))
        return word._replace(text=f"?{written}") if unclear else word

    @staticmethod
    def _as_written(words: Sequence[Word], text: str) -> list[Word]:
        text = plain(text)
        return [
            word._replace(text=text[word.start : word.end].lower()) if word.number else word for word in words
        ]

    def _without_articles(self, words: Iterable[Word]) -> list[Word]:
        """Return words in the form in which they are compared, without articles if anything is left."""
        every = [
            word._replace(text=english.SPOKEN[word.text]) if word.text in english.SPOKEN else word
            for word in words
        ]
        return [word for word in every if word.text not in self.skipped] or every


def _index(forms: Sequence[Sequence[str]]) -> dict[tuple[str, ...], int]:
    """Return the options by their words; without words that several options share."""
    counts = Counter(tuple(words) for words in forms if words)
    return {tuple(words): i for i, words in enumerate(forms) if counts[tuple(words)] == 1}


def _amounts(words: Sequence[Word]) -> list[str]:
    """Return the numbers among words that are neither ordinals nor parts of names such as "e2e4"."""
    return [word.text for word in words if word.number and word.opens and not is_ordinal(word)]
