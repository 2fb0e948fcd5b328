"""Plan4MC: replans after each skill, by a search over a graph of skills that a language model wrote once.

    graph = what each skill consumes, requires, needs nearby and obtains           the model, once
    while the episode lasts
        plan = do(target), from the real inventory and what is really nearby
        run the first skill of the plan

    do(skill): for each item that it consumes      do what obtains it until there is enough; reserve that
               for each item that it requires      do what obtains it until there is enough
               for each item needed nearby         do what obtains it, if it is not nearby
               append the skill, and add what it obtains; a skill that moves leaves everything nearby behind

Planning fails, with a reason, if nothing obtains an item, a skill needs itself, or items cannot be nearby at
the same time. Source: Yuan et al., "Skill Reinforcement Learning and Planning for Open-World Long-Horizon
Tasks", 2023, and the released code.

Departures: if several items are needed nearby, one that itself needs another of them nearby comes first, and
all are checked again after each, because searching for one leaves the others behind; else replanning may
alternate for ever. What is nearby is read from the environment, not remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import State, Transition, UsageError, World
from hunch.lm.base import LanguageModel
from hunch.methods.method import Method
from hunch.methods.planner.agent import Choice, Planner
from hunch.methods.planner.plan import Plan, PlannerConfig
from hunch.ranges import PositiveInt
from hunch.roles.planner.skills import FixedAction, Skill
from hunch_contrib.planner.skill_graph import WORDING, Entry, EntryConfig, SkillGraph, extract

FAR: Final = 400
"""Maximum number of skills in a plan (our choice)."""


class NoPlan(Exception):  # noqa: N818, nothing is wrong with the program
    """The reason why there is no plan for a target."""


class Search:
    """The depth-first search for a plan.

    Args:
        graph: The skills.
        held: The inventory: numbers by item.
        near: The things that are nearby.

    Attributes:
        steps: The plan so far.
    """

    def __init__(self, graph: SkillGraph, held: Mapping[str, int], near: Sequence[str]) -> None:
        self.graph, self.held, self.near = graph, Counter(held), set(near)
        self.steps: list[str] = []
        self.open: list[str] = []

    def do(self, skill: str) -> None:
        """Plan a skill, after everything that the skill needs.

        Raises:
            NoPlan: if it is impossible; the message gives the reason.
        """
        if skill in self.open:
            circle = (*self.open[self.open.index(skill) + 1 :], skill)
            raise NoPlan(f"To {skill} takes to {' and to '.join(circle)} first.")
        if len(self.steps) >= FAR:
            raise NoPlan(f"No end of the plan after {FAR} skills: what {self.open[0]} takes undoes itself.")
        entry = self.graph.entries[skill]
        self.open.append(skill)
        for thing, n in entry.consumes:
            self._get(thing, n)
            self.held[thing] -= n
        while True:
            short = self._short(entry)
            away = [thing for thing in entry.nearby if thing not in self.near]
            # Each of these may use up, or leave behind, what was there before, so all is checked again.
            if short is not None:
                self._get(*short)
            elif away:
                self._come(self._first(away))
            else:
                break
        self.open.pop()
        self.steps.append(skill)
        self._take(entry)

    def _short(self, entry: Entry) -> tuple[str, int] | None:
        return next(((thing, n) for thing, n in entry.requires if self.held[thing] < n), None)

    def _get(self, thing: str, n: int) -> None:
        while self.held[thing] < n:
            if thing not in self.graph.producers:
                raise NoPlan(f"Nothing obtains {thing}, which {self.open[-1]} takes.")
            self.do(self.graph.producers[thing])

    def _first(self, away: Sequence[str]) -> str:
        """Return the item to obtain first: one that no other needs nearby."""
        takers = {
            thing: self.graph.entries.get(self.graph.bringers.get(thing, ""), Entry()) for thing in away
        }
        free = (thing for thing in away if not any(thing in taker.nearby for taker in takers.values()))
        return next(free, away[0])

    def _come(self, thing: str) -> None:
        if thing not in self.graph.bringers:
            raise NoPlan(f"Nothing brings {thing}, which {self.open[-1]} has to have nearby.")
        self.do(self.graph.bringers[thing])

    def _take(self, entry: Entry) -> None:
        self.held.update(dict(entry.obtains))
        self.near = {*(() if entry.moves else self.near), *entry.brings}


def plan(graph: SkillGraph, target: str, held: Mapping[str, int], near: Sequence[str]) -> list[str]:
    """Return the skills that lead to a target, in order; the last one is the target.

    Raises:
        NoPlan: if there is no plan; the message gives the reason.
    """
    search = Search(graph, held, near)
    search.do(target)
    return search.steps


@dataclass(frozen=True, kw_only=True)
class Plan4MCConfig(PlannerConfig):
    """Settings of Plan4MC."""

    longest: PositiveInt = 100
    """Maximum skills per episode; then the agent must stop (our choice)."""
    replan: Literal["each", "retry", "never"] = "each"
    """Replan after each skill (each, paper), retry failed ones (retry), or follow the first plan (never)."""
    find: bool = True
    """Include skills that find things; off is the paper's ablation."""
    graph: EntryConfig = field(default_factory=EntryConfig)
    """How the model writes the skill graph; the default of max_tokens is 120, or more for a chat model."""


class Plan4MC(Planner):
    """The agent of Plan4MC.

    Args:
        lm: Writes the skill graph.
        skills: Skills in addition to the admissible actions, such as finding things.
        config: Settings; ``options`` change single ones.
        graph: The skill graph, if it is known; then the model is not asked for it.

    Raises:
        HunchError: if two skills have the same name.
    """

    config_class: ClassVar[type[Any]] = Plan4MCConfig

    def __init__(
        self,
        lm: LanguageModel,
        skills: Sequence[Skill] = (),
        config: Any = None,
        *,
        graph: SkillGraph | None = None,
        **options: Any,
    ) -> None:
        self.lm, self.known = lm, graph
        super().__init__(skills, config, **options)
        self.models = {"lm": lm}
        if graph is not None:  # it is not part of the options
            self.from_settings = False

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel], skills: Sequence[Skill] = ()) -> Plan4MC:
        """Make the agent; the model ``lm`` writes the skill graph."""
        return cls(models["lm"], skills, config)

    @property
    def wording(self) -> str:
        """The version of the prompts."""
        return WORDING

    def begin(self, world: World, seed: int) -> None:
        """Forget all plans; the model writes the graph when the first plan is needed."""
        super().begin(world, seed)
        self.manual = world.manual
        self.graph = self.known

    # ---- choosing a skill -----------------------------------------------------------------------------

    def choose(self, states: Sequence[State], rng: np.random.Generator) -> list[Choice]:
        """Choose the plan's next skill; without a plan stopping, or else any skill."""
        choices = []
        for state in states:
            menu = self.menu(state)
            names = list(menu)
            chosen = planned = self._next(state, menu)
            if self.config.stop in menu and (planned is None or self.must_stop(self.plan_of(state), menu)):
                chosen = self.config.stop
            if chosen is None:
                say = np.full(len(names), 1 / len(names))  # (skills,)
                chosen = names[int(self.rng_of(state.stream, 0).choice(len(names)))]
            else:
                say = np.array([float(name == chosen) for name in names])
            choices.append(Choice(menu[chosen], {"say": say, "score": say}, float(planned is None)))
        return choices

    def _next(self, state: State, menu: Mapping[str, Skill]) -> str | None:
        """Return the next skill of the plan, or None with the reason."""
        mine = self.plan_of(state)
        try:
            ahead = self._ahead(state, menu)
        except NoPlan as problem:
            mine.problem = str(problem)
            return None
        return ahead[0]

    def _ahead(self, state: State, menu: Mapping[str, Skill]) -> list[str]:
        """Return the rest of the plan, whose first skill can be tried here."""
        mine = self.plan_of(state)
        if len(mine.names) >= self.config.longest and self.config.stop not in menu:
            raise NoPlan(f"The target is not reached after {self.config.longest} skills.")
        if self.config.replan == "each" or not mine.names:
            mine.ahead = self._search(state)
        # How many skills of the kept plan are behind: none of a new plan, those that worked, or all tried.
        behind = {"each": 0, "retry": carried_out(mine), "never": len(mine.names)}[self.config.replan]
        left = mine.ahead[behind:]
        if not left:
            raise NoPlan("The plan is at its end, and the target is not reached.")
        if left[0] not in menu:
            raise NoPlan(f"Nobody can {left[0]} here.")
        return left

    def _search(self, state: State) -> list[str]:
        graph = self._graph(state)
        target = graph.target(state.task)
        if target is None:
            raise NoPlan(f"No skill is known that is the task, {state.task!r}.")
        if not hasattr(state.raw, "held") or not hasattr(state.raw, "near"):
            raise UsageError("Plan4MC needs State.raw.held and State.raw.near, as in hunch/Craft-v0.")
        skills = plan(graph, target, dict(state.raw.held), state.raw.near)
        return skills if self.config.find else [name for name in skills if not graph.entries[name].moves]

    def _graph(self, state: State) -> SkillGraph:
        """Return the skill graph, which the model writes on the first call."""
        if self.graph is None:
            names = [name for name in (*state.options, *self.skills) if name != self.config.stop]
            self.graph = extract(self.lm, self.manual, names, self.config.graph)
        return self.graph

    def menu(self, state: State) -> dict[str, Skill]:
        """Return the given skills, and each admissible action as a skill of one step."""
        self._graph(state)  # it knows what an action obtains
        return {**{action: attempt(action, self.graph) for action in state.options}, **self.skills}

    def _named(self, name: str) -> Skill:
        """Return the skill of that name, or the action as a skill."""
        return self.skills.get(name) or attempt(name, self.graph)

    # ---- telling --------------------------------------------------------------------------------------

    def player(self, seed: int) -> Plan4MC:
        """Return a player with the same planner, skills and graph, but separate randomness and plans."""
        twin = super().player(seed)
        assert isinstance(twin, Plan4MC)
        twin.manual, twin.graph = self.manual, self.graph
        return twin

    def twin(self) -> Plan4MC:
        """Return an agent with the same model, skills and given graph, not begun."""
        return type(self)(self.lm, tuple(self.skills.values()), self.config, graph=self.known)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of every planner, and the skill graph if it was given."""
        return {**super().settings, **({"graph": repr(self.known)} if self.known else {})}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every planner, and the skill graph as far as it is known."""
        return {**super().state_dict(), "graph": None if self.graph is None else self.graph.plain()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`; the model is not asked for the graph again."""
        graph = state.get("graph")  # checkpoints of earlier versions have none
        if graph is not None:
            self.graph = SkillGraph.of(graph)
        super().load_state_dict(state)

    def files(self) -> dict[str, str]:
        """Return the skill graph as the text of the file ``skill_graph.txt``."""
        if self.graph is None:
            return {}
        lines = (f"{name}: {entry}\n" for name, entry in self.graph.entries.items())
        return {"skill_graph.txt": "".join(lines)}


def carried_out(mine: Plan) -> int:
    """Return how many skills of a kept plan have worked, one after the other.

    Where the next one cannot be tried, another skill is drawn, which may work as well and is none of these.
    """
    count = 0
    for name, worked in zip(mine.names, mine.worked, strict=False):
        if worked and name in mine.ahead[count : count + 1]:
            count += 1
    return count


def attempt(action: str, graph: SkillGraph | None) -> Skill:
    """Return an action as a skill; it works if the action has an effect, and ends with its result."""
    entry = graph.entries.get(action) if graph else None
    brings = set(entry.brings) if entry and not entry.obtains else set[str]()

    def idle(state: State) -> bool:
        return bool(brings) and brings <= set(state.raw.near)

    def worked(t: Transition) -> bool:
        return bool(t.event)

    return Skill(
        action, lambda states: np.ones(len(states)), lambda _: FixedAction(action), worked, idle=idle
    )


METHOD = Method(
    "plan4mc",
    Plan4MC,
    "search a graph of skills that a model wrote once, and replan from the real inventory",
    "Yuan et al., Skill Reinforcement Learning and Planning for Open-World Long-Horizon Tasks, 2023",
    leaf="LLM4RL / planner",
    environments="the craft world with a target",
    reads={"raw"},
    models={"lm": ("generate",)},
    suggested=("openai:gpt-4o-mini", "scripted:recipes"),
    roles=("planner",),
    control="uniform planner",
    data="none",
    changeable=("replan", "find"),
)
