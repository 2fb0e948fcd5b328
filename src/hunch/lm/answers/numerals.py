"""Splits texts into words, with numbers as values in the many ways in which people and models write them.

======================== ======================================= ==========================
kind                     examples                                read as
======================== ======================================= ==========================
signs                    −1, –1, +1, minus one, negative 1       -1, or 1
decimals                 .5, 0,5, 5.0, ٫                         0.5, 5
groups of digits         1,000  1.000.000  1 000  1'000  1_000   1000, 1000000
other ways               1e3, 5k, 5 thousand, 1/2, ½, 50 %       1000, 5000, 0.5, 50%
other scripts and words  ١٢, १२, １２, twenty-one, one point five  12, 21, 1.5
ordinals                 1st, first                              1th, which is no 1
======================== ======================================= ==========================

Numbers are read as in English. A number that another convention reads as another value ("1,000" is 1 with a
decimal comma) carries this value too, so that a reader of options can refuse it. The parts of lists, ranges,
sums, dates and times ("1 or 2", "1-3", "10:30") are marked: none of them alone is what the text says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

_I: Final = re.IGNORECASE
NARROW: Final = "\u202f"
"""Stands for every space that does not break a line; people and programs group digits with it."""

# ---- the same number in other characters -------------------------------------------------------------

_MINUS: Final = "\u2010\u2011\u2012\u2013\u2212\u207b\ufe63\uff0d"
"""Hyphens, dashes and minus signs; before a digit they are a minus sign. The em dash is punctuation."""
_OTHER_SIGNS: Final = {
    **dict.fromkeys("\u00a0\u2007\u2009\u202f", NARROW),
    **dict.fromkeys("\u2019\u02bc\uff07", "'"),
    "\u066b": ".",
    "\uff0e": ".",
    "\u066c": ",",
    "\uff0c": ",",
    "\uff0b": "+",
    "\uff05": "%",
    "\u066a": "%",
    "\u2044": "/",
    "\uff0f": "/",
}
_VULGAR: Final = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_BESIDE_DIGITS: Final = re.compile(
    rf"[{_MINUS}](?=[\d.,{_VULGAR}])|(?<=\d)[{_MINUS}{''.join(_OTHER_SIGNS)}](?=\d)|[\uff0b](?=\d)|(?<=\d)[\uff05\u066a]"
)


def plain(text: str) -> str:
    """Return a text of the same length with ASCII characters in its numbers."""
    if text.isascii():
        return text
    digits = "".join(
        str(unicodedata.decimal(char)) if not char.isascii() and char.isdecimal() else char for char in text
    )
    return _BESIDE_DIGITS.sub(lambda sign: _OTHER_SIGNS.get(sign[0], "-"), digits)


# ---- words -------------------------------------------------------------------------------------------


class Word(NamedTuple):
    """A word or a number, and its place in a text.

    Attributes:
        text: The word in lower case, or the number in one form for all ways of writing: "-1", "0.5", "1/3".
        start: Where it begins.
        end: Where it ends.
        number: Whether it is a number.
        opens: Whether what a text says may begin here; not within "1-3" or "B2".
        closes: Whether what a text says may end here; not within "1-3" or "5M".
        others: What other conventions read.
        parts: The numbers of a list that it could be: "1" and "2" of "1,2".
        opposite: The number below 0 that it could be, as the dash of "- 1" may be a minus sign.
    """

    text: str
    start: int
    end: int
    number: bool = False
    opens: bool = True
    closes: bool = True
    others: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    opposite: str = ""


_EXPONENT: Final = r"(?:[eE][-+]?\d+(?![^\W_]))"
_FRACTION: Final = r"(?<![\d/]/)(?<![\d.,:/])(?<!\d-)\d+/\d+(?![\d/]|[.,:-]\d)"
_NUMBER: Final = (
    rf"(?<![^\W\d_])\d+(?:\.\d+)?{_EXPONENT}|(?<![\w.])\.\d+{_EXPONENT}?|(?:\d+ ?)?[{_VULGAR}]|"
    rf"\d+(?:[.,'_{NARROW}]\d+)*"
)
_LETTERS: Final = rf"(?:(?![{_VULGAR}])[^\W\d_])+(?:['’][^\W\d_]+)*"
_TOKEN: Final = re.compile(rf"(?P<number>{_FRACTION}|{_NUMBER})|{_LETTERS}")
_TOKEN_OR_SIGN: Final = re.compile(rf"(?P<number>{_NUMBER})|{_LETTERS}|[-+*/=<>%^&|×÷←↑→↓]")

GROUPED: Final = re.compile(
    rf"[1-9]\d{{0,2}}(?:(?:,\d{{3}})+|(?:'\d{{3}})+|(?:_\d{{3}})+|(?:{NARROW}\d{{3}})+)(?:\.\d+)?|"
    r"[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?"  # Indian: 12,34,567
)
_POINTS: Final = re.compile(
    rf"[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|(?:{NARROW}\d{{3}})+|(?:'\d{{3}})+),\d+|[1-9]\d{{0,2}}(?:\.\d{{3}}){{2,}}"
)
"""Groups with points, or another sign than the comma, and a decimal comma: 1.234,5."""
MAYBE_GROUPED: Final = re.compile(r"[1-9]\d{0,2}\.\d{3}")
"""A number with three decimals, which has no decimals but groups where people write a decimal comma."""


def canonical(value: Fraction) -> str:
    """Return a value in one form: a decimal number if that is exact, otherwise a fraction."""
    rest = value.denominator
    powers = {2: 0, 5: 0}
    for prime in powers:
        while rest % prime == 0:
            rest //= prime
            powers[prime] += 1
    if rest != 1:
        return str(value)
    if value.denominator == 1:
        return str(value.numerator)
    digits = max(powers.values())
    whole = str(abs(value.numerator) * 10**digits // value.denominator).zfill(digits + 1)
    return ("-" if value < 0 else "") + f"{whole[:-digits]}.{whole[-digits:]}"


class _Reading(NamedTuple):
    """What the digits and marks of one number mean: in English, elsewhere, and as a list."""

    value: Fraction
    others: tuple[Fraction, ...] = ()
    parts: tuple[Fraction, ...] = ()


def _read(raw: str, lists: bool) -> _Reading | None:
    """Return what a number without a sign means; None if it is several numbers, such as "1.2.3".

    Args:
        raw: Digits and marks.
        lists: Whether commas separate numbers, as in "(1,2)".
    """
    if len(raw) > LONGEST:
        return None
    if raw[-1] in _VULGAR:
        share = Fraction(unicodedata.numeric(raw[-1])).limit_denominator(10)
        return _Reading(int(raw[:-1] or 0) + share)
    if "/" in raw:
        above, below = (Fraction(part) for part in raw.split("/"))
        return _Reading(above / below, parts=(above, below)) if below else None
    if (lists and "," in raw) or re.fullmatch(r"00+", raw):
        return None  # "000" is the rest of another number
    if re.fullmatch(r"\d*\.?\d+(?:[eE][-+]?\d+)?", raw):
        exponent = raw.lower().partition("e")[2]
        if exponent and abs(int(exponent)) > LONGEST:
            return None
        value = Fraction(raw)
        thousands = (Fraction(raw.replace(".", "")),) if MAYBE_GROUPED.fullmatch(raw) else ()
        return _Reading(value, thousands)
    if GROUPED.fullmatch(raw):
        value = Fraction(re.sub(rf"[,'_{NARROW}]", "", raw))
        if raw.count(",") == 1 and "." not in raw:  # a decimal comma, or a list, if it is not English
            listed = () if ",0" in raw else _parts(raw)
            return _Reading(value, (Fraction(raw.replace(",", ".")),), listed)
        return _Reading(value)
    if _POINTS.fullmatch(raw):
        whole, _, decimals = raw.partition(",")
        return _Reading(Fraction(re.sub(rf"[.'{NARROW}]", "", whole) + "." + (decimals or "0")))
    if re.fullmatch(r"\d+,\d+", raw):
        return _Reading(Fraction(raw.replace(",", ".")), parts=_parts(raw))
    return None


def _parts(raw: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(part) for part in raw.split(","))


# ---- numbers with what stands around them ------------------------------------------------------------

LARGEST: Final = 10**12
LONGEST: Final = 40
"""Maximum characters of a number, and maximum exponent, that is read as a value."""
_SIGN: Final = re.compile(r"(?:\b(minus|negative|plus)[ \t-]{1,2}|([-+—]+)([ \t]?))\Z", _I)
_BOUND: Final = re.compile(r"([±≤≥≠<]|(?<=.)>)[ ]?\Z")
"""Before a number that is not meant itself; a > at the beginning of a line marks a quotation."""
_NAME: Final = re.compile(r"[^\W_]-?\Z")
"""Before a number that belongs to a name, such as "B2" or "GPT-4"."""
_NOUN: Final = re.compile(r"\b(?:player|agent|step|turn|round|version|page) \Z", _I)
"""Before a number in words that belongs to a name, such as "player two"."""
_ORDINAL: Final = re.compile(r"(?:st|nd|rd|th)(?![^\W_])", _I)
_PERCENT: Final = re.compile(rf"[ {NARROW}]?[%‰]|[ -]per ?cent\b", _I)
_SCALES: Final = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
    "lakh": 10**5,
    "million": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "trillion": 10**12,
}
_SCALE: Final = re.compile(rf"(k)(?![^\W_])|[ -]({'|'.join(_SCALES)})\b", _I)
_LARGE: Final = re.compile(
    r"(?:M|B|D|[Mm][nN]|[Bb][nN]|[Mm]il|[Mm]io)(?![^\W_])| and an? (?:half|third|quarter)\b|"
    r"[^\W\d_]{1,40}(?=\d)|['’′″\"]\d"
)
"""After a number: letters that make it a larger one, or a part of a name such as 2x4."""
_CLOCK: Final = re.compile(r"[ ]?(?:[ap]\.?m\b|o['’]clock\b)", _I)
_MONTHS: Final = (
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)\.?|"
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_BEFORE_DAY: Final = re.compile(rf"\b(?:{_MONTHS}) (?:the )?\Z")
_AFTER_DAY: Final = re.compile(rf"(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})(?![^\W_])")
_JOINT: Final = re.compile(
    r"[ \t]*(?:[-–—−~〜～至到:/.,;^*+×÷·…&|_']|\*\*|\.{2,3}|, ?(?:or|and))[ \t]*|[eE][-+]?|"
    r"[ \t]+(?:to|through|thru|until|or|and|point|plus|minus|times|by|over)[ \t]+|"
    rf"[ \t{NARROW}]+|[ \t]?[x×][ \t]?|"
    r"\{[,.]\}|\\[,;! ]|\}\{|\^\{|&#?\w+;",  # of LaTeX and HTML
    _I,
)
"""Between numbers that are said together: lists, ranges, sums, dates and times."""
_SPACE_BETWEEN: Final = re.compile(r"\d \d{3}")
_APART: Final = re.compile(r"[.:;|][ \t]+|[ \t]+[:;|][ \t]*")
"""Between numbers that are not said together, although a joint could stand there: "1. 2", "2: 10"."""


def words_of(
    text: str, *, signs: bool = False, lists: bool = False, known: Collection[str] | None = None
) -> list[Word]:
    """Return the words of a text in order, with numbers as values.

    Args:
        text: A text.
        signs: Whether signs such as + and = are words, too.
        lists: Whether a comma between digits separates numbers.
        known: The numbers that may be meant. Numbers in words, and groups of digits with plain spaces, are
            read as numbers only if they are one of these. Default: all.
    """
    text = plain(text)
    words = _tokens(text, signs, lists)
    words = _spelled(words, text, known)
    if not lists:
        words = _spaced(words, text, known)
    return _joint(words, text)


def _tokens(text: str, signs: bool, lists: bool) -> list[Word]:
    words: list[Word] = []
    for match in (_TOKEN_OR_SIGN if signs else _TOKEN).finditer(text):
        raw, start, end = match[0], *match.span()
        if start < (words[-1].end if words else 0):
            continue  # the unit of the number before
        if not match["number"]:
            words += _foreign(raw, start) if not raw.isascii() else [Word(raw.lower(), start, end)]
            continue
        reading = _read(raw, lists)
        if reading is None:  # several numbers, or one that is too long
            for digits in re.finditer(r"\d+", raw):
                name = digits[0] if digits[0].startswith("00") else digits[0].lstrip("0") or "0"
                words.append(Word(name, start + digits.start(), start + digits.end(), True))
            continue
        word = _number(text, start, end, reading, signs)
        while words and words[-1].start >= word.start:
            words.pop()  # the sign
        words.append(word)
    return words


def _foreign(raw: str, start: int) -> list[Word]:
    """Split a word that may hold signs for numbers, such as ③ or 三."""
    words: list[Word] = []
    for match in re.finditer(r"\d+|\D+", "".join("0" if char.isnumeric() else "x" for char in raw)):
        part, at = raw[match.start() : match.end()], start + match.start()
        if match[0][0] == "x":
            words.append(Word(part.lower(), at, at + len(part)))
        elif len(part) == 1:
            value = Fraction(unicodedata.numeric(part)).limit_denominator(1000)
            words.append(Word(canonical(value), at, at + 1, True))
        else:
            words.append(Word(part, at, at + len(part), True))
    return words


def _number(text: str, start: int, end: int, reading: _Reading, signs: bool) -> Word:
    """Return a number with its sign and what stands directly after it."""
    value, others, parts = reading
    opposite = ""
    opens = not _NAME.search(text, max(0, start - 2), start)
    closes = not _LARGE.match(text, end)
    scale = _SCALE.match(text, end)
    if scale:
        value *= 1000 if scale[1] else _SCALES[scale[2].lower()]
        end = scale.end()
    sign = _SIGN.search(text, max(0, start - 12), start)
    if sign:
        before = text[: sign.start()]
        binary = bool(re.search(r"[\d)\]]\s*\Z", before[-3:]))
        spelled, marks, gap = sign[1], sign[2] or "", sign[3] or ""
        negative = spelled.lower() != "plus" if spelled else "-" in marks or "—" in marks
        glued = before[-1:].isalnum()
        if spelled or (len(marks) == 1 and marks != "—" and not gap and not glued):
            if not binary:
                start = sign.start()
                if negative:
                    value, others = -value, tuple(-other for other in others)
                parts = ()
        elif negative and not (signs and binary):
            opposite = canonical(-value)  # "- 1", "--1" and "shelf-1" may be less than 0, or not
    name = canonical(value)
    if not signs and (bound := _BOUND.search(text, max(0, start - 3), start)) is not None:
        name = bound[1] + name
    if (ordinal := _ORDINAL.match(text, end)) is not None:
        name, end = name + "th", ordinal.end()
    elif not signs and (percent := _PERCENT.match(text, end)) is not None:
        name, end = name + "%", percent.end()
    day = _BEFORE_DAY.search(text[max(0, start - 16) : start]) or _AFTER_DAY.match(text, end)
    if day or _CLOCK.match(text, end):
        opens = closes = False
    return Word(
        name,
        start,
        end,
        number=True,
        opens=opens,
        closes=closes,
        others=tuple(canonical(other) for other in others),
        parts=tuple(canonical(part) for part in parts),
        opposite=opposite,
    )


# ---- numbers in words --------------------------------------------------------------------------------

_UNITS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS: Final = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_CARDINALS: Final = {
    **{word: n for n, word in enumerate(_UNITS + _TEENS)},
    **{word: 10 * n for n, word in enumerate(_TENS, 2)},
    **{word: _SCALES[word] for word in ("dozen", "hundred", "thousand", "million", "billion")},
}
_ORDINALS: Final = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "eleventh": 11,
    "twelfth": 12,
    "twentieth": 20,
}
_DASH: Final = re.compile(rf"([^\W_]?)[-—{_MINUS}]([ \t]?)\Z")
_NEGATIVE: Final = {"minus": -1, "negative": -1, "plus": 1}
_SPELLED_WORDS: Final = frozenset(("half", *_CARDINALS, *_ORDINALS))
_PRONOUN_AFTER: Final = frozenset(
    (
        *("the", "this", "that", "no", "any", "every", "each", "which", "some", "another", "other", "only"),
        *("best", "better", "good", "right", "correct", "wrong", "same", "next", "last", "latter", "former"),
        *("first", "second", "third"),
    )
)
"""Words after which "one" is a pronoun."""

STARTS: Final = (
    rf"[-+($]*(?:\.?[\d{_VULGAR}]|(?:{'|'.join([*_NEGATIVE, *_CARDINALS]).replace('|one|', '|')})\b)"
)
"""How a number may begin."""


def _spelled(words: list[Word], text: str, known: Collection[str] | None) -> list[Word]:
    """Join the words of numbers, such as "minus twenty-one", into numbers."""
    if _SPELLED_WORDS.isdisjoint([word.text for word in words]):
        return words
    read: list[Word] = []
    i = 0
    while i < len(words):
        number = _spelled_at(words, i, text)
        if number is None:
            read.append(words[i])
            i += 1
            continue
        word, after = number
        if known is None or word.text in known or word.opposite in known:
            read.append(word)
        else:
            read += [one._replace(number=True) for one in words[i:after]]
        i = after
    return read


def _whole_number(words: list[Word], first: int, text: str) -> tuple[Fraction, int] | None:
    """Return the sum of number words, such as "two thousand and five", and the place of the next word."""
    i = first
    # Of "two thousand five": 2000, 5, the value of the word before, and that of the last large scale.
    total = 0
    current = 0
    last = 0
    scale = LARGEST
    while i < len(words) and (i == first or _close(words, i, text)):
        word = words[i].text
        # "and" joins hundreds with what is below: "two hundred and five".
        is_joint = word == "and" and i > first and last >= 100 and i + 1 < len(words)
        if is_joint and 0 < _CARDINALS.get(words[i + 1].text, 0) < 100 and _close(words, i + 1, text):
            i += 1
            word = words[i].text
        n = _CARDINALS.get(word)
        if n is None:
            break
        if i == first:
            current = n
        elif n in (12, 100) and word in _SCALES and 0 < current < 100 and last < 100:
            current *= n  # "five hundred", "two dozen"
        elif n >= 1000 and current and n < scale:
            total += current * n
            current = 0
            scale = n
        elif (0 < n < 10 and last >= 20) or (10 <= n < 100 and last >= 100):
            current += n  # "twenty-one", "two hundred twelve"
        else:
            break  # another number begins
        last = n
        i += 1
    return None if i == first else (Fraction(total + current), i)


def _spelled_at(words: list[Word], i: int, text: str) -> tuple[Word, int] | None:
    """Return the number in words that begins at a word, and the place of the next word."""
    start, sign = i, 1
    if words[i].text in _NEGATIVE and i + 1 < len(words) and words[i + 1].text in _CARDINALS:
        if i and words[i - 1].number and _close(words, i, text):
            return None  # "five minus one"; "1. minus one" is a place in a list, and a number
        sign = _NEGATIVE[words[i].text]
        i += 1
    if words[i].text in _ORDINALS and i == start:
        place = _ORDINALS[words[i].text]
        return words[i]._replace(text=f"{place}th", number=True), i + 1
    if words[i].text == "half" and i == start:
        return words[i]._replace(text="0.5", number=True, opens=False), i + 1
    first = i
    whole = _whole_number(words, first, text)
    if whole is None:
        return None
    value, i = whole
    i, value = _decimals(words, i, text, value)
    single = i - first == 1 and first == start
    if single and words[first].text == "one" and _pronoun(words, first):
        return None
    named = _NOUN.search(text, max(0, words[start].start - 10), words[start].start)
    opens = not named and not (single and words[first].text == "one")  # "one could ..."
    name = canonical(sign * value)
    percent = _PERCENT.match(text, words[i - 1].end)
    end = percent.end() if percent else words[i - 1].end
    if percent:
        name += "%"
        while i < len(words) and words[i].start < end:
            i += 1
    day = _AFTER_DAY.match(text, end) or _CLOCK.match(text, end)
    opposite = ""
    dash = _DASH.search(text, max(0, words[start].start - 3), words[start].start)
    if dash and start == first:  # "-one" is less than 0, and "- one" may be
        negative = canonical(-value)
        name, opposite = (name, negative) if dash[1] or dash[2] else (negative, name)
    return Word(
        name,
        words[start].start,
        end,
        number=True,
        opens=opens and not day,
        closes=not day,
        opposite=opposite,
    ), i


def _decimals(words: list[Word], i: int, text: str, value: Fraction) -> tuple[int, Fraction]:
    """Add what follows a number in words: "point five", or "and a half"."""
    following = [word.text for word in words[i : i + 3]]
    if following == ["and", "a", "half"]:
        return i + 3, value + Fraction(1, 2)
    if following[:1] != ["point"] or len(following) < 2 or following[1] not in _UNITS:
        return i, value
    i, place = i + 1, Fraction(1, 10)
    while i < len(words) and words[i].text in _UNITS and _close(words, i, text):
        value += place * _CARDINALS[words[i].text]
        place /= 10
        i += 1
    return i, value


def _close(words: list[Word], i: int, text: str) -> bool:
    """Return whether only a space or a hyphen separates a word from the one before."""
    return re.fullmatch(r"[ \t-]", text[words[i - 1].end : words[i].start]) is not None


def _pronoun(words: list[Word], i: int) -> bool:
    before = words[i - 1].text if i else ""
    after = words[i + 1].text if i + 1 < len(words) else ""
    return before in _PRONOUN_AFTER or after == "of"


# ---- numbers together --------------------------------------------------------------------------------


def _spaced(words: list[Word], text: str, known: Collection[str] | None) -> list[Word]:
    """Join groups of digits with plain spaces, such as "10 000", if the whole may be meant."""
    if known is None or not _SPACE_BETWEEN.search(text):
        return words
    read: list[Word] = []
    i = 0
    while i < len(words):
        last = i
        while last + 1 < len(words) and text[words[last].end : words[last + 1].start] == " ":
            following = words[last + 1]
            if not re.fullmatch(r"\d{3}", text[following.start : following.end]):
                break
            last += 1
        joined = re.sub(" ", "", text[words[i].start : words[last].end])
        if last > i and words[i].number and re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:\d{3})+", joined):
            name = canonical(Fraction(joined))
            if name in known:
                read.append(words[i]._replace(text=name, end=words[last].end))
                i = last + 1
                continue
        read.append(words[i])
        i += 1
    return read


def is_ordinal(word: Word) -> bool:
    """Return whether a number says a place, such as "1st" or "first"."""
    return word.text in _ORDINALS or (word.number and word.text.endswith("th"))


def _joint(words: list[Word], text: str) -> list[Word]:
    """Mark the numbers that are said together with others."""
    read = list(words)
    numbers = [i for i, word in enumerate(words) if word.number]
    for i, j in pairwise(numbers):
        if is_ordinal(words[i]) != is_ordinal(words[j]):
            continue  # "open fridge 1 first"
        gap = text[words[i].end : words[j].start]
        if re.fullmatch(r"[.):][ \t]+", gap):  # "2: 10", "2. 10"
            read[i] = read[i]._replace(opens=False)
        together = not gap or (len(gap) < 12 and _JOINT.fullmatch(gap) and not _APART.fullmatch(gap))
        if together:
            read[i] = read[i]._replace(closes=False)
            read[j] = read[j]._replace(opens=False)
    return read
