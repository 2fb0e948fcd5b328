"""SPRING: asks a graph of questions about a manual and recent observations; the last answer is the action.

    for each step of the environment
        for each question, after those that it depends on
            answer = model(manual, task, last observations, those questions with their answers, question)
        take the action that the last answer names; if it names none, use the fallback

Nothing is learnt. Source: Wu et al., "SPRING: Studying the Paper and Reasoning to Play Games", NeurIPS 2023,
and the released notebook, whose nine questions are reworded for any game with listed actions.

Departures: the manual is used whole, as in the notebook, while the paper first selects the relevant
paragraphs of an article. If the answer names no action, a random one is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import Agent, Explanation, State, Transition, UsageError, World
from hunch.lm import require
from hunch.lm.answers.lines import spoken
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import AskConfig, Asking, about
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveInt


@dataclass(frozen=True)
class Question:
    """A question of the graph.

    Attributes:
        text: The text of the question.
        after: Names of the questions whose answers this question uses.
        listed: True if the prompt lists the admissible actions.
    """

    text: str
    after: tuple[str, ...] = ()
    listed: bool = False


GRAPH: Final[Mapping[str, Question]] = {
    "last": Question("Which action was taken last?"),
    "worked": Question("Did the last action work? If not, why not?", ("last",)),
    "things": Question("Which things are here? Say for each what it gives, and what that takes."),
    "met": Question("For each of these things, is everything there that it takes?", ("things",)),
    "tasks": Question(
        "Which three sub-tasks should come next? Give each a priority out of 5.", ("things", "met")
    ),
    "first": Question(
        "What does the sub-task of the highest priority take, and what should be done first?", ("tasks",)
    ),
    "actions": Question(
        "Which five of the listed actions should be taken next? Give each a priority out of 5.",
        ("first",),
        listed=True,
    ),
    "possible": Question("For each of these actions, is everything there that it takes?", ("actions",)),
    "choice": Question(
        "Which of these actions is the best that is possible?", ("last", "worked", "actions", "possible")
    ),
}
"""The nine questions of the notebook, reworded; the last one asks for the action."""
DIRECT: Final[Mapping[str, Question]] = {
    "choice": Question("Which of the listed actions is the best now?", listed=True)
}
"""The control: only the question for the action."""
WORDINGS: Final = {"graph": "a38192ad", "direct": "bd89f2ed"}
"""Version of the words of :meth:`SPRING.prompt` with each of the two graphs. Change both with the prompt, and
one with its graph: runs with different words are different runs."""


def ordered(questions: Mapping[str, Question]) -> list[str]:
    """Return names of questions, each after those that it depends on; the last one stays last.

    Raises:
        UsageError: if there is no question, or if one depends on itself or on an unknown question.
    """
    if not questions:
        raise UsageError("SPRING needs at least one question.")
    for name, question in questions.items():
        if missing := [other for other in question.after if other not in questions]:
            raise UsageError(f"The question {name!r} depends on {missing[0]!r}, which does not exist.")
    try:
        names = list(TopologicalSorter({n: q.after for n, q in questions.items()}).static_order())
    except CycleError as error:
        raise UsageError(f"Questions depend on each other: {' -> '.join(error.args[1])}.") from None
    final = list(questions)[-1]
    return [*(name for name in names if name != final), final]


@dataclass(frozen=True, kw_only=True)
class SPRINGConfig(AskConfig):
    """Settings of SPRING."""

    prompt_fields = ("manual", "answers", "question")
    ask: Literal["graph", "direct"] = "graph"
    """Ask all nine questions (graph, paper), or only the last one (direct)."""
    window: PositiveInt = 2
    """Number of recent observations in the prompt, with the actions between them (paper)."""
    temperature: NonNegativeFloat = 0.0
    """Sampling temperature; with 0 the same prompt has the same answer (our choice)."""
    max_tokens: PositiveInt | None = None
    """Maximum tokens per answer. Default: 200 (our choice), or more for a chat model."""


class SPRING(Agent):
    """The agent of SPRING.

    Args:
        lm: A model that generates.
        config: Settings; ``options`` change single ones.
        questions: Graph of questions that replaces the one of the settings; its last question asks for the
            action.

    Raises:
        UsageError: if the model cannot generate, or the questions do not form a graph without cycles.
    """

    config_class: ClassVar[type[Any]] = SPRINGConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "seen", "count", "lines", "unread")

    def __init__(
        self,
        lm: LanguageModel,
        config: SPRINGConfig | None = None,
        *,
        questions: Mapping[str, Question] | None = None,
        **options: Any,
    ) -> None:
        require(lm, "generate", needed_by="SPRING")
        self.config: SPRINGConfig = configure(type(self), config, options)
        self.lm, self.models, self.given = lm, {"lm": lm}, questions
        self.from_settings = questions is None
        self.questions = questions or (GRAPH if self.config.ask == "graph" else DIRECT)
        self.order = ordered(self.questions)
        self._asking = Asking(lm, self.config, tokens=200, stop=("\n\n",), role="policy")

    @property
    def wording(self) -> str:
        """The version of the prompts and of the questions of the settings."""
        return WORDINGS[self.config.ask]

    @property
    def settings(self) -> dict[str, Any]:
        """The config, the model, the version of the prompts, and the questions if they were given."""
        more = {} if self.given is None else {"questions": repr(self.given)}
        return {**super().settings, **more}

    def begin(self, world: World, seed: int) -> None:
        """Forget all observations."""
        self.manual, self.seed, self.rng = world.manual, seed, np.random.default_rng(seed)
        self.seen: dict[int, list[tuple[str, str]]] = {}  # by stream: earlier observations with the actions
        self.count: dict[int, int] = {}  # actions so far, by stream; each has its own random generator
        self.lines: list[dict[str, Any]] = []
        self.unread: list[bool] = []

    # ---- acting ---------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Ask all questions of each state, and take the action that the last answer names."""
        answers = self._ask(states, int(self.rng.integers(2**31)) if self.config.temperature else 0)
        return [self._act(state, state_answers) for state, state_answers in zip(states, answers, strict=True)]

    def _ask(self, states: Sequence[State], sample: int) -> list[dict[str, str]]:
        """Return the answers for each state by question, with one call of the model per question."""
        known: list[dict[str, str]] = [{} for _ in states]
        for name in self.order:
            prompts = [
                self.prompt(name, state, state_answers)
                for state, state_answers in zip(states, known, strict=True)
            ]
            for state_answers, (answer,) in zip(
                known, self._asking.generate(prompts, 1, sample), strict=True
            ):
                state_answers[name] = spoken(answer).strip()
        return known

    def prompt(self, name: str, state: State, answers: Mapping[str, str]) -> Prompt:
        """Return the prompt of a question, given the answers before it."""
        question = self.questions[name]
        past = [f"{text}\n> {action}" for text, action in self.seen.get(state.stream, ())]
        asked = [f"Question: {self.questions[q].text}\nAnswer: {answers[q]}" for q in question.after]
        listed = "\n".join(f"- {action}" for action in state.options) if question.listed else ""
        parts = [
            self.manual,
            f"Your task is to: {state.task}",
            "\n".join([*past, state.observation]),
            *asked,
            f"You are allowed to take the following actions:\n{listed}" if listed else "",
            f"Question: {question.text}\nAnswer:",
        ]
        return self._asking.prompt(
            "\n\n".join(part for part in parts if part),
            **about(state) | {"history": "\n".join(past)},
            manual=self.manual,
            answers="\n\n".join(asked),
            question=question.text,
        )

    def _act(self, state: State, answers: Mapping[str, str]) -> str:
        """Return the action that the last answer names, or a random one."""
        answer = answers[self.order[-1]]
        index = read_option(answer, state.options)
        step = self.count[state.stream] = self.count.get(state.stream, 0) + 1
        named = index is not None
        self._asking.hear([answer], [state.options[index] if index is not None else None])
        if index is None:
            rng = np.random.default_rng([self.seed, state.stream, step])
            index = int(rng.integers(len(state.options)))
        self.unread.append(not named)
        line = {"stream": state.stream, "answers": dict(answers), "action": state.options[index]}
        self.lines.append({**line, "named": named})
        return state.options[index]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the last observations of each episode for the next prompt."""
        for t in transitions:
            past = [*self.seen.get(t.stream, ()), (t.state.observation, t.action)]
            surplus = max(0, len(past) - (self.config.window - 1))  # the next observation is in the window
            self.seen[t.stream] = [] if t.done else past[surplus:]

    def learn(self) -> dict[str, float]:
        """Return the share of answers since the last call that named no action; nothing is learnt."""
        unread, self.unread = self.unread, []
        return {"fallback_rate": float(np.mean(unread))} if unread else {}

    # ---- telling and keeping --------------------------------------------------------------------------

    def player(self, seed: int) -> SPRING:
        """Return a player with the same model and questions, but separate randomness and memory."""
        twin = type(self)(self.lm, self.config, questions=self.given)
        twin.begin(World(manual=self.manual), seed)
        return twin

    def explain(self, state: State) -> Explanation:
        """Return the questions and the most likely answers as a note."""
        (answers,) = self._ask([state], 0)
        return Explanation(note="\n".join(f"{self.questions[q].text} {answers[q]}" for q in self.order))

    def records(self) -> list[dict[str, Any]]:
        """Return one record per step: all answers and the action taken."""
        return list(self.lines)


METHOD = Method(
    "spring",
    SPRING,
    "answer a graph of questions about a manual and observations; the last answer is the action",
    "Wu et al., SPRING: Studying the Paper and Reasoning to Play Games, NeurIPS 2023",
    leaf="LLM4RL / policy",
    environments="environments with listed actions; the craft world has a manual",
    models={"lm": ("generate",)},
    suggested=("openai:gpt-4o-mini", "scripted:player"),
    roles=("policy",),
    control="uninformed answers",
    data="none",
    changeable=("ask", "window", "temperature"),
)
