"""Finds where a text names options: exactly, in another form, or in short form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product, takewhile
from typing import Final, NamedTuple

from hunch.lm.answers import english
from hunch.lm.answers.lines import BULLET

_WORD: Final = r"(?<![\w.])-\d+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)*"
_WORDS: Final = re.compile(_WORD)
_SIGNS: Final = re.compile(_WORD + r"|[-+*/=<>%^&|×÷←↑→↓]")
_LETTER: Final = re.compile(r"(?<![\w'’])[(\[*\"'`]*([A-Z])(?![\w'’])|[(\[]([a-z])[)\]]|\boption ([a-z])\b")


class Mention(NamedTuple):
    """A place in a text that names an option."""

    option: int
    start: int
    end: int


class Names:
    """Finds the names of options in texts, including common short forms.

    Args:
        options: The options.
    """

    def __init__(self, options: tuple[str, ...]) -> None:
        self.options = options
        self.letters = all(len(option) == 1 and option.isalpha() for option in options)
        self.pattern, self.skipped = _WORDS, english.SKIPPED
        if not self._distinct():
            self.pattern = _SIGNS  # they differ in signs only
        either = {word for option in options for pair in english.EITHER.findall(option) for word in pair}
        for small in (either, {"to"}):  # "in/on the table" is said as "on the table", "left" as "to the left"
            self.skipped |= small
            if not self._distinct():
                self.skipped -= small
        self.words = [self._words(option) for option in options]
        shared = len(list(takewhile(lambda same: len(set(same)) == 1, zip(*self.words, strict=False))))
        self.ends = [words[shared:] for words in self.words] if shared and len(options) > 1 else []
        self.tails = self._only(english.without_verb)
        self.kinds = self._only(english.without_numbers)
        self.shorter = self.tails, self.kinds, self._only(english.joined)
        by_length = sorted(range(len(options)), key=lambda i: -len(self.words[i]))
        self.starts: dict[str, list[int]] = {}
        for i in by_length:
            for form in english.forms(self.words[i][0]) if self.words[i] else ():
                self.starts.setdefault(form, []).append(i)

    def _only(self, form: Callable[[list[str]], list[str]]) -> list[list[str]]:
        """Return the options in another form; none where it is also another option's, or a part of one."""
        texts = [f" {' '.join(words)} " for words in self.words]
        forms = [form(words) for words in self.words]
        every = [f" {' '.join(words)} " for words in forms]
        return [
            words if every.count(text) == 1 and not any(text in o for o in texts[:i] + texts[i + 1 :]) else []
            for i, (words, text) in enumerate(zip(forms, every, strict=True))
        ]

    def exact(self, text: str) -> int | None:
        """Return the option that equals a text, but for case, articles, quotes, punctuation and numbering."""
        bare = text.strip()
        if bare in self.options:
            return self.options.index(bare)
        if " " not in bare:
            bare = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", bare)
        return self._equal(bare, self.words, self.ends)

    def brief(self, text: str) -> int | None:
        """Return the only option that equals a text apart from verb, numbers or spaces, such as "forward"."""
        return self._equal(english.BECAUSE.split(text.strip())[0], *self.shorter)

    def _equal(self, text: str, *forms: list[list[str]]) -> int | None:
        for plain in (text, BULLET.sub("", text), english.LABELLED.sub("", text, 1)):
            words = self._words(plain)
            for known, said in product(forms, (words, english.joined(words))):
                if words and known.count(said) == 1:
                    return known.index(said)
        return None

    def mentions(self, text: str) -> list[Mention]:
        """Return the places where a text names options, in order; longer options hide shorter ones."""
        if self.letters:
            return list(self._lettered(text))
        words = [(word, at, end) for word, at, end in self._placed(text)]
        found, i = list[Mention](), 0
        while i < len(words):
            near = ((o, self._last_word(o, words, i)) for o in self.starts.get(words[i][0], ()))
            option, last = next((one for one in near if one[1] >= 0), (0, -1))
            if last >= 0:
                end = words[last][2]
                if last > i or not english.GOES_ON.match(text, end):
                    found.append(Mention(option, words[i][1], end))
                i = last
            i += 1
        return found or list(self._moved(words))

    def _moved(self, words: Sequence[tuple[str, int, int]]) -> Iterator[Mention]:
        """Yield ways to move that are named by a verb of no option: "head left" for "go left"."""
        for (verb, at, _), (word, _, end) in pairwise([one for one in words if one[0] != "to"]):
            if english.MOVES.fullmatch(verb) and verb not in self.starts and self.tails.count([word]) == 1:
                option = self.tails.index([word])
                if self.words[option][0] in english.GOES:
                    yield Mention(option, at, end)

    def _last_word(self, option: int, words: Sequence[tuple[str, int, int]], i: int) -> int:
        """Return the place of the last word of an option that begins at i; -1 if it does not."""
        said = [word for word, _, _ in words[i + 1 :]]
        own = self.words[option]
        if said[: len(own) - 1] == own[1:]:
            return i + len(own) - 1
        kind = self.kinds[option]
        fits = kind and said[: len(kind) - 1] == kind[1:] and not "".join(said[len(kind) - 1 :][:1]).isdigit()
        return i + len(kind) - 1 if fits else -1

    def _lettered(self, text: str) -> Iterator[Mention]:
        """Yield letters that stand for options, and not for an article or a pronoun."""
        known = {option.upper(): i for i, option in enumerate(self.options)}
        for found in _LETTER.finditer(text):
            letter = (found[1] or found[2] or found[3]).upper()
            if letter in known and not (letter in "AI" and english.AFTER_A.match(text, found.end())):
                yield Mention(known[letter], found.start(), found.end())

    def _distinct(self) -> bool:
        return len({tuple(self._words(option)) for option in self.options}) == len(self.options)

    def _words(self, text: str) -> list[str]:
        return [word for word, _, _ in self._placed(text)]

    def _placed(self, text: str) -> list[tuple[str, int, int]]:
        """Return the words of a text with their places, in lower case and without articles."""
        found = [(word[0].lower(), *word.span()) for word in self.pattern.finditer(text)]
        every = [(english.SPOKEN.get(word, word), at, end) for word, at, end in found]
        kept = [one for one in every if one[0] not in self.skipped]
        return kept or every
