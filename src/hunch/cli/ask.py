"""``hunch lm SPEC --ask ROLE --env ID``: how a role asks a model, what it says, and how that is read.

The method that has the role runs until the model has answered once: prompt and reader are those of its runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from hunch import methods
from hunch.cli.environment import split_environment
from hunch.cli.options import options_of, parse, run_config
from hunch.core import HunchError, UsageError
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.lines import spoken
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import ANSWERS, REMEDY
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling, text_of
from hunch.methods.registry import CONTRIB
from hunch.ranges import PositiveInt
from hunch.runs.config import Setting
from hunch.runs.execute import execute
from hunch.runs.loading import parts_of
from hunch.runs.places import Given
from hunch.runs.resolve import resolve

ROLES = {
    "prior": "zero-shot",
    "judge": "kwon",
    "preference": "motif",
    "goal": "ellm",
    "planner": "saycan",
    "policy": "zero-shot",
    "opponent": "zero-shot",
    "world-model": "icpi",
    "writer": "funsearch",
    "encoder": "dqn",
}
"""The roles that ask a model, each with the method that is run."""
QUESTIONS = 30
"""Maximum requests before a role reads an answer."""


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """The environment, length and seed of the run in which a role asks a model."""

    env: str
    """Environment id; its options are given as --env.NAME VALUE."""
    steps: PositiveInt = 10_000
    """Maximum steps until the role asks; the run ends with the first answer. Some roles ask late."""
    seed: int = 0
    """Seed of the run."""


class AnsweredError(HunchError):
    """Raised when the model has answered; the message shows the prompt, the answer and its reading."""


class FirstAnswer(Cached):
    """A model that shows its first answer and how the role reads it, and then ends the run."""

    shows = False
    calls = 0

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.prompts: dict[str, Prompt] = {}  # by the answer

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling | None = None, first: int = 0
    ) -> list[list[str]]:
        """Ask the model for one answer only, and return it as the answer to every prompt."""
        if not (self.shows and prompts):
            return super().generate(prompts, k, sampling, first)
        self.calls += 1
        if self.calls <= QUESTIONS:
            ((answer,),) = super().generate(prompts[:1], 1, sampling, first)
            self.prompts[answer] = prompts[0]
        else:  # a role that asks much before it reads, such as one that prefers
            answer = next(iter(self.prompts))
        return [[answer] * k for _ in prompts]

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Any]:
        """Show the first prompt, with the log-probability of each option."""
        scores = super().score(prompts, options)
        if self.shows and scores:
            _end(prompts[0], _rows(scores[0].logprobs, options[0]), "log-probabilities")
        return scores

    def label(self, prompts: Sequence[Prompt], labels: Sequence[Sequence[str]]) -> list[Any]:
        """Show the first prompt, with the log-probability of each letter."""
        scores = super().label(prompts, labels)
        if self.shows and scores:
            _end(prompts[0], _rows(scores[0], labels[0]), "log-probabilities of the letters")
        return scores

    def embed(self, texts: Sequence[Prompt]) -> Any:
        """Show the first text, and the shape of its embedding."""
        vectors = super().embed(texts)
        if self.shows and len(texts):
            _end(texts[0], f"{vectors.shape[1]} numbers, {vectors[0][:4]} ...", "embedding")
        return vectors

    def listener(self, role: str, answer: str, meaning: object) -> None:
        """Show an answer and what the role read in it; called by the role."""
        if self.shows and answer in self.prompts:
            silent = not spoken(answer).strip()
            problem = "There is no answer: the model said nothing" if silent else "Read as: nothing of use"
            unread = meaning is None or meaning == []
            read = f"{problem}. An answer {ANSWERS[role]}; {REMEDY}." if unread else f"Read as: {meaning}"
            _end(self.prompts[answer], answer, "answer", read)


def _end(prompt: Prompt, answer: str, what: str, read: str = "") -> NoReturn:
    lines = ("---- prompt ----", text_of(prompt), f"---- {what} ----", answer, "-" * 16, read)
    raise AnsweredError("\n".join(lines).rstrip())


def _rows(figures: Any, names: Sequence[str]) -> str:
    return "\n".join(f"{figure:9.3f} {name}" for figure, name in zip(figures, names, strict=True))


def ask(arguments: Sequence[str]) -> None:
    """Ask a model as a role does; print prompt, answer and how it is read.

    Raises:
        UsageError: on a wrong option, or an environment or model that does not fit the role.
        HunchError: if the model cannot be loaded, or the role does not ask it within the run.
    """
    spec, (rest, role) = arguments[0], _role(arguments[1:])
    if spec.startswith("-"):
        raise UsageError("Name one model first, as in 'hunch lm SPEC --ask prior --env ID'.")
    method = methods.find(ROLES.get(role, role))
    rest, env_options = split_environment(rest)
    parts = {"where_": AskOptions, "method_": options_of(method, rest)}
    parsed = parse(f"lm {spec} --ask {role}", method.summary, parts, rest)
    where, place = parsed.where_, "encoder" if role == "encoder" else "lm"
    setting = Setting(env=where.env, steps=where.steps, lm=spec if place == "lm" else "")
    config = run_config(method.name, setting, env_options, parsed.method_, seed=where.seed)
    if place == "encoder":
        config = replace(config, options=replace(config.options, encoder=spec))
    resolved = resolve(config)
    agent, models = resolved.build(join=lambda model, _: FirstAnswer(model), parts=parts_of(config))
    for name, used in resolved.specs.items():
        model: Any = models[name]
        model.shows = used == spec and (name == "encoder") == (place == "encoder")
    try:
        execute(resolved, None, Given(agent=agent, models=models))
    except AnsweredError as seen:
        print(seen)
        return
    raise HunchError(f"{method.name} asked the model nothing in {where.steps:,} steps: set more --steps.")


def _role(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Take ``--ask ROLE`` out of the arguments; what follows may have the same name."""
    at = next(i for i, token in enumerate(arguments) if token.partition("=")[0] == "--ask")
    _, equals, role = arguments[at].partition("=")
    if not equals and at + 1 < len(arguments):
        role = arguments[at + 1]
    if role == "actor":
        raise UsageError("--ask actor is now --ask policy.")
    if role not in ROLES and role not in (*methods.names(), *CONTRIB):
        raise UsageError(f"--ask takes a role ({', '.join(ROLES)}) or a method, not {role!r}.")
    return [*arguments[:at], *arguments[at + (1 if equals else 2) :]], role
