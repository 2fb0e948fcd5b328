"""The planning loop: a planner scores skills, the best one runs, and its outcome may be reported back.

    while the episode lasts
        say   p(skill | task, transcript)              an action prior over the names of skills
        can   p(skill works | state)                   the skill's calibrated value
        run   argmax say x can, until it ends or its steps are used up
        tell  the feedback of the enabled channels        appended to the transcript

SayCan has no feedback; Inner Monologue reports success and scene. The planner's model and the
factors of the score are settings, so all baselines use the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    FloatArray,
    Player,
    State,
    Transition,
    World,
    weakest,
)
from hunch.lm.base import LanguageModel
from hunch.methods.method import PROPOSES
from hunch.methods.planner.examples import build_scorer
from hunch.methods.planner.plan import Plan, PlannerConfig
from hunch.methods.settings import configure, models_of
from hunch.roles.planner.skills import ASKS, Detector, Skill, call_skill, feedback, refuse_twins, single
from hunch.roles.prior.base import ActionPrior, DistributionPrior

PLANNER: Mapping[str, Any] = {
    "leaf": "LLM4RL / planner",
    "reads": {"raw"},  # for trained skills
    "optional": {"raw"},
    "models": {"lm": PROPOSES},
    "lm": "minilm",
    "roles": ("planner",),
    "control": "uniform planner",
    "data": "none",
}
"""Entries that the :class:`~hunch.methods.method.Method` of each of these methods shares."""


class Planner(Agent):
    """The agent that plans over skills.

    Args:
        prior: Scores the names of skills, given task and transcript.
        skills: The skills to choose from. Default: single actions.
        config: Settings; ``options`` change single ones.

    Raises:
        HunchError: if two skills have the same name.
    """

    config_class: ClassVar[type[Any]] = PlannerConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "count", "counted", "fallbacks")

    def __init__(
        self,
        prior: ActionPrior,
        skills: Sequence[Skill] = (),
        config: Any = None,
        **options: Any,
    ) -> None:
        self.config = configure(type(self), config, options)
        self.prior = prior
        refuse_twins(skills)
        self.skills = {skill.name: skill for skill in skills}
        self.given = None if self.config.skills else (skills or None)
        self.models = models_of(lm=prior)
        self.detector = Detector(
            false_positives=self.config.false_positives, false_negatives=self.config.false_negatives
        )

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel], skills: Sequence[Skill] = ()) -> Planner:
        """Make the agent; the model ``lm`` becomes the planner."""
        return cls(build_scorer(config.prior, models["lm"]), skills, config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the planner and the skills."""
        return weakest((self.prior.evidence, *(skill.evidence for skill in self.skills.values())))

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

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose a skill in streams where none is running, and let the skills choose the actions."""
        waiting = [state for state in states if not self._runs(state)]
        while waiting:
            choices, fallbacks = self._choose(waiting, self.rng)  # one call of the model for all streams
            self.fallbacks += fallbacks
            for state, (skill, _) in zip(waiting, choices, strict=True):
                self._start(state, skill)
            waiting = [state for state in waiting if not self._runs(state)]  # a skill may have nothing to do
        return [self._carry_out(state) for state in states]

    def _runs(self, state: State) -> bool:
        """Return whether a skill has something to do here; otherwise it has ended successfully."""
        plan = self._plan(state)
        if plan.skill is not None and plan.steps == 0 and call_skill(plan.skill, plan.skill.idle, state):
            self._end(plan, state, "", True)
        return plan.skill is not None

    def _plan(self, state: State) -> Plan:
        """Return the plan of a stream; a change of the task is noticed if that channel is open."""
        plan = self.plans.setdefault(state.stream, Plan(state.task))
        if "person" in self.config.feedback:
            plan.task = state.task
        return plan

    def menu(self, state: State) -> dict[str, Skill]:
        """Return the skills that can be chosen in a state, by name."""
        actions: Sequence[str] = state.options
        if self.skills:  # then the only actions are to stop, and to ask a person
            asks = "question" in self.config.feedback
            actions = [a for a in actions if a == self.config.stop or (asks and a.startswith(ASKS))]
        can = {action: self.config.stop_can if action == self.config.stop else 1.0 for action in actions}
        return {**self.skills, **{action: single(action, can[action]) for action in actions}}

    def _named(self, name: str) -> Skill:
        """Return the skill of that name, or the action as a skill."""
        return self.skills.get(name) or single(name)

    def _choose(
        self, states: Sequence[State], rng: np.random.Generator
    ) -> tuple[list[tuple[Skill, dict[str, FloatArray]]], list[float]]:
        """Choose a skill for each state; return its scores and the shares of unreadable answers, too."""
        menus = [self.menu(state) for state in states]
        says, fallbacks = self._say(states, menus, rng)
        choices = []
        for state, menu, say in zip(states, menus, says, strict=True):  # say: (skills,)
            plan = self._plan(state)
            can = self._can(plan, state, menu)  # (skills,)
            score = {"product": say * can, "say": say, "can": can}[self.config.score]
            names = list(menu)
            if self.config.stop in menu and len(plan.names) >= self.config.longest:
                chosen = self.config.stop
            else:  # where nothing that the planner says can work, it decides alone
                chosen = names[self._pick(score if score.any() else say, self._rng(state.stream, 0))]
            choices.append((menu[chosen], {"say": say, "can": can, "score": score}))
        return choices, fallbacks

    def _say(
        self, states: Sequence[State], menus: Sequence[Mapping[str, Skill]], rng: np.random.Generator
    ) -> tuple[list[FloatArray], list[float]]:
        """Return p(skill | task, transcript) for each state, with one call for all streams."""
        shown = [
            self._plan(state).state(state.stream, list(menu), self.examples)
            for state, menu in zip(states, menus, strict=True)
        ]
        k = None if isinstance(self.prior, DistributionPrior) else self.config.samples
        proposals = self.prior.propose(shown, k, rng)
        says = []
        for menu, proposal in zip(menus, proposals, strict=True):
            say = np.zeros(len(menu))
            say[proposal.indices] = proposal.weights
            says.append(say)
        return says, [p.fallbacks for p in proposals if not np.isnan(p.fallbacks)]

    def _can(self, plan: Plan, state: State, menu: Mapping[str, Skill]) -> FloatArray:
        """Return the probability that each skill works now, or at the beginning of the episode."""
        if self.config.affordance == "once" and plan.first:
            return np.array([plan.first.get(name, 0.0) for name in menu])
        return np.array([float(call_skill(skill, skill.can, [state])[0]) for skill in menu.values()])

    def _pick(self, score: FloatArray, rng: np.random.Generator) -> int:
        """Return the best option with ties at random, or one drawn in proportion."""
        if self.config.pick == "draw":
            return int(rng.choice(len(score), p=score / score.sum()))
        return int(rng.choice(np.flatnonzero(score >= score.max() - 1e-12)))

    def _rng(self, stream: int, use: int) -> np.random.Generator:
        """Return a separate random generator for each skill that is begun."""
        return np.random.default_rng([self.seed, stream, self.count.get(stream, 0), use])

    # ---- carrying it out ------------------------------------------------------------------------------

    def _start(self, state: State, skill: Skill) -> None:
        plan = self._plan(state)
        if self.config.affordance == "once" and not plan.first:
            menu = self.menu(state)
            plan.first = dict(zip(menu, self._can(plan, state, menu).tolist(), strict=True))
        self.count[state.stream] = self.count.get(state.stream, 0) + 1
        if len(plan.names) >= self.config.longest and skill.name != self.config.stop:
            plan.told = [plan.told[-1]]  # it cannot stop: the transcript begins anew with the last feedback
            plan.names = []
            plan.worked = []
        plan.names.append(skill.name)
        plan.skill = skill
        plan.steps = 0
        plan.player = self._player_of(state.stream, skill)

    def _player_of(self, stream: int, skill: Skill) -> Player:
        seed = int(self._rng(stream, 1).integers(2**31))
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
        plan.told.append(self.tell(plan, state, event, worked))
        plan.skill = plan.player = None

    def tell(self, plan: Plan, state: State, event: str, worked: bool) -> str:
        """Return the feedback for the planner on a skill that has ended.

        Args:
            plan: The plan of the stream; the skill is its last one.
            state: The state in which the skill ended.
            event: What happened in the skill's last step.
            worked: True if the skill worked.
        """
        said = self.detector(worked, self._rng(state.stream, 2))
        return feedback(self.config.feedback, said, state, plan.names[-1], event)

    def _close(self, plan: Plan, t: Transition) -> None:
        """Keep the transcript of a finished episode; a failure after a failed skill is one of execution."""
        failed_in = "plan" if plan.problem or all(plan.worked) else "execution"
        self.lines.append(
            {
                "stream": t.stream,
                "task": plan.task,
                "plan": list(plan.names),
                "worked": list(plan.worked),
                "told": list(plan.told),
                "success": t.success,
                "failure": "" if t.success else failed_in,
                "problem": plan.problem,
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

    def player(self, seed: int) -> Planner:
        """Return a player with the same planner and skills, but separate randomness and plans."""
        twin = self._twin()
        twin.begin(World(examples=self.examples), seed)
        return twin

    def _twin(self) -> Planner:
        return type(self)(self.prior, tuple(self.skills.values()), self.config)

    def explain(self, state: State) -> Explanation:
        """Return the running skill, or the scores of all skills and the chosen one."""
        plan = self.plans.get(state.stream)
        if plan is not None and plan.skill is not None:
            return Explanation(note=f"{plan.skill.name}, step {plan.steps + 1} of {plan.skill.steps}")
        known = dict(self.plans)
        ((skill, figures),), _ = self._choose([state], np.random.default_rng(0))
        self.plans = known
        names = list(self.menu(state))
        order = np.argsort(-figures["score"], kind="stable")[:5]
        lines = [f"{names[i]}: say {figures['say'][i]:.3f}, can {figures['can'][i]:.2f}" for i in order]
        columns = figures if tuple(names) == state.options else {}
        return Explanation(columns, note="\n".join([f"next skill: {skill.name}", *lines]))

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
        self.plans = {stream: self._taken_up(stream, dict(saved)) for stream, saved in state["plans"]}

    def _taken_up(self, stream: int, saved: dict[str, Any]) -> Plan:
        """Restore a plan with the player of its skill."""
        name, player = saved.pop("skill"), saved.pop("player")
        plan = Plan(
            **{key: value for key, value in saved.items() if key != "first"}, first=dict(saved["first"])
        )
        if name is not None:
            plan.skill = self._named(name)
            plan.player = self._player_of(stream, plan.skill)
            if player:
                plan.player.load_state_dict(player)
        return plan
