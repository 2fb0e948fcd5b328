"""Probes a model for ``hunch lm SPEC``: whether it answers, what it can do, how fast, and what to run next.

On a slow server this must not take long: answers are short, requests few, and after :data:`SECONDS` no new
one begins. The first request of a kind is its measurement if it took long; a quick model is asked a few times
more. A request that takes too long is not sent again.
"""

from __future__ import annotations

import inspect
import shlex
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Final, get_args

from hunch.core import EvidenceLevel, HunchError, UsageError
from hunch.lm.answers.lines import spoken
from hunch.lm.base import LanguageModel, Verb
from hunch.lm.decision import DecisionQuestion
from hunch.lm.registry import backend_of, build, split
from hunch.lm.speech import Sampling
from hunch.lm.ways import DESCRIPTIONS, VERBS, best_way, ways_of

PROMPT: Final = (
    "You are in a kitchen. You see a fridge and a mug.\nYour task is to: take the mug.\n{}\nAction:"
)
OPTIONS: Final = ("go to the fridge", "open the fridge", "take the mug", "look")
LABELS: Final = ("A", "B", "C", "D")
REQUESTS: Final[dict[Verb, int]] = {"generate": 2, "score": 8, "label": 8, "embed": 32, "decide": 8}
"""Most requests of a kind after the first one."""
QUICK: Final = 0.5
"""Seconds of a first request above which it is the measurement, and of the measurement otherwise."""
SECONDS: Final = 10.0
"""Seconds after which no new request begins."""
TIMEOUT: Final = 20.0
"""Seconds that a request to a server may take, unless the spec states another time."""
ANSWER: Final = 32
"""Maximum tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Description:
    """A model's properties, and measurements of its answers.

    Attributes:
        answers: True if the model could be loaded and answered; otherwise ``problem`` has the reason.
        problem: Why the model or one of its verbs did not answer.
        parameters: Number of weights; 0 for a rule.
        dim: Length of an embedding; 0 if the model does not embed.
        context: Maximum number of tokens that the model reads; None if unknown.
        speed: Requests per second by kind, one at a time and uncached: ``generate`` up to 32 tokens,
            ``score``, ``label`` and ``decide`` with four options, ``embed`` a short text. What there was no
            time for is left out.
        tokens_per_second: Tokens per second that ``generate`` writes; 0 if the model does not count them.
        logprobs: True if the model returns probabilities of texts, by ``score`` or ``label``.
        prompting: How texts and messages are presented to the model.
        answer: The quoted answer to a small question, or a note that it was empty.
        doubts: What moves the answers of a decision model though it should not, in words.
        best_way: The best way of asking it to choose from options, in words.
        next: A command to run next.
    """

    name: str
    answers: bool
    problem: str = ""
    evidence: EvidenceLevel | None = None
    revision: str = ""
    verbs: tuple[Verb, ...] = ()
    parameters: int = 0
    dim: int = 0
    context: int | None = None
    speed: dict[Verb, float] = field(default_factory=dict)
    tokens_per_second: float = 0.0
    logprobs: bool = False
    prompting: str = ""
    answer: str = ""
    doubts: str = ""
    best_way: str = ""
    next: str = ""


def describe(spec: str, **options: Any) -> Description:
    """Load a model, try each kind of request without a cache, and describe the model.

    Raises:
        UsageError: for an unknown spec or option. Other failures are described in the result.
    """
    try:
        _, model = build(spec, _impatient(spec) | options)
    except UsageError:
        raise
    except HunchError as error:
        return Description(spec, answers=False, problem=str(error))
    probe = Probe(model, time.monotonic() + SECONDS)
    verbs = tuple(verb for verb in get_args(Verb) if verb in model.verbs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*cut an answer")  # short answers are what is asked for
        for verb in sorted((verb for verb in verbs if verb in REQUESTS), key=[*REQUESTS].index):
            probe.measure(verb)
        doubts = "; ".join(f"the server {doubt}" for doubt in getattr(model, "leaks", list)())
    if probe.problems and not probe.speed:
        return Description(spec, answers=False, problem=probe.problems[0])
    ways = [way for way in ways_of(model) if not probe.failed.issuperset(VERBS[way])]
    way = best_way(model, ways) if ways else None
    return Description(
        model.name,
        answers=True,
        problem=" ".join(probe.problems),
        evidence=model.evidence,
        revision=model.revision,
        verbs=verbs,
        parameters=getattr(model, "parameters", 0),
        dim=model.dim,
        context=getattr(model, "context", None),
        speed=probe.speed,
        tokens_per_second=probe.tokens_per_second,
        logprobs=bool({"score", "label"} & model.verbs),
        prompting=getattr(model, "prompting", "") if model.verbs != {"embed"} else "",
        answer=probe.answer,
        doubts=doubts,
        best_way=f"{way}: {DESCRIPTIONS[way]}" if way else "",
        next=_command(spec, probe.speed) if way else "",
    )


def _impatient(spec: str) -> dict[str, Any]:
    """Return options with which a server that is slow or broken is not waited for long."""
    head, written = split(spec)
    known = inspect.signature(resolve_name(backend_of(head).loader)).parameters
    wanted = {"timeout": TIMEOUT, "retries": 0, "patience": TIMEOUT}
    return {name: value for name, value in wanted.items() if name in known and name not in written}


def _command(spec: str, speed: dict[Verb, float]) -> str:
    """Return a command that runs the model for about a minute."""
    slowest = min(speed.values(), default=1.0)
    steps = int(min(200, max(10, 60 * slowest)))
    return f"hunch run zero-shot --env hunch/FrozenLake-v0 --lm {shlex.quote(spec)} --steps {steps}"


class Probe:
    """Measures a model, as long as there is time.

    Attributes:
        speed: See :class:`Description`.
        tokens_per_second: See :class:`Description`.
        answer: See :class:`Description`.
        failed: The verbs that did not answer.
        problems: What went wrong, one sentence per verb.
    """

    def __init__(self, model: LanguageModel, until: float) -> None:
        """Begin.

        Args:
            model: The model.
            until: Time (``time.monotonic``) after which no new request begins.
        """
        self.model, self.until = model, until
        self.speed: dict[Verb, float] = {}
        self.tokens_per_second = 0.0
        self.answer = ""
        self.failed: set[str] = set()
        self.problems: list[str] = []

    def measure(self, verb: Verb) -> None:
        """Measure one kind of request; what fails is noted among the problems."""
        if self.speed and time.monotonic() >= self.until:
            return
        ask = getattr(self, f"_{verb}")
        written = getattr(self.model, "tokens_written", 0)
        start = time.perf_counter()
        try:
            first = ask(PROMPT.format("\n".join(f"- {option}" for option in OPTIONS)))
            self.answer = self.answer or first
            requests, seconds = 1, time.perf_counter() - start
            if seconds < QUICK:  # the first one may include what is done only once
                written = getattr(self.model, "tokens_written", 0)
                requests, seconds = self._several(verb, ask)
        except UsageError:
            raise
        except HunchError as error:
            self.failed.add(verb)
            self.problems.append(str(error))
            return
        self.speed[verb] = requests / seconds
        if verb == "generate":
            self.tokens_per_second = float(getattr(self.model, "tokens_written", 0) - written) / seconds

    def _several(self, verb: Verb, ask: Callable[[str], str]) -> tuple[int, float]:
        """Send requests of a kind for a moment; return how many, and the seconds that they took."""
        start, requests = time.perf_counter(), 0
        while True:
            ask(PROMPT.format(f"You have looked {requests} times."))
            requests += 1
            seconds = time.perf_counter() - start
            if requests == REQUESTS[verb] or seconds > QUICK or time.monotonic() >= self.until:
                return requests, seconds

    def _generate(self, prompt: str) -> str:
        room = getattr(self.model, "answer_tokens", 0)
        start = time.perf_counter()
        said = self._written(prompt, ANSWER)
        if not said and not self.answer and room > ANSWER:
            # A model that thinks first says nothing within so few tokens. It gets the tokens for which there
            # is time, at the speed of the first answer.
            rate = ANSWER / (time.perf_counter() - start)
            more = min(room, int(rate * (self.until - time.monotonic())))
            said = self._written(prompt, more) if more > ANSWER else ""
            if not said:
                return f"none within {max(more, ANSWER)} tokens: it thinks first, or says nothing"
        return repr(said) if said else "none: the text is empty"

    def _written(self, prompt: str, tokens: int) -> str:
        """Return what the model says within so many tokens; empty if it says nothing but thoughts."""
        ends = () if getattr(self.model, "answer_tokens", 0) else ("\n",)
        ((said,),) = self.model.generate([prompt], sampling=Sampling(tokens, stop=ends))
        return said if spoken(said).strip() else ""

    def _decide(self, prompt: str) -> str:
        """Ask for a choice; return the most probable option with its probability."""
        question = DecisionQuestion("choice", "Which action comes next?", OPTIONS)
        ((probabilities,),) = self.model.decide([prompt], [[question]])
        if probabilities is None:
            return "none: the model refused to answer"
        favourite = int(probabilities.argmax())
        return f"{OPTIONS[favourite]!r} with probability {probabilities[favourite]:.2f}"

    def _score(self, prompt: str) -> str:
        self.model.score([prompt], [OPTIONS])
        return ""

    def _label(self, prompt: str) -> str:
        self.model.label([prompt], [LABELS])
        return ""

    def _embed(self, prompt: str) -> str:
        self.model.embed([prompt])
        return ""
