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
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from hunch.roles.world_model.experience import Episode, Experience, return_of
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
        self.completer = completer
        self.experience = experience
        self.wording = wording
        self.successful = successful

    def choose(self, states: Sequence[str], rngs: Sequence[np.random.Generator]) -> list[str | None]:
        """Ask for the next action in each state."""
        config = self.completer.config
        wording = self.wording
        names = list(wording.actions)

        # The examples: every stretch of every remembered success.
        examples: list[str] = []
        for episode in self.experience.successes:
            examples += _stretches(episode, wording, config.policy_hints, self.successful)
        age = len(self.experience.episodes)  # the completer's examples of one age are drawn together

        # The prompt of each state draws some of them, and ends with the state.
        blanks = [
            Blank(wording.reset + state, [examples], rng, age, list(wording.actions.values()))
            for state, rng in zip(states, rngs, strict=True)
        ]
        answers = self.completer.fill(
            blanks, wording.action_stop, wording.read_action, config.policy_temperature
        )
        actions: list[str | None] = []
        for answer, rng in zip(answers, rngs, strict=True):
            actions.append(answer or rng.choice(names).item())
        return actions


@lru_cache(maxsize=64)
def _stretches(episode: Episode, wording: Texts, hints: bool, successful: bool) -> list[str]:
    """Return every sequence of consecutive steps of an episode, in the format of policy prompts."""
    lines = []
    for step in episode:
        state, next_state = step.state, step.next_state
        if not hints:
            state = wording.without_hint(state)
            next_state = wording.without_hint(next_state)
        lines.append(wording.transition(state, step.action, step.reward, step.done, next_state))

    stretches = []
    for start, end in combinations(range(len(lines) + 1), 2):
        # R = sum_t gamma^t r_t of the stretch
        stretch_return = return_of(episode[start:end], wording.gamma)
        if not successful or stretch_return > wording.success_threshold:
            stretches.append(wording.reset + "".join(lines[start:end]))
    return stretches


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
