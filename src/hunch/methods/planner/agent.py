"""The planning loop: a skill is chosen, runs until it ends, and its outcome may be reported back.

    while the episode lasts
        choose a skill                                 each method in its own way: SayCan scores them
        run it, until it ends or its steps are used up
        tell the feedback of the open channels            appended to the transcript

SayCan has no feedback; Inner Monologue reports success and scene.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    FloatArray,
    HunchError,
    Player,
    State,
    Transition,
    World,
    weakest,
)
from hunch.methods.planner.plan import Plan, PlannerConfig
from hunch.methods.settings import configure
from hunch.roles.planner.skills import Channel, Skill, call_skill, refuse_twins, single


class Choice(NamedTuple):
    """The skill that is chosen in a state.

    Attributes:
        skill: The skill.
        scores: Columns to explain it, each of shape (skills in the menu,); ``score`` orders the skills.
        unread: Share of the model's answers that named no skill; nan if none could.
    """

    skill: Skill
    scores: Mapping[str, FloatArray]
    unread: float


class Planner(Agent):
    """An agent that chooses among skills. A subclass writes :meth:`menu`, :meth:`choose` and :meth:`twin`.

    Args:
        skills: The skills to choose from. Default: single actions.
        config: Settings; ``options`` change single ones.

    Attributes:
        channels: The channels of feedback that are open.

    Raises:
        HunchError: if two skills have the same name.
    """

    config_class: ClassVar[type[Any]] = PlannerConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "count", "counted", "fallbacks")
    channels: tuple[Channel, ...] = ()

    def __init__(self, skills: Sequence[Skill] = (), config: Any = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        refuse_twins(skills)
        self.skills = {skill.name: skill for skill in skills}
        self.from_settings = bool(self.config.skills) or not skills

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the planner and the skills."""
        return weakest((super().evidence, *(skill.evidence for skill in self.skills.values())))

    @property
    def settings(self) -> dict[str, Any]:
        """The config, the model, and digests of the runs of the skills instead of their folders."""
        origins = sorted({skill.origin or skill.name for skill in self.skills.values()})
        return {**super().settings, "skills": origins}

    def begin(self, world: World, seed: int) -> None:
        """Forget all plans."""
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.examples = world.examples
        self.plans: dict[int, Plan] = {}
        self.count: dict[int, int] = {}  # skills begun, by stream; each has its own random generator
        self.lines: list[dict[str, Any]] = []
        self.counted = 0  # records that metrics have covered
        self.fallbacks: list[float] = []

    # ---- choosing a skill -----------------------------------------------------------------------------

    @abstractmethod
    def menu(self, state: State) -> dict[str, Skill]:
        """Return the skills that can be chosen in a state, by name."""

    @abstractmethod
    def choose(self, states: Sequence[State], rng: np.random.Generator) -> list[Choice]:
        """Choose a skill for each state, with at most one call of the model for all of them."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose a skill in streams where none is running, and let the skills choose the actions."""
        waiting = [state for state in states if not self._runs(state)]
        rounds = 0
        while waiting:
            rounds += 1
            if rounds > 2 * self.config.longest:
                raise HunchError(
                    f"The planner has chosen {rounds - 1} skills in a row that had nothing to do, and cannot "
                    f"stop: {self.config.stop!r} is not among the actions. The setting stop names the one "
                    "that ends a plan."
                )
            choices = self.choose(waiting, self.rng)
            self.fallbacks += [choice.unread for choice in choices if not np.isnan(choice.unread)]
            for state, choice in zip(waiting, choices, strict=True):
                self.start(state, choice.skill)
            waiting = [state for state in waiting if not self._runs(state)]  # a skill may have nothing to do
        return [self._carry_out(state) for state in states]

    def _runs(self, state: State) -> bool:
        """Return whether a skill has something to do here; otherwise it has ended successfully."""
        plan = self.plan_of(state)
        if plan.skill is not None and plan.steps == 0 and call_skill(plan.skill, plan.skill.idle, state):
            self._end(plan, state, "", True)
        return plan.skill is not None

    def plan_of(self, state: State) -> Plan:
        """Return the plan of a stream; a change of the task is noticed if that channel is open."""
        plan = self.plans.setdefault(state.stream, Plan(state.task))
        if "person" in self.channels:
            plan.task = state.task
        return plan

    def _named(self, name: str) -> Skill:
        """Return the skill of that name, or the action as a skill."""
        return self.skills.get(name) or single(name)

    def must_stop(self, plan: Plan, menu: Mapping[str, Skill]) -> bool:
        """Return whether the plan is as long as allowed, and stopping is possible."""
        return self.config.stop in menu and len(plan.names) >= self.config.longest

    def rng_of(self, stream: int, use: int) -> np.random.Generator:
        """Return a separate random generator for each skill that is begun."""
        return np.random.default_rng([self.seed, stream, self.count.get(stream, 0), use])

    # ---- carrying it out ------------------------------------------------------------------------------

    def start(self, state: State, skill: Skill) -> None:
        """Begin a skill."""
        plan = self.plan_of(state)
        self.count[state.stream] = self.count.get(state.stream, 0) + 1
        if len(plan.names) >= self.config.longest and skill.name != self.config.stop:
            # It cannot stop, so the transcript begins anew with the last feedback.
            plan.feedback = plan.feedback[-1:]
            plan.names = []
            plan.worked = []
        plan.names.append(skill.name)
        plan.skill = skill
        plan.steps = 0
        plan.player = self._player_of(state.stream, skill)

    def _player_of(self, stream: int, skill: Skill) -> Player:
        seed = int(self.rng_of(stream, 1).integers(2**31))
        return call_skill(skill, skill.player, seed)

    def _carry_out(self, state: State) -> str:
        plan = self.plans[state.stream]
        assert plan.skill is not None
        assert plan.player is not None
        return call_skill(plan.skill, plan.player.act, [state])[0]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Pass transitions to the skills, and report to the planner when a skill ends."""
        for t in transitions:
            plan = self.plans.get(t.stream)
            if plan is None or plan.skill is None or plan.player is None:
                continue  # this player did not choose the step
            plan.steps += 1
            call_skill(plan.skill, plan.player.observe, [t])
            worked = bool(call_skill(plan.skill, plan.skill.over, t))
            if worked or t.done or plan.steps >= plan.skill.steps:
                self._end(plan, t.next_state, t.event, worked)
            if t.done:
                self._close(plan, t)

    def _end(self, plan: Plan, state: State, event: str, worked: bool) -> None:
        """Handle the end of a skill."""
        plan.worked.append(worked)
        plan.feedback.append(self.tell(plan, state, event, worked))
        plan.skill = plan.player = None

    def tell(self, plan: Plan, state: State, event: str, worked: bool) -> str:
        """Return the feedback for the planner on a skill that has ended. Default: none.

        Args:
            plan: The plan of the stream; the skill is its last one.
            state: The state in which the skill ended.
            event: What happened in the skill's last step.
            worked: True if the skill worked.
        """
        return ""

    def _close(self, plan: Plan, t: Transition) -> None:
        """Keep the transcript of a finished episode; a failure after a failed skill is one of execution."""
        failed_in = "plan" if plan.problem or all(plan.worked) else "execution"
        thought = {"explanation": plan.thought} if plan.thought else {}
        self.lines.append(
            {
                "stream": t.stream,
                "task": plan.task,
                "plan": list(plan.names),
                "worked": list(plan.worked),
                "told": list(plan.feedback),
                "success": t.success,
                "failure": "" if t.success else failed_in,
                "problem": plan.problem,
                **thought,
            }
        )
        del self.plans[t.stream]

    # ---- telling --------------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Return how episodes failed and how often skills worked since the last call; nothing is learnt."""
        metrics = dict[str, float]()
        if self.fallbacks:
            metrics["fallback_rate"] = float(np.mean(self.fallbacks))
            self.fallbacks = []
        episodes = self.lines[self.counted :]
        self.counted = len(self.lines)
        if episodes:
            worked = [skill_worked for line in episodes for skill_worked in line["worked"]]
            metrics["skills_worked"] = float(np.mean(worked))
            for why in ("plan", "execution"):
                metrics[f"failures_of_{why}"] = float(np.mean([line["failure"] == why for line in episodes]))
        return metrics

    @abstractmethod
    def twin(self) -> Planner:
        """Return an agent with the same planner and skills, not begun."""

    def player(self, seed: int) -> Planner:
        """Return a player with the same planner and skills, but separate randomness and plans."""
        twin = self.twin()
        twin.begin(World(examples=self.examples), seed)
        return twin

    def explain(self, state: State) -> Explanation:
        """Return the running skill, or the scores of the best skills and the chosen one."""
        plan = self.plans.get(state.stream)
        if plan is not None and plan.skill is not None:
            return Explanation(note=f"{plan.skill.name}, step {plan.steps + 1} of {plan.skill.steps}")
        plans = dict(self.plans)
        (choice,) = self.choose([state], np.random.default_rng(0))
        self.plans = plans
        names = list(self.menu(state))
        lines = [f"next skill: {choice.skill.name}"]
        for i in np.argsort(-choice.scores["score"], kind="stable")[:5]:
            columns = [f"{column} {p[i]:.3f}" for column, p in choice.scores.items() if column != "score"]
            lines.append(f"{names[i]}: {', '.join(columns)}")
        columns_of_actions = choice.scores if tuple(names) == state.options else {}
        return Explanation(columns_of_actions, note="\n".join(lines))

    def records(self) -> list[dict[str, Any]]:
        """Return one record per episode: its plan, what worked, the feedback, and why it failed."""
        return list(self.lines)

    # ---- state ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return plans, transcripts, and all random states."""
        plans = [[stream, plan.saved()] for stream, plan in self.plans.items()]
        return {**super().state_dict(), "lines": list(self.lines), "plans": plans}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.lines = list(state["lines"])
        self.plans = {stream: self._taken_up(stream, saved) for stream, saved in state["plans"]}

    def _taken_up(self, stream: int, saved: dict[str, Any]) -> Plan:
        """Restore a plan with the player of its skill."""
        plan = Plan(
            task=saved["task"],
            feedback=saved["told"],
            names=saved["names"],
            worked=saved["worked"],
            first=dict(saved["first"]),
            steps=saved["steps"],
            ahead=saved["ahead"],
            problem=saved["problem"],
            thought=saved.get("thought", ""),  # plans of earlier versions have none
            explained=saved.get("explained", ""),
        )
        name = saved["skill"]
        player = saved["player"]
        if name is not None:
            plan.skill = self._named(name)
            plan.player = self._player_of(stream, plan.skill)
            if player:
                plan.player.load_state_dict(player)
        return plan
