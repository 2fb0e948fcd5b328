"""Builds the parts of prompts about a domain, and parses a model's answers.

States and actions are written as Python: a state is an assertion, an action a call. All methods work on plain
values, so that prompts can be built without an environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from hunch.lm.answers.numerals import words_of

_REWARD = re.compile(r"reward == ")
_WHOLE = re.compile(r"-?\d+")


class Texts:
    """The texts of a domain for prompts, and the numbers for planning in it.

    A completion is a model's text up to the stop string, without it. Leading blanks are dropped, the stop
    string is added again, and anything that cannot be parsed gives ``None``.

    Attributes:
        actions: The text of each action by its name, in the order of the action indices.
        reset: The line that opens an episode in a policy prompt.
        state_start: Beginning of the text of a state.
        clauses: Number of clauses of a state, joined by "and", before the hint.
        reward_end: Text after the line of the reward.
        policy_reward_form: Number format of a reward in policy prompts.
        policy_done: True if policy prompts show whether a transition was the last.
        policy_end: Text after the next state of a final transition in policy prompts; ``None`` if that state
            is not shown.
        action_stop: Stop string of an action; so are ``done_stop``, ``reward_stop`` and ``state_stop``.
        gamma: Discount per step in planning.
        log_gamma: Discount per step of reported returns, and of ``info["optimal"]``.
        max_rollout_steps: Maximum number of transitions in a model's rollout.
        success_threshold: Return above which an episode counts as a success and is imitated.
    """

    actions: ClassVar[Mapping[str, str]]
    reset: ClassVar[str] = "\nstate, reward = reset()\n"
    state_start: ClassVar[str] = "assert state == "
    clauses: ClassVar[int] = 1
    reward_end: ClassVar[str] = ""
    policy_reward_form: ClassVar[type[int] | type[float]] = float
    policy_done: ClassVar[bool] = False
    policy_end: ClassVar[str | None] = None
    action_stop: ClassVar[str] = "\n"
    done_stop: ClassVar[str] = "\n"
    reward_stop: ClassVar[str] = "\n"
    state_stop: ClassVar[str] = "\n"
    gamma: ClassVar[float] = 0.8
    log_gamma: ClassVar[float] = 0.8
    max_rollout_steps: ClassVar[int]
    success_threshold: ClassVar[float] = 0.0

    def without_hint(self, state: str) -> str:
        """Return the text of a state without its hint, if it has one."""
        clauses = state.split(" and ", self.clauses)
        return state if len(clauses) <= self.clauses else " and ".join(clauses[:-1]) + self.state_stop

    def done(self, done: bool) -> str:
        """Return the text that says whether a transition was the last."""
        return "assert done\n" if done else "assert not done\n"

    def reward(self, reward: float) -> str:
        """Return the text of a reward in a reward prompt."""
        return f"assert reward == {int(reward)}\n{self.reward_end}"

    def policy_reward(self, reward: float) -> str:
        """Return the text of a reward in a policy prompt."""
        return f"assert reward == {self.policy_reward_form(reward)}\n{self.reward_end}"

    def transition(self, state: str, action: str, reward: float, done: bool, next_state: str) -> str:
        """Return a transition as policy prompts show it.

        Args:
            state: The text of the state.
            action: Name of the action.
            reward: Reward of the step.
            done: True if the episode terminated here; a step limit does not count.
            next_state: The text of the next state.
        """
        text = state + self.actions[action] + self.policy_reward(reward)
        if self.policy_done:
            text += self.done(done)
        if done and self.policy_end is not None:
            text += next_state + self.policy_end
        return text

    def read_action(self, completion: str) -> str | None:
        """Return the name of the action that the completion matches exactly."""
        text = completion.lstrip() + self.action_stop
        return next((name for name, known in self.actions.items() if known == text), None)

    def read_done(self, completion: str) -> bool | None:
        """Return whether the completion says that the transition was the last."""
        text = completion.lstrip() + self.done_stop
        return "assert done" in text if text.startswith("assert") and "done" in text else None

    def read_reward(self, completion: str) -> float | None:
        """Return the whole number that the completion gives as the reward; 0 if there are several.

        Numbers are read as values: "1.0" is 1, and "1.5" no reward.
        """
        text = completion.lstrip() + self.reward_stop
        numbers = {word.start: word for word in words_of(text, known=()) if word.number and word.closes}
        given = [numbers.get(reward.end()) for reward in _REWARD.finditer(text)]
        whole = [number for number in given if number is not None and _WHOLE.fullmatch(number.text)]
        if not whole:
            return None
        return float(whole[0].text) if len(whole) == 1 else 0.0

    def read_state(self, completion: str) -> str | None:
        """Return the text of the state in the completion; only its beginning is checked."""
        text = completion.lstrip() + self.state_stop
        return text if text.startswith(self.state_start) else None
