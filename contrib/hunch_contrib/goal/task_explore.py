"""TaskExplore: learns auxiliary tasks that are similar to the target from the same steps.

Algorithm (Quartey, Shah and Konidaris, "Exploiting Contextual Structure to Generate Useful Auxiliary Tasks",
2023)::

    the target is a formula over objects; a language model embeds the objects' names
    auxiliary tasks <- the formula with each object replaced by one of the most similar ones
    in every step
        act epsilon-greedily for the target, over pairs of a place and a formula
        for every task, with the formula that it has reached in this episode (counterfactually)
            Q(task, place, formula; a) <- towards r + gamma max Q(task, place', formula'; .)
            where formula' is the formula after this step, and r = 1 if it is done
    so each auxiliary task gets a policy without extra steps

The model fills one role, the goal source: the tasks that it suggests are learnt alongside the target, not
pursued, unless ``behaviour=curriculum`` pursues them first, in the order of their similarity. That order and
its length are ours. Departure: only names are embedded, by a sentence encoder. With ``counterfactual=all``, a
step updates every formula that a task may reach, as in learning with reward machines (Toro Icarte et al.,
JAIR 73, 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from hunch.core import Agent, EvidenceLevel, Explanation, FloatArray, Player, State, Transition, World
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import LATER, NonNegativeInt, PositiveInt, PositiveShare, Share, stated
from hunch.rl.tabular import QTable
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.similarity import cosines
from hunch_contrib.goal.temporal import FALSE, TRUE, Automaton, Formula, parse, propositions, show, swapped

Lefts: TypeAlias = dict[int, dict[str, Formula]]
"""What remains to be done of each task, by stream and task."""


@dataclass(frozen=True, kw_only=True)
class TaskExploreConfig:
    """Settings of TaskExplore."""

    tasks: NonNegativeInt = 8
    """Number of auxiliary tasks (our choice); 0 leaves Q-learning for the target."""
    near: PositiveInt = 2
    """Number of candidates that may replace each object of the target (our choice)."""
    swaps: Literal["alike", "random"] = "alike"
    """Candidates: objects with the most similar names (alike), or random objects (random, a control)."""
    behaviour: Literal["target", "curriculum", "random"] = "target"
    """Act for the target task; for one auxiliary task after the other, the least similar first, and then for
    the target (curriculum); or at random (a control)."""
    lessons: Share = field(default=0.5, metadata=LATER)
    """With curriculum: share of the steps in which auxiliary tasks are pursued (ours)."""
    counterfactual: Literal["each", "all"] = "each"
    """Update, for each task, the formula reached in this episode (each, paper), or all formulas (all)."""
    encoder: str = "minilm"
    """Encoder of the names of objects, given by its spec."""
    gamma: Share = 0.97
    """Discount per step (our choice)."""
    learning_rate: PositiveShare = 0.2
    """Learning rate of Q (our choice)."""
    epsilon: Share = 0.2
    """Share of random actions in training (our choice)."""


class TaskExplore(Agent):
    """The agent of TaskExplore; its players pursue the task of the state, the target or an auxiliary task.

    Args:
        config: All settings; ``options`` change single ones.
        encoder: Embeds the names of objects. Default: that of the config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model without embeddings.
    """

    config_class: ClassVar[type[Any]] = TaskExploreConfig

    def __init__(
        self, config: TaskExploreConfig | None = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        self.config: TaskExploreConfig = configure(type(self), config, options)
        self.names = TextTable(load(self.config.encoder) if encoder is None else encoder)
        self.models = {"encoder": self.names.lm}

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the encoder; None if it is not used."""
        chooses = self.config.tasks and self.config.swaps == "alike"
        return self.names.lm.evidence if chooses else None

    @property
    def settings(self) -> dict[str, Any]:
        """The config, and the name of the encoder."""
        return {**stated(self.config), "encoder": self.names.lm.name}

    def begin(self, world: World, seed: int) -> None:
        """Make the tasks, and forget everything learnt.

        Raises:
            UsageError: if the world's task is not a formula.
        """
        self.rng = np.random.default_rng(seed)
        self.table = QTable(self.config.gamma, self.config.learning_rate, 0.0)
        self.tasks: dict[str, Automaton] = {}  # the target first
        self.things = world.things
        self.left: Lefts = {}
        self.steps = 0  # of all streams
        self.all_steps = world.steps
        if world.task:
            self._draw_up(parse(world.task), seed)
        for episode in world.data:
            self.observe(episode)
        self.steps = 0
        self.left = {}

    # ---- tasks ----------------------------------------------------------------------------------------

    def _draw_up(self, target: Formula, seed: int) -> None:
        """Make the tasks: the target, and the formulas with the most similar objects in their places."""
        objects = propositions(target)
        rng = np.random.default_rng([seed, 1])
        candidates = [self._swaps(name, rng) for name in objects]
        # All combinations, those with the smallest sum of ranks first.
        combinations = sorted(product(*candidates), key=lambda chosen: sum(rank for _, rank in chosen))
        # An ordered set: `F a & F b` and `F b & F a` are one task.
        tasks: dict[Formula, None] = {target: None}
        for chosen in combinations:
            things = [thing for thing, _ in chosen]
            if len(set(things)) == len(objects):  # one object in two roles would be another task
                tasks[swapped(target, dict(zip(objects, things, strict=True)))] = None
        self.tasks = {show(task): Automaton.of(task) for task in list(tasks)[: 1 + self.config.tasks]}

    def _swaps(self, name: str, rng: np.random.Generator) -> list[tuple[str, int]]:
        """Return the candidates to replace an object, each with its rank; equals in random order."""
        others = [thing for thing in self.things if thing != name]
        others = [others[i] for i in rng.permutation(len(others))]
        if self.config.swaps == "alike" and others:
            likeness = cosines(self.names.encode([name]), self.names.encode(others))[0]
            others = [others[i] for i in np.argsort(-likeness, kind="stable")]
        return [(thing, rank) for rank, thing in enumerate(others[: self.config.near])]

    # ---- acting ---------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Act epsilon-greedily for the target or the task of the lesson, or at random."""
        return [self._explore(self._pursuing(state)) for state in states]

    def _pursuing(self, state: State) -> State:
        """Return the state with the task that is pursued: in a curriculum that of the lesson."""
        lesson_steps = self.config.lessons * self.all_steps
        if self.config.behaviour != "curriculum" or self.steps >= lesson_steps:
            return state
        lessons = list(self.tasks)[:0:-1]  # the target is the first; the least similar task is the last
        if not lessons:
            return state
        number = int(self.steps / lesson_steps * len(lessons))
        return replace(state, task=lessons[number])

    def _explore(self, state: State) -> str:
        if self.config.behaviour == "random" or self.rng.random() < self.config.epsilon:
            return state.options[int(self.rng.integers(len(state.options)))]
        return self.best(state, self.left, self.rng)

    def best(self, state: State, lefts: Lefts, rng: np.random.Generator) -> str:
        """Return one of the best actions for what remains of the state's task."""
        q = self.q(state, lefts)
        ties = np.flatnonzero(q == q.max())
        return state.options[int(ties[rng.integers(len(ties))])]

    def q(self, state: State, lefts: Lefts) -> FloatArray:
        """Return Q of each action for what remains of the state's task; 0 if the task is not learnt."""
        automaton = self.tasks.get(state.task)
        if automaton is None:
            return np.zeros(len(state.options))
        left = lefts.get(state.stream, {}).get(state.task, automaton.start)
        return self.table.values(_row(state.task, state, left), state.options)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Update Q of all tasks with each step."""
        self.steps += len(transitions)
        for t in transitions:
            for name, automaton in self.tasks.items():
                self._learn(name, automaton, t)
            follow(self.left, self.tasks, t)

    def _learn(self, name: str, automaton: Automaton, t: Transition) -> None:
        """Update a task for the formula that it had reached before the step, or for all of its formulas."""
        reached = self.left.get(t.stream, {}).get(name, automaton.start)
        if self.config.counterfactual == "all":
            formulas = automaton.open
        elif reached in (TRUE, FALSE):  # done or lost: nothing to learn until the episode ends
            formulas = ()
        else:
            formulas = (reached,)
        for formula in formulas:
            # Q(task, place, formula; a) <- towards r + gamma max Q(task, place', formula'; .)
            next_formula = automaton.after(formula, t.event)
            # Where the target's end ends the episode, a task that is still open goes on: it bootstraps.
            over = next_formula in (TRUE, FALSE)
            self.table.update(
                _row(name, t.state, formula),
                t.action,
                float(next_formula == TRUE),
                _row(name, t.next_state, next_formula),
                () if over else t.next_state.options,
            )

    def learn(self) -> dict[str, float]:
        """Return the number of tasks as a metric; learning happens in ``observe``."""
        return {"tasks": float(len(self.tasks))}

    def records(self) -> list[dict[str, Any]]:
        """Return the tasks, the target first."""
        return [{"task": name, "auxiliary": i > 0} for i, name in enumerate(self.tasks)]

    # ---- evaluating -----------------------------------------------------------------------------------

    def player(self, seed: int) -> TaskPlayer:
        """Return a player that takes the best action for the task of its states."""
        return TaskPlayer(self, seed)

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the largest Q for what remains of each state's task, shape (n,)."""
        return np.array([self.q(state, self.left).max() for state in states])

    def explain(self, state: State) -> Explanation:
        """Return Q for what remains of the state's task."""
        return Explanation({"Q": self.q(state, self.left)})

    def state_dict(self) -> dict[str, Any]:
        """Return tasks, table, random state, and what remains of each task."""
        left = {}
        for stream, formulas in self.left.items():
            left[stream] = {name: show(formula) for name, formula in formulas.items()}
        return {
            "tasks": list(self.tasks),
            "rng": self.rng.bit_generator.state,
            "left": left,
            "steps": self.steps,
            "table": self.table.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.tasks = {name: Automaton.of(parse(name)) for name in state["tasks"]}
        self.table.load_state_dict(state["table"])
        self.rng.bit_generator.state = state["rng"]
        self.steps = state.get("steps", 0)  # a checkpoint of before, which had no curriculum
        self.left = {}
        for stream, texts in state["left"].items():
            self.left[stream] = {name: parse(text) for name, text in texts.items()}


def follow(lefts: Lefts, tasks: Mapping[str, Automaton], t: Transition) -> None:
    """Record what remains of each task after a transition."""
    formulas = lefts.setdefault(t.stream, {})
    for name, automaton in tasks.items():
        formulas[name] = automaton.after(formulas.get(name, automaton.start), t.event)
    if t.done:
        del lefts[t.stream]


def _row(task: str, state: State, left: Formula) -> tuple[Any, ...]:
    """Return the row of the table: the task, the raw state, and what remains of the task."""
    place = state.observation if state.raw is None else tuple(state.raw)
    return task, place, show(left)


class TaskPlayer(Player):
    """A player that pursues the task of its states, and remembers what remains of it."""

    def __init__(self, agent: TaskExplore, seed: int) -> None:
        self.agent = agent
        self.rng = np.random.default_rng(seed)
        self.left: Lefts = {}

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the best action of each state."""
        return [self.agent.best(state, self.left, self.rng) for state in states]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Record what remains of the task."""
        for t in transitions:
            follow(self.left, self.agent.tasks, t)


METHOD = Method(
    "task-explore",
    TaskExplore,
    "also learn similar tasks, with objects replaced by similar ones, from the same steps",
    "Quartey et al., Exploiting Contextual Structure to Generate Useful Auxiliary Tasks, 2023",
    leaf="LLM4RL / goal",
    environments="environments with raw states and tasks in temporal logic",
    reads={"events", "raw"},
    models=ENCODER,
    roles=("goal source",),
)
