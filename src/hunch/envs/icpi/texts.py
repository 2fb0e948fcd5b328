"""What prompts about a domain are made of, and how a model's answers are read.

A domain speaks Python: a state is an assertion, an action a call. The pieces take and give plain values, so
that prompts can be put together without an environment at hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

_REWARD = re.compile(r"reward == (-?\d+)")


class Texts:
    """The words of a domain, with the numbers that planning in it takes.

    A completion is what a model wrote up to the stop string, without it. Leading blanks are dropped, the
    stop string is put back, and what does not read as the piece that was asked for is ``None``.

    Attributes:
        actions: The text of each action by its name, in the order of the indices.
        reset: The line that opens an episode in a policy prompt.
        state_start: What the text of a state begins with.
        clauses: How many clauses of it, joined by "and", come before the hint.
        reward_end: What follows the line of the reward.
        policy_reward_form: How the number of a reward is written in policy prompts.
        policy_done: Whether policy prompts say if a transition was the last.
        policy_end: What follows the next state of a last transition in policy prompts; ``None`` where that
            state is not shown.
        action_stop: The end of an action's text; so are ``done_stop``, ``reward_stop`` and ``state_stop``.
        gamma: The discount of planning.
        log_gamma: The discount of reported returns, and of ``info["optimal"]``.
        max_rollout_steps: How many transitions a model's rollout may have.
        success_threshold: The return that an episode worth imitating exceeds.
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
        """Return the text of a state without its hint; one that has none stays as it is."""
        clauses = state.split(" and ", self.clauses)
        return state if len(clauses) <= self.clauses else " and ".join(clauses[:-1]) + self.state_stop

    def done(self, done: bool) -> str:
        """Say whether a transition was the last."""
        return "assert done\n" if done else "assert not done\n"

    def reward(self, reward: float) -> str:
        """Say what a transition earned, in a reward prompt."""
        return f"assert reward == {int(reward)}\n{self.reward_end}"

    def policy_reward(self, reward: float) -> str:
        """Say what a transition earned, in a policy prompt."""
        return f"assert reward == {self.policy_reward_form(reward)}\n{self.reward_end}"

    def transition(self, state: str, action: str, reward: float, done: bool, next_state: str) -> str:
        """Return a transition as policy prompts show it.

        Args:
            state: The text of the state.
            action: The action's name.
            reward: What it earned.
            done: Whether the domain itself ended here; a step limit does not count.
            next_state: The text of the state that followed.
        """
        text = state + self.actions[action] + self.policy_reward(reward)
        if self.policy_done:
            text += self.done(done)
        if done and self.policy_end is not None:
            text += next_state + self.policy_end
        return text

    def read_action(self, completion: str) -> str | None:
        """Return the name of the action that the completion is, to the letter."""
        text = completion.lstrip() + self.action_stop
        return next((name for name, known in self.actions.items() if known == text), None)

    def read_done(self, completion: str) -> bool | None:
        """Return whether the completion says that the transition was the last."""
        text = completion.lstrip() + self.done_stop
        return "assert done" in text if text.startswith("assert") and "done" in text else None

    def read_reward(self, completion: str) -> float | None:
        """Return the whole number that the completion says was earned; 0 if it says several."""
        found = _REWARD.findall(completion.lstrip() + self.reward_stop)
        if not found:
            return None
        return float(found[0]) if len(found) == 1 else 0.0

    def read_state(self, completion: str) -> str | None:
        """Return the text of the state that the completion is; beyond its beginning nothing is checked."""
        text = completion.lstrip() + self.state_stop
        return text if text.startswith(self.state_start) else None
