"""The in-context policy role: chooses actions by the example of remembered episodes.

======================== ==================================================================================
policy                   how it chooses
======================== ==================================================================================
``InContextPolicy``      a language model continues prompts of remembered episodes (Brooks et al. 2023)
``LookUpPolicy``         the action of the most recent step with exactly the same state
======================== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

from hunch.roles.world_model.experience import Episode, Experience, gained
from hunch.roles.world_model.prompting import Blank, Completer

if TYPE_CHECKING:
    from hunch.envs.icpi.texts import Texts


class InContextPolicy:
    """A language model that sees the successful episodes and continues an episode.

    The examples are all sequences of consecutive steps of every success. If the model gives no valid
    action, a random one is taken.

    Args:
        completer: The model, and how its prompts are made.
        experience: The remembered episodes.
        wording: The wording of the domain in prompts.
        successful: Show only sequences whose discounted return exceeds the domain's threshold.
    """

    def __init__(
        self, completer: Completer, experience: Experience, wording: Texts, *, successful: bool = False
    ) -> None:
        self.completer, self.successful = completer, successful
        self.experience, self.wording = experience, wording

    def choose(self, states: Sequence[str], rngs: Sequence[np.random.Generator]) -> list[str | None]:
        """Ask for the next action in each state."""
        config, experience, wording = self.completer.config, self.experience, self.wording
        stretches = [
            _stretches(e, wording, config.policy_hints, self.successful) for e in experience.successes
        ]
        examples, epoch = list(chain.from_iterable(stretches)), len(experience.episodes)
        blanks = [
            Blank(wording.reset + state, [examples], rng, epoch, list(wording.actions.values()))
            for state, rng in zip(states, rngs, strict=True)
        ]
        answers = self.completer.fill(
            blanks, wording.action_stop, wording.read_action, config.policy_temperature
        )
        return [
            answer or rng.choice(list(wording.actions)).item()
            for rng, answer in zip(rngs, answers, strict=True)
        ]


@lru_cache(maxsize=64)
def _stretches(episode: Episode, wording: Texts, hints: bool, successful: bool) -> list[str]:
    """Return every sequence of consecutive steps of an episode, in the format of policy prompts."""
    told = [
        wording.transition(
            step.state if hints else wording.without_hint(step.state),
            step.action,
            step.reward,
            step.done,
            step.next_state if hints else wording.without_hint(step.next_state),
        )
        for step in episode
    ]
    return [
        wording.reset + "".join(told[i:j])
        for i, j in combinations(range(len(told) + 1), 2)
        if not successful or gained(episode[i:j], wording.gamma) > wording.success_threshold
    ]


class LookUpPolicy:
    """The action of the most recent step with the same state in the whole experience.

    Source: the baseline "Matching Model" of Brooks et al.

    Args:
        experience: The remembered episodes.
        wording: The wording of the domain; not used.
    """

    def __init__(self, experience: Experience, wording: Texts) -> None:
        self.latest = {step.state: step.action for episode in experience.episodes for step in episode}

    def choose(self, states: Sequence[str], rngs: Sequence[np.random.Generator]) -> list[str | None]:
        """Return the latest action in each state; None if there was none."""
        return [self.latest.get(state) for state in states]
