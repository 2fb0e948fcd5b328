"""Patterns for English denials, conclusions, hedges and delays, which are used to read answers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

_I: Final = re.IGNORECASE
SKIPPED: Final = frozenset(("the", "a", "an", "my", "this", "that", "its"))
"""Words that tell no options apart."""
SPOKEN: Final = {"yeah": "yes", "yep": "yes", "yup": "yes", "nope": "no", "nah": "no"}
"""Spoken words, each with the written one."""
BOUNDARY: Final = re.compile(
    r"[;:.!?\n]|\b(?:(?<!anything )(?<!everything )but|so|therefore|hence|thus|instead(?! of)|because|"
    r"since)\b|(?<!n't)(?<!n’t)(?<!not)(?<!never), ",
    _I,
)
"""What ends a clause."""
DENIES: Final = re.compile(
    r"\b(?:not|never|cannot|without|against|avoid\w*|neither|nor|than|over|unlike|refus\w+|instead of|except|"
    r"before|after(?! that)|until|unless|(?:any|every)thing but|under no|no (?:reason|need|point|use)|"
    r"whether|between|(?:last|previous|earlier) \w+ was|"
    r"(?:mistake|wrong|unwise|risky|dangerous|pointless|shame|early|late|soon|silly|foolish|impossible) to|"
    r"rul\w+ out|skip\w*|stop|forbids?|beware|fail\w* to|had to|only a fool|refrain\w*|(?<!no )doubt|worst|"
    r"opponent|dealer|enem\w+|others|that will|(?:i|we) considered|tried|"
    r"(?:would|should|could|might) have|no ?body|no one|some ?(?:body|one)|whoever|"
    r"(?:came|come|comes|coming|arrived) from|been to)\b|n['’]t\b|"
    r"\b(?:(?:if|when|whenever|what|how)(?: you| i| we| one| it| to)?|"
    r"(?<!check )(?<!view )(?<!see )(?:my|your|our)) *\Z",
    _I,
)
"""Words before an action that deny it, or say that it is someone else's or of another time."""
LEADS: Final = re.compile(
    r"(?:\W*\w+){0,2}\W*|.*[(=]\W*|.*\b(?:i|i['’](?:ll|d|m|ve)|we|we['’](?:ll|d|re)|let|let['’]?s|you|agent|robot|"
    r"player|answer|action|choice|choose|choosing|option|decision|way|best|better|should|must|try|bid|say|"
    r"suggest|recommend|plan|wise|good|safest|pick|take|select|counter|result|reply|prefer|is|be)\b.*",
    _I | re.DOTALL,
)
"""Text that may stand in a clause before the action on which it decides."""
LEADS_TO_ONE: Final = re.compile(
    r"(?:\W*\b(?:sure|okay|ok|alright|certainly|of course|hmm|so|then|and|now|just|simply|first|next|please|"
    r"probably|definitely|perhaps|well(?= *,))\b)*\W*|.*[(=]\W*|"
    r".*(?:\b(?:i|we|will|would|should|must|shall|let['’]?s|let (?:me|us|the \w+)|(?:they|both) are|choos\w*|"
    r"pick\w*|select\w*|suggest\w*|recommend\w*|play\w*|bid\w*|prefer\w*|decid\w*|say|opt|vote|try|need|"
    r"have|want|check|view|see|go|head|move|step|walk|turn|take|answer|action|choice|"
    r"(?<!is )(?<!are )(?:opting|voting|trying|going|heading|moving|stepping|walking|turning|taking)|"
    r"(?:answer|action|move|choice|option|decision|step|outcome|verdict|bet|counter|result|reply|thing|way|"
    r"best|better|safest|wise|good|here|plan)\b[^.;]*\b(?:is|be))\b|['’](?:ll|d)\b)"
    r"(?:\W+(?:the|a|my|to|now|just|then|first|rather|be|for|on|with|probably|definitely|simply|also|it|do|say|like|"
    r"take|going|heading|moving|turning)\b)*\W*",
    _I | re.DOTALL,
)
"""Text that may stand before an action of one word, which could also be an ordinary word."""
STRUCK: Final = re.compile(r"~~[^~\n]+~~|[❌✗✘][^\n✅✔]*")
"""Text that is crossed out, or marked as wrong."""
PAST: Final = re.compile(
    r"\b(?:told|asked|lost|if only|was|were|did|said|says|could|might|failed|heard|knew)\b", _I
)
"""Words of a clause about what was, or might be."""
EITHER: Final = re.compile(r"\b([a-z]+)/([a-z]+)\b")
"""Two words of an option, either of which may stand in an answer, such as "in/on"."""
JOINT: Final = re.compile(r"[\s\"'`*]*(?:or|nor|and|,)+[\s\"'`*]*", _I)
"""What stands between actions that are named together, such as "left or right"."""
DENIED: Final = re.compile(
    r"[\s\"'`*)\].]*(?:(?:is|are|was|seems|looks)\s+(?:\w+\s+)?(?:not|wrong|bad|worse)\b|"
    r"(?:is|wo|would|does|do|did|ca|could|should)n['’]t\b|"
    r"(?:does|do|did|can|would|will|could|should)\s+not\b|cannot\b|"
    r"(?:did|costs?|was|were|h[ae][ds] been|would have|is what|kills|does nothing)\b|there (?:is|are|was)\b|"
    r"takes? \w+ (?:turns|steps|moves)\b|"
    r",? which (?:i|we) (?:reject|refuse|avoid|rule)\b|"
    r"(?:is|are|seems|looks|feels|would be|will be)\b(?![^.;,]*\b(?:best|better|saf\w+|right|correct|good|"
    r"great|optimal|ideal|wis\w+|only|choice|answer|action|move|way|option|fine|preferable|sensible|promising|"
    r"likely|need\w*|necessary|required|next|closer|free|frozen|ok|okay|where|open|reasonable|logical|useful|"
    r"most|more|shortest|nearest|clear|pick|it)\b)|(?:will|would|should|could|may|might|can)\W*\Z|"
    r"(?:leads?|led|falls?|runs?|gets?|got|puts?|ends?|walks?|bumps?|(?:would )?means?)\b[^.,;]*\b"
    r"(?:holes?|stuck|nowhere|traps?|walls?|lava|lake|water|death|lost)\b|"
    r"would (?:lose|fail|end|waste|undo|hurt)\b|(?:fails|loses)\b|makes no sense)|"
    r"\) *[=≈:] *-?\.?\d|"
    r"[\"'`* ]*[:=(–—-]+ *(?:illegal|invalid|impossible|forbidden|fatal|not (?:allowed|possible))\b(?! to)|"
    r"[\"'`*, –—-]+(?:(?:sorry|oops|no)[ ,.]+(?:wait|i mean\w*)|i mean\w*|make that|scratch that)\b",
    _I,
)
"""What stands after an action that is denied."""
CONCLUDES: Final = re.compile(
    r"\b(?:so|therefore|thus|hence|i['’](?:ll|d)|i (?:will|would|choose|pick|take|select|go|should|must|"
    r"decide|say|prefer|mean)|let['’]s|we should|best|better|go with|decided?)\b",
    _I,
)
"""Words of a clause that states a decision."""
PAUSE: Final = re.compile(r", |\b(?:but|so|therefore|hence|thus)\b", _I)
"""What separates the parts of a clause."""
TURN: Final = re.compile(r"\b(?:but|so|therefore|hence|thus)\b", _I)
"""Words after which a clause may say the contrary."""
ASIDE: Final = re.compile(r"\W*(?:(?:even )?if|while|al?though|since|because|as|unlike|out of)\b", _I)
"""Beginning of a part of a clause that says something besides."""
GOES: Final = frozenset(("go", "move", "walk", "step", "head", "drive", "run", "fly", "turn"))
"""Verbs of actions that move somewhere: any of them may stand for another."""
MOVES: Final = re.compile(
    r"(?:mov|head|driv|turn|step|walk|go|proceed|choos|pick|select|say|tak)(?:e|s|es|ing)?"
)
"""Verbs before a way to go, in all of their forms."""
HEDGES: Final = re.compile(r"\b(?:either|whether|both|could|might|may|thought)\b", _I)
"""Words of a clause that weighs and does not decide."""
REASON: Final = re.compile(
    r"\b(?:before|because|since|as|to avoid|so that|so (?:i|we|you) (?:can|could)|to then|"
    r"(?:then|later) (?:i|we|you) (?:can|could))\b",
    _I,
)
"""Words after which a clause gives the reason of a decision."""
THEN: Final = re.compile(
    r"\b(?:then(?! (?:i|we|you) (?:can|could)\b)|afterwards?|after that|later|followed by|next|step [2-9])\b",
    _I,
)
"""Words before an action that comes later."""
SEQUENCE: Final = re.compile(rf"\W*(?:and\b\W*)?(?:{THEN.pattern})", _I)
"""Text between two actions that are named as a sequence."""
UNREAL: Final = re.compile(r"\W*(?:had (?:i|we|it|the|there)|if only)\b", _I)
"""Beginning of a hypothetical sentence, which says what would be done in another case."""
FIRST: Final = re.compile(r"\b(?:first|step (?:1|one)|start (?:by|with)|begin (?:by|with))\b", _I)
"""Words before an action that comes first."""
OTHER: Final = re.compile(
    r"(?m)^[^\w\n]*+(?:\d+[^\w\n]+)?(?:(?:\w{1,40}[ _]){0,2}(?:not|never|avoid\w*|previous|last|past|earlier|"
    r"prior|wrong|bad|worst|blocked|dangerous|unsafe|reject(?:ed)?|excluded?|discard(?:ed)?|ruled? out)|"
    r"(?:(?!best\b|chosen\b|final\b|safest\b|only\b)\w{1,40}[ _]){0,2}(?:legal|possible|available|admissible|"
    r"allowed|valid|candidates?|tried|history|risky|least \w+|losing|poor|weak|before|so far))"
    r"(?:[ _]\w{1,40}){0,3}[*_\"'` ]*(?::[^.!?\n]*|\Z)",
    _I,
)
"""A sentence, or its label, that names an action that is not the choice."""
LABELLED: Final = re.compile(
    r"\A\W*+(?:(?:the|my|your|best|next|chosen|selected|final|recommended|optimal|correct|new|this|direction|heading|"
    r"turn|way|step|pick|selection|suggestion|recommendation|motion|movement|walk|result|solution|reply|agent|"
    r"player|robot|to|of|go|is)\b[*_ ]*)+(?::|=|->|→|-(?!\w))",
    _I,
)
"""A label before an action, such as "Direction:"."""
NUMBER: Final = re.compile(r"-?\d")
"""How a number begins that was read as a value."""
ADVERBS: Final = frozenset(("1th", "first"))
"""Ordinals that also say when something is done."""
ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")
"""Ordinals in words, in order."""
AFTER_A: Final = re.compile(r" (?!(?:is|because|since|or|and|would|seems|as)\b)[a-z]")
"""What follows "A" where it is an article, or "I" where it is a pronoun."""
GOES_ON: Final = re.compile(
    r" (?:for|at|around(?= \w)|into|like|through|over)\b|"
    r"(?<=no) (?!(?:because|since|as|it|this|that|the|i|they|he|she|p\d|and|or|nor|is|would)\b)[a-z]|"
    r"(?<=look) (?:forward|in|inside|under|behind|on)\b|(?<=wait) while\b|(?<=do) (?:not|i|you|we)\b|"
    r"(?<=looking) (?:good|great|fine|bad)\b|"
    r"(?:(?<=wait)|(?<=right)|(?<=look))(?:\.\.|\s*[,–—…-]\s*(?:what|let|i|we|you|it|the|that|this|there|is|"
    r"no|so|actually|maybe|but|if)\b)|"
    r"(?<=stick) to\b|(?<=help|open) (?:you\b|me\b|us\b|with\b)|"
    r"(?<=drop) by\b|(?<=done) with\b| of (?:here|there|me|us|you)\b",
    _I,
)
"""Words that continue an option of one word to another phrase, such as "look for" or "no idea"."""
ADMITS: Final = re.compile(
    r"[\"'`*)\].]*\s*(?:[,.;!—–-]|:(?!\s*[-+]?\d)|\Z|\s(?:because|since|as|is correct|is right)\b)", _I
)
"""What may stand after an option of one word, so that it is the option and not another phrase."""
BECAUSE: Final = re.compile(r"\W*\b(?:because|since|as)\b", _I)
"""Beginning of a reason."""
PARTICLES: Final = frozenset(("up", "down", "on", "off", "in", "out", "over", "away", "back"))
"""Words that belong to a verb, as in "pick up", and name no action by themselves."""


def without_verb(words: list[str]) -> list[str]:
    """Return an action's words without its verb; empty if the rest would be ambiguous."""
    rest = words[1:]
    if not rest or not rest[0].isalpha() or DENIES.search(words[0]):
        return []
    is_particle = len(rest) == 1 and rest[0] in PARTICLES and words[0] not in GOES  # "up" of "pick up"
    return [] if is_particle else rest


def without_numbers(words: list[str]) -> list[str]:
    """Return an action's words without numbers ("take apple"); empty if there are no numbers."""
    # What follows the verb stays, also a number: "bid 5" is no longer an action as "bid".
    rest = [word for before, word in pairwise(words) if before == words[0] or not NUMBER.match(word)]
    kept = [*words[:1], *rest]
    return kept if 1 < len(kept) < len(words) else []


def joined(words: list[str]) -> list[str]:
    """Return words without the spaces between letters, such as "pickup"."""
    return re.sub(r"(?<=[a-z]) (?=[a-z])", "", " ".join(words)).split()


def forms(word: str) -> set[str]:
    """Return a word with its forms that end in -s and -ing."""
    forms_of_word = {word, word + "s", word + "es", word + "ing"}
    if word.endswith("e"):
        forms_of_word.add(word[:-1] + "ing")  # "take", "taking"
    if re.search(r"[^aeiou][aeiou][bdgklmnprt]$", word):
        forms_of_word.add(word + word[-1] + "ing")  # "put", "putting"
    return forms_of_word


def clause(text: str) -> str:
    """Return the end of a text after the last boundary of a clause."""
    return BOUNDARY.split(text)[-1]


def concludes(text: str) -> bool:
    """Return whether a sentence or a clause states a decision."""
    return bool(CONCLUDES.search(text)) and not HEDGES.search(text)
