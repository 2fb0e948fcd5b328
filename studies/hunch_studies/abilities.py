"""Study of what a model can infer from examples: the table of the pocket model's card, for any model.

For the six domains of ICPI, it measures the share of right answers to prompts for the end, the reward, the
next state and the action, by the number of shown steps. Outcomes are balanced in questions and examples, as
in ICPI's prompts. States have no hints, as in the runs with models that are not scripted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import State
from hunch.envs import make
from hunch.envs.icpi.texts import Texts
from hunch.lm import load, require
from hunch.lm.base import LanguageModel
from hunch.lm.speech import Sampling
from hunch.rl.episodes import play
from hunch.rl.statistics import Estimate, over_episodes
from hunch.roles.world_model.experience import Example
from hunch.roles.world_model.prompting import Blank, Completer, PromptConfig, assemble, shuffled
from hunch.roles.world_model.text import example, question
from hunch_studies import families
from hunch_studies.icpi import DOMAINS
from hunch_studies.study import Part, Scale, Study

PIECES: Final = ("end", "reward", "next state", "action")
SHOWN: Final = (2, 8, 16)
"""Numbers of shown steps."""
TEMPERATURES: Final = (0.1, 0.3, 0.5, 1.0)
"""Temperatures at which actions are drawn."""


@dataclass(frozen=True)
class Ability:
    """A model's accuracy.

    Attributes:
        domain: Domain of the steps.
        piece: The predicted part.
        shown: Number of shown steps.
        share: Share of right answers, with the interval over the questions.
    """

    domain: str
    piece: str
    shown: int
    share: Estimate


@dataclass(frozen=True)
class Question:
    """A prompt, its stop string, and a check of its answer."""

    prompt: str
    stop: str
    right: Callable[[str], bool]


def measure(
    lm: LanguageModel, *, domains: Sequence[str] = DOMAINS, questions: int = 100, seed: int = 0
) -> Iterator[Ability]:
    """Ask a model about steps of the domains, at temperature 0.

    Args:
        lm: A model that generates.
        domains: Names of domains of ICPI.
        questions: Number of questions per domain, piece and number of steps.
        seed: Seed of steps and questions; the same for every model.

    Raises:
        UsageError: if the model cannot generate.
    """
    require(lm, "generate", needed_by="The table of abilities")
    for domain in domains:
        rng = np.random.default_rng([seed, DOMAINS.index(domain)])
        world = Steps(domain, rng)
        for piece in PIECES:
            for shown in SHOWN:
                asked = [world.question(piece, shown, lm) for _ in range(questions)]
                sampling = Sampling(PromptConfig().max_tokens, 0.0, 1.0, (asked[0].stop,))
                answers = lm.generate([question.prompt for question in asked], 1, sampling)
                right = [q.right(text) for q, (text,) in zip(asked, answers, strict=True)]
                yield Ability(domain, piece, shown, over_episodes(right))


class Steps:
    """Steps of a domain, from random and optimal play.

    Args:
        domain: Name of the domain.
        rng: Random generator.
        episodes: Number of episodes of each kind.
    """

    def __init__(self, domain: str, rng: np.random.Generator, episodes: int = 200) -> None:
        self.env = make(f"hunch/{domain}-v0", hints=False)
        self.twin: Any = make(f"hunch/{domain}-v0", hints=False).unwrapped
        self.texts: Texts = self.env.unwrapped.wording  # type: ignore[attr-defined]
        self.noisy = domain == "DistractorChain"
        self.rng = rng
        self.random = [step for _ in range(episodes) for step in self._episode(best=False)]
        self.best = [step for _ in range(episodes // 4) for step in self._episode(best=True)]

    def question(self, piece: str, shown: int, lm: LanguageModel) -> Question:
        """Draw a step to ask about, and others to show."""
        texts, rng = self.texts, self.rng
        completer = Completer(lm, PromptConfig())
        if piece == "action":
            query = self.best[rng.integers(len(self.best))]
            examples = [
                texts.reset + texts.transition(*step) for step in self._drawn(self.best, shown, lambda s: 0)
            ]
            prompt = self._prompt(completer, examples, texts.reset + query.state)
            known = {step.action for step in self.best if step.state == query.state}
            return Question(prompt, texts.action_stop, lambda text: texts.read_action(text) in known)
        outcome: Callable[[Example], float] = {
            "end": lambda step: float(step.done),
            "reward": lambda step: step.reward,
            "next state": lambda step: 0.0,
        }[piece]
        pool = [step for step in self.random if piece != "next state" or not step.done]
        action = pool[rng.integers(len(pool))].action
        steps = [step for step in pool if step.action == action]
        if piece == "reward":
            flags = sorted({step.done for step in steps})
            flag = flags[rng.integers(len(flags))]
            steps = [step for step in steps if step.done == flag]
        query = self._drawn(steps, 1, outcome)[0]
        drawn = self._drawn(steps, shown, outcome)
        examples = [example(step, self._told(piece, step), texts) for step in drawn]
        asked = question(query.state, action, texts)
        prompt = self._prompt(completer, examples, asked)
        return Question(prompt, self._stop(piece), lambda text: self._right(piece, query, text))

    def _prompt(self, completer: Completer, examples: Sequence[str], query: str) -> str:
        """Return examples and query with as many examples as ICPI would show."""
        spare = completer.spare([Blank(query, [examples], self.rng, 0)])
        return assemble(examples, query, completer.context - spare, completer.lm.count_tokens)[0]

    def _drawn(
        self, steps: Sequence[Example], count: int, outcome: Callable[[Example], float]
    ) -> list[Example]:
        """Draw steps, with each outcome equally often."""
        groups: dict[float, list[Example]] = {}
        for step in steps:
            groups.setdefault(outcome(step), []).append(step)
        order = shuffled(list(groups.values()), self.rng)
        drawn = [order[i % len(order)] for i in range(count)]
        return shuffled([group[self.rng.integers(len(group))] for group in drawn], self.rng)

    def _told(self, piece: str, step: Example) -> str:
        if piece == "end":
            return self.texts.done(step.done)
        return self.texts.reward(step.reward) if piece == "reward" else step.next_state

    def _stop(self, piece: str) -> str:
        texts = self.texts
        return {"end": texts.done_stop, "reward": texts.reward_stop, "next state": texts.state_stop}[piece]

    def _right(self, piece: str, query: Example, text: str) -> bool:
        if piece == "end":
            return self.texts.read_done(text) == query.done
        if piece == "reward":
            return self.texts.read_reward(text) == query.reward
        return self._certain(self.texts.read_state(text) or "") == self._certain(query.next_state)

    def _certain(self, state: str) -> str:
        """Return the predictable part of a state: everything except the distractor's number."""
        return state.partition(",")[0] if self.noisy else state

    def _episode(self, best: bool) -> list[Example]:
        act = self._best if best else lambda state: self.rng.choice(state.options).item()
        return [
            Example(t.state.observation, t.action, t.reward, t.terminated, t.next_state.observation)
            for t in play(self.env, act, int(self.rng.integers(2**31)))
        ]

    def _best(self, state: State) -> str:
        """Return the action with the best value, found by trying each in a copy; the first among equals."""
        values = [self._value(state, action) for action in state.options]
        return state.options[int(np.argmax(values))]

    def _value(self, state: State, action: str) -> float:
        self.twin.place(state.raw)
        _, reward, done, _, info = self.twin.step(action)
        if done:
            return float(reward)
        _, info = self.twin.place(info["raw"])
        return float(reward) + self.texts.gamma * float(info["optimal"])


def _parts(scale: Scale, data: Path) -> list[Part]:
    domains = DOMAINS[:1] if scale.smoke else DOMAINS
    questions = 4 if scale.smoke else 40
    parts = []
    for spec in scale.lms or ("pocket",):
        by = f", {spec}" if len(scale.lms) > 1 else ""
        parts += [Part(d + by, (), beside=partial(_table, d, spec, questions)) for d in domains]
        parts.append(Part("Made-up worlds" + by, (), beside=partial(_families, spec, questions)))
        parts.append(Part("Names of actions" + by, (), beside=partial(_names, spec, questions)))
    return parts


def _table(domain: str, spec: str, questions: int, folder: Path) -> str:
    """Measure a model in a domain; return a table."""
    lm = load(spec)
    rows: dict[str, list[str]] = {}
    for ability in measure(lm, domains=[domain], questions=questions):
        rows.setdefault(ability.piece, [ability.piece]).append(str(ability.share))
    return _written(lm, questions, ("asked for, by steps shown", *map(str, SHOWN)), rows.values())


def _families(spec: str, questions: int, folder: Path) -> str:
    """Measure a model on invented worlds, of kinds in the corpus and of others; return a table."""
    lm = load(spec)
    rows: dict[str, list[str]] = {}
    for told in families.measure(lm, questions=questions):
        known = "held out" if told.family in families.LAWS else "yes"
        rows.setdefault(told.family, [told.family, known]).append(str(told.share))
    heads = ("worlds, 16 steps shown", "in the pocket model's corpus", *families.SHAPES)
    return _written(lm, questions, heads, rows.values())


def _names(spec: str, questions: int, folder: Path) -> str:
    """Measure how often a model names an existing action; return a table."""
    lm = load(spec)
    shares = families.name_actions(lm, TEMPERATURES, questions=questions)
    heads = ("action drawn at temperature", *map(str, TEMPERATURES))
    return _written(lm, questions, heads, [["exists", *map(str, shares)]])


def _written(lm: LanguageModel, questions: int, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, with a dash where nothing was asked."""
    cells = [heads, ["---"] * len(heads), *([*row, *["-"] * (len(heads) - len(row))] for row in rows)]
    said = f"`{lm.name}`, evidence {lm.evidence}, {questions} questions per cell:"
    return "\n".join([said, "", *(f"| {' | '.join(row)} |" for row in cells)])


STUDIES = {
    "abilities": Study(
        "abilities",
        "What can a model predict about a small world from examples alone: end, reward, next state, action?",
        "Nothing: this is the table of the pocket model's card.",
        "In DistractorChain's next state only the first number counts, because the other is random. An "
        "action is right if an optimal policy takes it in that state. Intervals are over questions.",
        _parts,
        lm_for="icpi",
    )
}
