"""Finds the option on which an answer decides, after thoughts and code fences were removed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hunch.lm.answers import english
from hunch.lm.answers.lines import QUOTES, as_json, bounded, stressed
from hunch.lm.answers.naming import Mention, Names
from hunch.lm.answers.numerals import STARTS, plain, words_of

MOST_VALUES: Final = 100
"""Maximum values of an object or list without a key for the choice that are read."""
MARKS: Final = 10
"""Maximum number of emphasised passages that are compared as possible answers."""
LONGEST_LABEL = 80
"""Maximum characters of an answer that is only a letter or number."""
_I: Final = re.IGNORECASE
_KEYS: Final = ("answer", "action", "choice", "decision", "option", "verdict", "move", "command")
"""How the key of a choice ends, such as "next_action"."""
_AMOUNTS: Final = ("amount", "number", "quantity", "count", "steps")
"""How the key of a number ends that belongs to the choice in another key."""
_FINAL: Final = re.compile(
    r"\bfinal\s+(?:answer|decision|choice|action|verdict)\b(?:\s+is\b)?|"
    r"<(?:final_)?(?:answer|action|choice)>|\\boxed\b",
    _I,
)
_MARK: Final = re.compile(
    r"\b(?:action|answer|choice|decision|move|output|response|verdict|skill|next|command)"
    r"[*_`\"' ]*(?:is[*_`\"' ]*:|:|->|→)",
    _I,
)
_OBSERVED: Final = re.compile(r"\n\W*observation\W*:", _I)
_SENTENCE: Final = re.compile(
    rf"(?<=[.!?;])(?<!\d\.)(?<!\bno\.)\s+|(?<=\d\.)\s+(?!{STARTS})|(?<=\bno\.)\s+(?!\d)|\n+", _I
)
"""Between sentences; not within "no. 2", and not between the number of an item and a number, as in "1. 5"."""
_LEAD: Final = re.compile(r"^(?:[\"'`*_“‘«\s:=→>$\[({]|[-–](?![-–]{0,9}\s?[\d.]))+(?:\\text\s*{)?")
"""What stands before an answer; a dash before a number belongs to the number."""
_LABEL: Final = re.compile(
    r"\W*(?:(?:the|my|i|it|is|it['’]s|i['’](?:d|ll)|choose|pick|go with|answer|correct|would|say|take)\s+)*"
    r"(?:(?:option|letter|number|choice|action)\s*)?[#(\[{*]*([a-z]|\d{1,2})[)\]}.:,!*]*\W*",
    _I,
)
_ORDINAL_LABEL: Final = re.compile(rf"\b({'|'.join(english.ORDINALS)}) (?:option|choice|action|one)\b", _I)
_COUNTS: Final = re.compile(r"\b(?:option|letter|choice|action)\b|[#(\[]\s*\d", _I)
"""What says that a number is the place of an option."""


class Reader(Names):
    """Reads answers that choose among some options."""

    # ---- the answer as a whole ----------------------------------------------------------------------------

    def read(self, text: str) -> int | None:
        """Return the option that a text without thoughts decides on."""
        text = english.STRUCK.sub("", plain(text))
        option = self.exact(text)
        if option is not None or not text.strip():
            return option
        value = as_json(text)
        if isinstance(value, (dict, list)) and value:
            return self._in_json(value)
        text = bounded(text)
        text = english.OTHER.sub("", text)
        if _MARK.search(text):
            text = _OBSERVED.split(text)[0]
        marks = list(_FINAL.finditer(text))[-1:] or list(_MARK.finditer(text))[-MARKS:]
        if not marks:
            return self.short(text)
        marked = [_after(text, mark.end()) for mark in marks]
        last = self.short(marked[-1])
        is_long = len(marked[-1].split()) >= 8
        if last is None and is_long and not self.mentions(marked[-1]):
            return self.short(text)  # what follows the mark is about something else
        agree = len({self.short(part) for part in marked}) == 1
        return last if agree else self._last(text)

    def _last(self, text: str) -> int | None:
        """Return what the last "Answer:" says of several marks says; None if they list actions."""
        mark = list(_MARK.finditer(text))[-1]
        return self.short(_after(text, mark.end())) if "answer" in mark[0].lower() else None

    def _in_json(self, value: Any) -> int | None:
        """Return the option in a JSON value: under a key that means a choice, or the only one."""
        if value is None:
            return None
        if not isinstance(value, (dict, list)):
            return self.short(bounded(str(value)))
        if isinstance(value, list):
            values = value
        else:
            by_key = {str(key).lower().replace(" ", "_"): part for key, part in value.items()}
            keys = [key for key in by_key if not english.OTHER.match(key)]  # not "rejected_action"
            choice_keys = [key for end in _KEYS for key in keys if key.endswith(end)]
            if choice_keys:
                chosen = by_key[choice_keys[0]]
                choice = self._in_json(chosen)
                if choice is None and isinstance(chosen, bool):
                    choice = self._truth(chosen)
                if choice is not None and self._adds_number(choice, by_key, choice_keys[0]):
                    return None
                return choice
            values = [by_key[key] for key in keys]
        if len(values) > MOST_VALUES:
            return None
        options = {self._in_json(part) for part in values} - {None}
        return options.pop() if len(options) == 1 else None

    def _truth(self, value: bool) -> int | None:
        """Return yes for true and no for false, where these two are the options."""
        known = [option.lower() for option in self.options]
        return known.index("yes" if value else "no") if sorted(known) == ["no", "yes"] else None

    def _adds_number(self, choice: int, by_key: Mapping[str, Any], choice_key: str) -> bool:
        """Return whether an object says a number beside its choice, such as ``"amount": 3``."""
        numbers = self.numbers[choice]
        if not numbers:
            return False
        for key, value in by_key.items():
            if key == choice_key or not key.endswith(_AMOUNTS):
                continue
            if any(word.number and word.text not in numbers for word in words_of(str(value))):
                return True
        return False

    def short(self, text: str) -> int | None:
        """Return the option that a text without marks decides on."""
        for decide in (self.exact, self.label, self.brief, self._line, self._first, self._prose):
            option = decide(text)
            if option is not None:
                return option
        return None

    def label(self, text: str) -> int | None:
        """Return the option whose letter or number the text is, if the options are not labels themselves."""
        if len(text) > LONGEST_LABEL:
            return None
        ordinal = _ORDINAL_LABEL.search(text)
        if ordinal:
            place = english.ORDINALS.index(ordinal[1].lower())
            text = f"{text[: ordinal.start()]}option {place + 1}{text[ordinal.end() :]}"
        label = _LABEL.fullmatch(text)
        if not label:
            return None
        sign = label[1].upper()
        if self.letters:
            return next((i for i, option in enumerate(self.options) if option.upper() == sign), None)
        if any(len(option) < 2 or option.lstrip("-")[:1].isdigit() for option in self.options):
            return None
        place = int(sign) - 1 if sign.isdigit() else ord(sign) - ord("A")
        if not 0 <= place < len(self.options):
            return None
        counts = ordinal or not sign.isdigit() or self._counts_options(text, sign, place)
        return place if counts else None

    def _counts_options(self, text: str, number: str, place: int) -> bool:
        """Return whether a number is the place of an option, and not the number that options hold."""
        numbers = [word.text for word in words_of(text) if word.number]
        if numbers != [str(int(number))]:  # such as "-3" or "3%"
            return False
        if any(numbers[0] in amounts for amounts in self.amounts):
            return numbers[0] in self.amounts[place]
        return not self.numeric or bool(_COUNTS.search(text))

    def _line(self, text: str) -> int | None:
        """Return the only option that fills a line of a text."""
        options = {self.exact(line) for line in text.splitlines()} - {None}
        return options.pop() if len(options) == 1 else None

    # ---- prose --------------------------------------------------------------------------------------------

    def _first(self, text: str) -> int | None:
        """Return the option with which a text begins, if a pause or a reason follows and no second option."""
        named = self.mentions(text)
        if (
            not named
            or text[: named[0].start].strip(QUOTES + ">#-([")
            or not english.ADMITS.match(text, named[0].end)
            or english.DENIED.match(text, named[0].end)
        ):
            return None
        line_ends = "\n" in text[named[0].end :][:2]
        if line_ends or self._goes_on(text, named):
            return None
        return named[0].option

    @staticmethod
    def _goes_on(text: str, named: Sequence[Mention]) -> bool:
        """Return whether a list or a sequence of options goes on with another one."""
        other = next((mention for mention in named if mention.option != named[0].option), None)
        if other is None:
            return False
        gap = text[named[0].end : other.start]
        if not re.search(r"\w", gap + text[other.end :]):
            return True  # no words but the two options
        return bool(english.JOINT.fullmatch(gap.replace("\n", ",")) or english.SEQUENCE.match(gap))

    def _prose(self, text: str) -> int | None:
        """Return the only option that sentences name and do not deny, or that the last ones conclude on."""
        sentences = [(sentence, self._meant(sentence)) for sentence in _SENTENCE.split(text) if sentence]
        options = {option for _, meant in sentences for option in meant}
        if len(options) < 2:
            return options.pop() if options else None
        emphasised = self._stressed(text) & options
        if len(emphasised) == 1:
            return emphasised.pop()
        for sentence, meant in reversed(sentences):
            if meant and english.concludes(sentence):
                if english.SEQUENCE.match(sentence):
                    return None
                return meant.pop() if len(meant) == 1 else None
        return None

    def _meant(self, sentence: str) -> set[int]:
        """Return the options that a sentence means; of several, the one in the clause that concludes."""
        if sentence.rstrip(QUOTES).endswith("?"):
            return set()
        mentions = self._upheld(sentence)
        options = {mention.option for mention in mentions}
        if len(options) < 2:
            return options
        if english.THEN.search(sentence[mentions[-2].end : mentions[-1].start]):
            return options  # one after the other

        # The options of each clause, and its text.
        cuts = [0, *(pause.start() for pause in english.PAUSE.finditer(sentence)), len(sentence)]
        clauses: dict[int, set[int]] = {}  # by the number of the clause, from 1
        for mention in mentions:
            clauses.setdefault(bisect_right(cuts, mention.start), set()).add(mention.option)
        texts = {n: sentence[cuts[n - 1] : cuts[min(n, len(cuts) - 1)]] for n in clauses}

        # The last clause that concludes decides; else the only option outside of asides.
        for n in sorted(clauses, reverse=True):
            if len(clauses[n]) == 1 and english.concludes(texts[n]):
                return clauses[n]
        main: set[int] = set()
        for n, of_clause in clauses.items():
            if not english.ASIDE.match(texts[n]):
                main |= of_clause
        return main if len(main) == 1 else options

    def _upheld(self, sentence: str) -> list[Mention]:
        """Return the mentions that a sentence neither denies nor puts off until later or into a reason."""
        upheld: list[Mention] = []
        is_unreal = bool(english.UNREAL.match(sentence))
        denied = put_off = False
        end_before = 0  # of the mention before
        for mention in self.mentions(sentence):
            gap = sentence[end_before : mention.start]
            lead = english.clause(gap)
            turns = bool(english.TURN.search(gap))

            # Denied: by a word of the clause, or with the mention before ("neither left nor right").
            goes_on = denied and bool(english.JOINT.fullmatch(gap))
            denied = goes_on or bool(english.DENIES.search(lead))
            if not upheld:  # the first one is meant if somebody does it, or if nothing is said before it
                is_word = not self.letters and len(self.words[mention.option]) == 1
                leads = english.LEADS_TO_ONE if is_word else english.LEADS
                denied = denied or not leads.fullmatch(lead) or bool(english.PAST.search(lead))
            denied = denied or (is_unreal and not turns)

            # Put off: "because then I can go left", "first go right, then left".
            if not upheld:
                put_off = False
            else:
                is_later = english.THEN.search(gap) and english.FIRST.search(sentence[: mention.start])
                put_off = (put_off and not turns) or bool(english.REASON.search(gap)) or bool(is_later)

            if not (denied or put_off or english.DENIED.match(sentence, mention.end)):
                upheld.append(mention)
            end_before = mention.end
        return upheld

    def _stressed(self, text: str) -> set[int]:
        """Return the options that are set in bold, in code or in quotes."""
        options = {self.exact(passage) for passage in stressed(text)}
        return {option for option in options if option is not None}


def _after(text: str, place: int) -> str:
    """Return the rest of a line, or the next line with words if nothing is left of it."""
    for line in text[place:].split("</")[0].splitlines():
        said = _LEAD.sub("", line).rstrip(QUOTES + "$]})")
        if re.search(r"\w", said):
            return said
    return ""
