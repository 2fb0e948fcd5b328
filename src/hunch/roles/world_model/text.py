"""The world model role: predicts the result of an action.

======================== ==================================================================================
world model              how it predicts
======================== ==================================================================================
``InContextWorldModel``  a language model continues prompts of remembered steps (Brooks et al. 2023)
``LookUpWorldModel``     the most recent step with exactly the same state and action
======================== ==================================================================================

Models written as programs are in :mod:`hunch.envs.design.program_model` and
:mod:`hunch.roles.world_model.program`; the environment itself, and the evaluation of models, in
:mod:`hunch.rl.world_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from hunch.rl.world_model import LookUp, Prediction, Step, WorldModel
from hunch.roles.world_model.experience import Example, Experience
from hunch.roles.world_model.prompting import Blank, Completer

if TYPE_CHECKING:
    from hunch.envs.icpi.texts import Texts


class TextWorldModel(WorldModel, Protocol):
    """A world model over texts that is based on experience."""

    def ready(self, actions: Sequence[str]) -> bool:
        """Return whether the experience suffices to predict all of these actions."""


class InContextWorldModel:
    """A language model that completes a step, given remembered steps as examples.

    ========== ==================================== ==================
    prompt     examples                             balanced
    ========== ==================================== ==================
    end        steps with the same action           last steps, others
    reward     of these, the same predicted end     per reward
    next state of these, not the last steps         no
    ========== ==================================== ==================

    Without the action constraint, all steps are examples in all prompts. Each stage is one call of the model
    for all queries.

    Args:
        completer: The model, and how its prompts are made.
        experience: The remembered episodes.
        wording: The wording of the domain in prompts.
    """

    def __init__(self, completer: Completer, experience: Experience, wording: Texts) -> None:
        self.completer = completer
        self.config = completer.config
        self.wording = wording
        self.steps = list(chain.from_iterable(experience.episodes))
        self.epoch = len(experience.episodes)

    def step(
        self, states: Sequence[str], actions: Sequence[str], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Predict the ends, then the rewards, then the next states."""
        # Each part of a step is one question. Later parts are asked only where the earlier ones were read.
        cases = []
        for state, action, rng in zip(states, actions, rngs, strict=True):
            steps = self._only(self.steps, action=action)
            cases.append(_Case(question(state, action, self.wording), rng, steps, self.epoch))
        self._predict_ends(cases)

        cases_with_end = [case for case in cases if case.prediction.done is not None]
        self._predict_rewards(cases_with_end)

        cases_with_reward = [case for case in cases_with_end if case.prediction.reward is not None]
        self._predict_next_states([case for case in cases_with_reward if not case.prediction.done])
        return [case.prediction for case in cases]

    def ready(self, actions: Sequence[str]) -> bool:
        """Return whether there is an example of every action, and one of a next state."""
        shown = all(self._only(self.steps, action=action) for action in actions)
        return shown and any(self._only(self.steps, done=False))

    def _predict_ends(self, cases: Sequence[_Case]) -> None:
        """Predict whether each case is the end of its episode, from all steps with the action."""
        wording = self.wording
        options = [wording.done(True), wording.done(False)]
        blanks = []
        for case in cases:
            blank = case.blank(
                wording, case.steps, lambda step: wording.done(step.done), self._split("done"), options
            )
            blanks.append(blank)
        answers = self.completer.fill(blanks, wording.done_stop, wording.read_done)
        for case, done in zip(cases, answers, strict=True):
            case.prediction.done = done

    def _predict_rewards(self, cases: Sequence[_Case]) -> None:
        """Predict the reward of each case, from the steps that ended, or did not end, like it."""
        wording = self.wording
        options = list(dict.fromkeys(wording.reward(step.reward) for step in self.steps))  # those seen so far
        blanks = []
        for case in cases:
            steps = self._only(case.steps, done=case.prediction.done)
            blank = case.blank(
                wording, steps, lambda step: wording.reward(step.reward), self._split("reward"), options
            )
            blanks.append(blank)
        answers = self.completer.fill(blanks, wording.reward_stop, wording.read_reward)
        for case, reward in zip(cases, answers, strict=True):
            case.prediction.reward = reward

    def _predict_next_states(self, cases: Sequence[_Case]) -> None:
        """Predict the next state of each case, from the steps that did not end their episode."""
        wording = self.wording
        blanks = []
        for case in cases:
            steps = self._only(case.steps, done=False)
            blanks.append(case.blank(wording, steps, lambda step: step.next_state))
        answers = self.completer.fill(blanks, wording.state_stop, wording.read_state)
        for case, next_state in zip(cases, answers, strict=True):
            case.prediction.next_state = next_state

    def _only(self, steps: Sequence[Example], **values: Any) -> list[Example]:
        """Return the steps with these values, or all steps without constraint."""
        if not self.config.action_constraint:
            return list(steps)
        return [step for step in steps if all(getattr(step, name) == x for name, x in values.items())]

    def _split(self, name: str) -> Callable[[Example], Any] | None:
        """Return the key by which examples are grouped for balancing."""
        return attrgetter(name) if self.config.balance else None


@dataclass(slots=True)
class _Case:
    """A query, the steps that may be shown for it, and the predictions so far."""

    query: str
    rng: np.random.Generator
    steps: list[Example]
    epoch: int
    prediction: Prediction = field(default_factory=Prediction)

    def blank(
        self,
        wording: Texts,
        steps: Sequence[Example],
        tell: Callable[[Example], str],
        by: Callable[[Example], Any] | None = None,
        options: Sequence[str] = (),
    ) -> Blank:
        """Return a query for a part of the step, with examples that show that part."""
        groups: dict[Any, list[str]] = {}  # one group without a key to balance by
        for step in steps:
            group = by(step) if by else None
            groups.setdefault(group, []).append(example(step, tell(step), wording))
        return Blank(self.query, list(groups.values()), self.rng, self.epoch, options)


WORDING: Final = "f5ec42e5"
"""Version of how prompts are put together, here and in
:class:`~hunch.roles.world_model.prompting.Completer`; the words are those of the domain. Change it with them:
runs with different prompts are different runs."""


def question(state: str, action: str, wording: Texts) -> str:
    """Return the end of a prompt that asks for a part of a step: the end, the reward or the next state."""
    return state + wording.actions[action]


def example(step: Example, part: str, wording: Texts) -> str:
    """Return a remembered step as an example, with this part (``part``) at its end."""
    return question(step.state, step.action, wording) + part + "\n"


class LookUpWorldModel(LookUp):
    """The most recent step with the same state and action in the whole experience.

    Source: the baseline "Matching Model" of Brooks et al.

    Args:
        experience: The remembered episodes.
        wording: The wording of the domain; not used.
    """

    def __init__(self, experience: Experience, wording: Texts) -> None:
        self.steps = list(chain.from_iterable(experience.episodes))
        super().__init__(Step(s.state, s.action, s.reward, s.done, s.next_state) for s in self.steps)

    def ready(self, actions: Sequence[str]) -> bool:
        """Return whether there is a step with every action, and one with a next state."""
        return {step.action for step in self.steps}.issuperset(actions) and not all(
            s.done for s in self.steps
        )
