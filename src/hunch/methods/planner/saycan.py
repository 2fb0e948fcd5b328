"""SayCan: multiplies a skill's usefulness, from a language model, by its probability to work.

    thought    ~ a model that explains the instruction        only with an explainer (chain of thought)
    say(skill) = p(skill | instruction, thought, skills so far)   an action prior over the names of skills
    can(skill) = p(skill works | state)                       the skill's calibrated value
    run argmax say x can, ties at random; argmax say where no skill works at all
    stop instead after the longest plan, or where the model says that the task is done (``done_at``)

The planner gets no feedback on a skill; only the affordances see the state. The planner's model and the
factors of the score are settings, so all baselines use the same code. With an explainer, a model writes one
sentence about the instruction before the first skill is chosen, and the planner reads it with the
instruction: SayCan with chain of thought, as in the paper. With ``examples``, the planner reads plans of
other instructions first, as the paper's model does. Source: Ahn et al., "Do As I Can, Not As I Say:
Grounding Language in Robotic Affordances", CoRL 2022, and the released tabletop notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, HunchError, State, UsageError, weakest
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.base import LanguageModel
from hunch.lm.decision import DecisionQuestion
from hunch.methods.method import PROPOSES, Method
from hunch.methods.planner.agent import Choice, Planner
from hunch.methods.planner.examples import build_scorer, shown_to
from hunch.methods.planner.plan import Plan, PlannerConfig
from hunch.methods.settings import models_of
from hunch.ranges import LATER, NonNegativeInt, PositiveInt, Share
from hunch.roles.planner.skills import ASKS, Skill, call_skill, single
from hunch.roles.prior.base import ActionPrior, DistributionPrior
from hunch.roles.prior.kinds import PriorConfig
from hunch.roles.prior.language import DecisionPrior

SCORED: Final[Mapping[str, Any]] = {
    "leaf": "LLM4RL / planner",
    "reads": {"raw"},  # for trained skills
    "optional": {"raw"},
    "models": {"lm": PROPOSES, "explainer": ("generate",)},
    "separate": {"explainer"},
    "lm": "minilm",
    "roles": ("planner",),
    "control": "uniform planner",
    "data": "none",
}
"""Entries that the :class:`~hunch.methods.method.Method` of each method that scores skills shares."""
EXPLAINING: Final = """\
The skills of a robot:
{skills}
A person says to the robot: {task}
In one short sentence: what does the person want, and which of these things does it take?
Explanation:"""
"""The request for an explanation; the skills are one per line."""
THOUGHT: Final = 48
"""Maximum tokens of an explanation (ours)."""
ROUNDING: Final = 1e-12
"""Share by which scores may differ that count as equal."""
BEYOND: Final = 1e-6
"""How far from 0 to 1 a probability may lie, which is rounding in 32 bits."""
DONE: Final = DecisionQuestion("yes_no", "Is the task done?")
"""The question to a decision model beside the choice of a skill, with ``done_at``."""


@dataclass(frozen=True, kw_only=True)
class SayCanConfig(PlannerConfig):
    """Settings of SayCan."""

    score: Literal["product", "say", "can"] = "product"
    """Score of a skill: the planner's probability (say), the skill's value (can), or the product (paper)."""
    affordance: Literal["each", "once"] = "each"
    """Compute the values of skills in each state (each, paper), or once per episode (once, notebook)."""
    pick: Literal["best", "draw"] = "best"
    """Take the skill with the best score (paper), or draw one in proportion to the scores."""
    stop_can: Share = 0.2
    """Probability that the stop skill works, from 0 to 1 (released notebook)."""
    samples: PositiveInt = 5
    """Answers per state, whose shares estimate p(skill), for a model that can only generate (our choice)."""
    done_at: Share | None = field(default=None, metadata=LATER)
    """Stop where a decision model gives a yes to "Is the task done?" at least this probability (ours). The
    question is part of the request that chooses the skill. None: the model has to choose the stop skill."""
    explainer: str = field(default="", metadata=LATER)
    """Model that explains each instruction in a sentence, which the planner reads before it plans (chain of
    thought). Default: none."""
    blank: bool = field(default=False, metadata=LATER)
    """Leave the instruction and the examples of plans out of what the planner reads: a control. A planner
    that does no worse without them does not read them."""
    uninstructed: bool = field(default=False, metadata=LATER)
    """Leave out the instruction, and keep the examples of plans: a control. A planner that does no worse
    without it follows the examples alone."""
    examples: NonNegativeInt = field(default=0, metadata=LATER)
    """Examples of plans that a model which writes or scores reads before the instruction, if the environment
    has any (paper: 17). An encoder compares the instruction with as many, or with all of them (0)."""
    prior: PriorConfig = field(default_factory=lambda: PriorConfig(normalise="sum"))
    """How the language model becomes a planner."""


class SayCan(Planner):
    """The planner that scores skills and gets no feedback.

    Args:
        prior: Scores the names of skills, given task and transcript.
        skills: The skills to choose from. Default: single actions.
        config: Settings; ``options`` change single ones.
        explainer: The model that explains instructions; None for no explanations.

    Raises:
        HunchError: if two skills have the same name.
    """

    config_class: ClassVar[type[Any]] = SayCanConfig
    examples_report: bool = False
    """True if the examples of plans tell after each skill whether it worked."""

    def __init__(
        self,
        prior: ActionPrior,
        skills: Sequence[Skill] = (),
        config: Any = None,
        explainer: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        super().__init__(skills, config, **options)
        self.prior = prior
        self.explainer = explainer
        if explainer is not None:
            asks = AskConfig(temperature=0.0)
            self.explaining = Asking(explainer, asks, tokens=THOUGHT, role="planner")
        if self.config.done_at is not None:
            if not isinstance(prior, DecisionPrior):
                raise UsageError(
                    "done_at asks a decision model, by --prior.way decision; this one is not asked so."
                )
            prior.ask_beside((DONE,))
        self.models = models_of(lm=prior)
        if explainer is not None:
            self.models["explainer"] = explainer

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel], skills: Sequence[Skill] = ()) -> SayCan:
        """Make the agent; the model ``lm`` becomes the planner."""
        explainer = models.get("explainer") if config.explainer else None
        return cls(build_scorer(config.prior, models["lm"]), skills, config, explainer)

    def twin(self) -> SayCan:
        """Return an agent with the same planner and skills, not begun."""
        return type(self)(self.prior, tuple(self.skills.values()), self.config, self.explainer)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the models and the skills; a rule without a model has one, too."""
        explains = self.explainer.evidence if self.explainer is not None else None
        return weakest((self.prior.evidence, explains, super().evidence))

    def menu(self, state: State) -> dict[str, Skill]:
        """Return the skills that can be chosen in a state, by name."""
        actions: Sequence[str] = state.options
        if self.skills:  # then the only actions are to stop, and to ask a person
            asks = "question" in self.channels
            actions = [a for a in actions if a == self.config.stop or (asks and a.startswith(ASKS))]
        menu = dict(self.skills)
        for action in actions:
            can = self.config.stop_can if action == self.config.stop else 1.0
            menu[action] = single(action, can)
        return menu

    def choose(self, states: Sequence[State], rng: np.random.Generator) -> list[Choice]:
        """Choose the skill with the best score in each state."""
        menus = [self.menu(state) for state in states]
        self._explain(states, menus)
        shown = [
            self.plan_of(state).state(state.stream, list(menu), self.examples)
            for state, menu in zip(states, menus, strict=True)
        ]
        shown = shown_to(
            self.prior,
            shown,
            examples=self.config.examples,
            blank=self.config.blank,
            uninstructed=self.config.uninstructed,
            reported=self.examples_report,
        )
        says, unread = self._say(shown, menus, rng)
        done = self._done(shown)
        choices = []
        for state, menu, say, share, is_done in zip(
            states, menus, says, unread, done, strict=True
        ):  # say: (skills,)
            plan = self.plan_of(state)
            can = self._can(plan, state, menu)  # (skills,)
            # score(skill) = say(skill) can(skill)
            score = {"product": say * can, "say": say, "can": can}[self.config.score]
            if self.must_stop(plan, menu) or (is_done and self.config.stop in menu):
                name = self.config.stop
            else:
                # Where nothing that the planner says can work, it decides alone.
                best = self._pick(score if score.any() else say, self.rng_of(state.stream, 0))
                name = list(menu)[best]
            choices.append(Choice(menu[name], {"say": say, "can": can, "score": score}, share))
        return choices

    def _explain(self, states: Sequence[State], menus: Sequence[Mapping[str, Skill]]) -> None:
        """Let the explainer explain each task that is new to its plan, with one call for all."""
        if self.explainer is None:
            return
        plans = [self.plan_of(state) for state in states]
        due = [i for i, plan in enumerate(plans) if plan.explained != plan.task]
        prompts = [
            EXPLAINING.format(skills="\n".join(f"- {name}" for name in menus[i]), task=plans[i].task)
            for i in due
        ]
        for i, [answer] in zip(due, self.explaining.generate(prompts), strict=True):
            lines = [line.strip() for line in answer.splitlines() if line.strip()]
            plans[i].thought = lines[0] if lines else ""
            plans[i].explained = plans[i].task

    def _done(self, shown: Sequence[State]) -> list[bool]:
        """Return whether the model says that the task of each of the planner's states is done."""
        if self.config.done_at is None or not isinstance(self.prior, DecisionPrior):
            return [False] * len(shown)
        # p(yes); the answer came with the choice of the skill.
        return [float(yes_no[0]) >= self.config.done_at for [yes_no] in self.prior.answers(shown)]

    def _say(
        self, shown: Sequence[State], menus: Sequence[Mapping[str, Skill]], rng: np.random.Generator
    ) -> tuple[list[FloatArray], list[float]]:
        """Return p(skill | task, transcript) for each planner's state, and the shares of unread answers."""
        k = None if isinstance(self.prior, DistributionPrior) else self.config.samples
        proposals = self.prior.propose(shown, k, rng)
        says = []
        for menu, proposal in zip(menus, proposals, strict=True):
            say = proposal.named(len(menu))  # (skills,)
            if not say.any():  # no answer could be read: then nothing is preferred
                say[:] = 1 / len(menu)
            says.append(say)
        return says, [proposal.fallbacks for proposal in proposals]

    def _can(self, plan: Plan, state: State, menu: Mapping[str, Skill]) -> FloatArray:
        """Return the probability that each skill works now, or when it could first be chosen."""
        if self.config.affordance == "once" and plan.first:
            new = {name: skill for name, skill in menu.items() if name not in plan.first}
            plan.first |= {name: self._works(skill, state) for name, skill in new.items()}
            return np.array([plan.first[name] for name in menu])
        return np.array([self._works(skill, state) for skill in menu.values()])

    def _works(self, skill: Skill, state: State) -> float:
        """Return the probability that a skill works in a state.

        Raises:
            HunchError: if the skill gives no probability, as a raw value of a state may be none.
        """
        can = float(call_skill(skill, skill.can, [state])[0])
        if not -BEYOND <= can <= 1 + BEYOND:  # nan is refused, too
            raise HunchError(f"The skill {skill.name!r} works with a probability from 0 to 1, not {can}.")
        return min(max(can, 0.0), 1.0)

    def _pick(self, score: FloatArray, rng: np.random.Generator) -> int:
        """Return the best option with ties at random, or one drawn in proportion."""
        if self.config.pick == "draw":
            return int(rng.choice(len(score), p=score / score.sum()))
        # Equal up to rounding. The scores may all be tiny, so the tolerance is a share of the largest.
        return int(rng.choice(np.flatnonzero(score >= score.max() * (1 - ROUNDING))))

    def start(self, state: State, skill: Skill) -> None:
        """Begin a skill; the values of all are kept if they are computed once per episode."""
        plan = self.plan_of(state)
        if self.config.affordance == "once" and not plan.first:
            menu = self.menu(state)
            plan.first = dict(zip(menu, self._can(plan, state, menu).tolist(), strict=True))
        super().start(state, skill)


METHOD = Method(
    "saycan",
    SayCan,
    "choose a skill by its usefulness, from a language model, times its probability of success",
    "Ahn et al., Do As I Can, Not As I Say: Grounding Language in Robotic Affordances, CoRL 2022",
    **SCORED,
    changeable=("score", "affordance", "pick", "blank", "uninstructed", "prior"),
)
