"""Constitutional AI: a model criticises and revises answers by principles, and then compares answers.

Algorithm (Bai et al., "Constitutional AI: Harmlessness from AI Feedback", 2022)::

    1. repeat drafts times:  y ~ pi(. | x);  repeat revisions times
           critique  ~  judge(what in y breaks the principle? | x, y, principle)
           y         ~  judge(y again, so that it keeps the principle | x, y, critique)
       ascend on  log pi(y | x)                                              supervised, SL-CAI
    2. pairs of pi; labels=mixed: half of them are compared by helpfulness (here the
       environment's reward with noise), half by the judge for a principle
       RLHF with a reward model fitted to both halves                          RL-CAI

A principle is drawn for each answer and each pair. The second stage is :mod:`hunch.methods.tune.rlhf` without
changes. Controls: irrelevant principles (another file), ``critique=false`` (revision
without a critique before it), ``labels=gold``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from hunch.core import EvidenceLevel, HunchWarning, State, Transition, UsageError, World, weakest
from hunch.lm.answers.lines import spoken
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.base import LanguageModel
from hunch.lm.speech import text_of
from hunch.methods.tune.rlhf import METHOD as RLHF_METHOD
from hunch.methods.tune.rlhf import RLHF, SHOWN, RLHFConfig
from hunch.ranges import PositiveInt
from hunch.rl.policy import Decision, taken
from hunch.roles.reward.preferences import PRINCIPLES, read_principles

MARK: Final = "Revision:"
"""Beginning of the line that holds the revision, in an answer of the judge."""
NOTHING: Final = ("none", "nothing", "no part")
"""Beginnings of critiques that find nothing to criticise."""


@dataclass(frozen=True, kw_only=True)
class ConstitutionalConfig(RLHFConfig):
    """Settings of Constitutional AI."""

    drafts: PositiveInt = 512
    """Answers that are criticised, written in the first steps of the run (ours; paper: 182,831 prompts)."""
    revisions: PositiveInt = 1
    """Critiques and revisions per answer (paper: 4)."""
    critique: bool = True
    """Ask for a critique before each revision. If off, the revision is written at once (control)."""
    demonstrations: PositiveInt = 200
    """Updates on the revised answers (our choice)."""
    compare: bool = True
    """Run the second stage. If off, the model only imitates the revisions."""
    labels: str = "mixed"
    """Source of comparisons in the second stage: mixed, judge, gold or shuffled."""
    judge: str = "uniform"
    """Model that criticises, revises and compares."""


class Constitutional(RLHF):
    """The agent of Constitutional AI; arguments as for :class:`~hunch.methods.tune.rlhf.RLHF`."""

    config_class: ClassVar[type[Any]] = ConstitutionalConfig
    rate = 1e-3
    saved = (*RLHF.saved, "answers", "revised", "learnt")
    config: ConstitutionalConfig

    def __init__(self, config: Any = None, judge: LanguageModel | None = None, **options: Any) -> None:
        super().__init__(config, judge, **options)
        if judge is None:
            raise UsageError("constitutional needs a model that criticises: name one as judge.")
        self.judging = judge
        file = self.config.principles
        self.principles = read_principles(file) if file else PRINCIPLES
        self.asking = Asking(judge, AskConfig(), tokens=128, stop=(), role="reviser")
        self.models = {**self.models, "judge": judge}

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check settings before loading, as RLHF does, and that the principles can be read."""
        super().check(replace(config, principles=""), specs)
        if config.principles:
            read_principles(config.principles)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest level of the policy, the reward model and the judge."""
        return weakest([super().evidence, self.judging.evidence])

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of RLHF, and the version of the questions."""
        return {**super().settings, "wording": QUESTION_WORDING}

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and begin with drafts."""
        # Drafts, and what is learnt: plain states, from which the prompts can be made again, each with the
        # fields of a decision.
        self.answers: list[tuple[Any, ...]] = []
        self.learnt: list[tuple[Any, ...]] = []
        self.revised = False
        super().begin(world, seed)

    def require(self, steps: int) -> None:
        """Check that the run is long enough for the last stage."""
        needed = self.config.drafts
        if self.config.compare:
            needed += 2 * self.config.pairs * self.config.rounds
        if 0 < steps < needed + self.config.compare:  # and one more for the second stage
            raise UsageError(f"Drafts and pairs need {needed:,} steps, and the run has {steps:,}: set more.")

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Collect drafts, and later the pairs and texts of the second stage."""
        if not self.revised:
            self.answers += [(t.state.plain(), *taken(self.agent.decided, t)) for t in transitions]
            self.played += len(transitions)
        elif self.config.compare:
            super().observe(transitions)

    def learn(self) -> dict[str, float]:
        """Revise the drafts when there are enough, or make an update of the current stage."""
        if not self.revised:
            return self.revise() if len(self.answers) >= self.config.drafts else {}
        return super().learn() if self.config.compare else {}

    def revise(self) -> dict[str, float]:
        """Revise all drafts, and train the model on the results."""
        answers = self.answers[: self.config.drafts]
        states = [State.of(state) for state, *_ in answers]
        drafts = [Decision(*draft) for _, *draft in answers]
        # 1. y <- the judge's revision of y, several times
        texts = [draft.text for draft in drafts]
        for _ in range(self.config.revisions):
            texts = self.improved(states, texts)
        known = []
        for state, text in zip(states, texts, strict=True):
            known += [text_of(self.agent.policy.prompt(state)), text]
        self.agent.lm.take(known)  # a growing vocabulary adds their words
        changed = 0
        too_long = 0
        for state, draft, text in zip(states, drafts, texts, strict=True):
            learnt = draft  # its tokens as they were drawn: a draft that was cut has no end
            if text != draft.text and not self.fits(state, text):
                too_long += 1
            elif text != draft.text:
                learnt = Decision(text)
                changed += 1
            self.learnt.append((state.plain(), *learnt))
            if len(self.learnt) <= SHOWN:
                self.samples.append({"prompt": state.observation, "draft": draft.text, "text": learnt.text})
        if too_long:
            warnings.warn(
                f"{too_long:,} of {len(texts):,} revisions do not fit into what {self.agent.lm.name} reads, "
                "so their drafts are learnt as they are.",
                HunchWarning,
                stacklevel=2,
            )

        # 2. ascend on log pi(y | x)
        self.agent.texts = self.prompts_and_texts()
        self.answers = []
        self.revised = True
        loss = 0.0
        for _ in range(self.config.demonstrations):
            loss = self.imitate()["loss"]
        return {"loss": loss, "revised": changed / len(drafts)}

    def fits(self, state: State, text: str) -> bool:
        """Return whether the model can read a revision after its prompt."""
        lm = self.agent.lm
        prompt = self.agent.policy.prompt(state)
        try:
            lm.require_room([prompt], [lm.as_written([prompt], [text])[0].tokens])
        except UsageError:
            return False
        return True

    def prompts_and_texts(self) -> list[tuple[Any, str | Decision]]:
        """Return the prompts, and the decision that is learnt after each of them."""
        pairs: list[tuple[Any, str | Decision]] = []
        for state, *decision in self.learnt:
            pairs.append((self.agent.policy.prompt(State.of(state)), Decision(*decision)))
        return pairs

    def improved(self, states: Sequence[State], texts: Sequence[str]) -> list[str]:
        """Return each text after a critique and a revision; unchanged if there is none.

        Raises:
            UsageError: if no answer of the judge holds a revision.
        """
        principles = [self.principles[i] for i in self.rng.integers(len(self.principles), size=len(texts))]
        questions = [
            question(state, text, principle)
            for state, text, principle in zip(states, texts, principles, strict=True)
        ]
        critiques = self.criticised(questions)
        due = [i for i, critique in enumerate(critiques) if critique is not None]
        answers = self.written([f"{questions[i]}{critiques[i]}{REVISE}" for i in due])
        revisions = [revision(answer) for answer in answers]
        self.asking.hear(answers, revisions, abstains=True)
        if due and not any(revisions) and getattr(self.judging, "speaks", True):
            raise UsageError(
                f"{self.judging.name} wrote no revision in {len(due):,} answers, such as "
                f"{answers[0][:60]!r}: one has to hold a line that begins with {MARK}"
            )
        improved = list(texts)
        for i, revised in zip(due, revisions, strict=True):
            improved[i] = revised or texts[i]
        return improved

    def criticised(self, questions: Sequence[str]) -> list[str | None]:
        """Return the critique that follows each question, empty without critiques; None if all is well."""
        if not self.config.critique:
            return [""] * len(questions)
        critiques: list[str | None] = []
        for answer in self.written([f"{text}{CRITICISE}" for text in questions]):
            line = next(iter(spoken(answer).strip().splitlines()), "")
            well = line.lower().startswith(NOTHING)
            critiques.append(None if well else f"\nCritique: {line}")
        return critiques

    def written(self, prompts: Sequence[str]) -> list[str]:
        """Return the judge's answer to each prompt."""
        if not prompts:
            return []
        return [answers[0] for answers in self.asking.generate(prompts)]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict({"learnt": [], **state})  # earlier versions did not save it
        if self.learnt:
            self.agent.texts = self.prompts_and_texts()


QUESTION_WORDING: Final = "970e53f6"
"""Version of the words of :func:`question`, ``CRITICISE`` and ``REVISE``. Change it with them: runs with
different words are different runs."""


def question(state: State, text: str, principle: str) -> str:
    """Return the common beginning of the requests for a critique and a revision."""
    request = f"{state.aim}\n{state.text()}".strip()
    return f"Request: {request}\nAnswer: {text}\nPrinciple: {principle}"


CRITICISE: Final = "\nSay in one line which part of the answer breaks the principle, or none.\nCritique:"
REVISE: Final = f"\nWrite the whole answer again so that it keeps the principle, in one line after {MARK}\n"


def revision(answer: str) -> str | None:
    """Return the revision in an answer; None if there is none."""
    _, mark, rest = spoken(answer).rpartition(MARK)
    if not mark:
        return None
    return next(iter(rest.strip().splitlines()), "") or None


METHOD = replace(
    RLHF_METHOD,
    name="constitutional",
    agent_class=Constitutional,
    summary="a model criticises and revises answers by principles, and then compares answers for RLHF",
    paper="Bai et al., Constitutional AI: Harmlessness from AI Feedback, 2022",
    roles=("policy", "critic", "reward source"),
    control="principles without relation to the aim, no critique, gold labels",
)
