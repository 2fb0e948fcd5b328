"""The memory of in-context roles: finished episodes as texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias


class Example(NamedTuple):
    """One step of an episode, as shown in prompts.

    Attributes:
        state: The text of the state.
        action: Name of the action.
        reward: Reward of the step.
        done: True if the episode terminated here; a step limit does not count.
        next_state: The text of the next state.
    """

    state: str
    action: str
    reward: float
    done: bool
    next_state: str


Episode: TypeAlias = tuple[Example, ...]


class Experience:
    """The finished episodes of an agent, and the latest successful ones separately.

    Attributes:
        episodes: All episodes, oldest first.
        successes: The last ``capacity`` successes, oldest first.

    Args:
        capacity: Number of successes kept; ``None`` keeps all.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.episodes: list[Episode] = []
        self.successes: deque[Episode] = deque(maxlen=capacity)
        self._passed: list[bool] = []

    def add(self, episode: Sequence[Example], passed: bool) -> None:
        """Add a finished episode."""
        self.episodes.append(tuple(episode))
        self._passed.append(passed)
        if passed:
            self.successes.append(self.episodes[-1])

    def state_dict(self) -> dict[str, Any]:
        """Return all episodes, and which of them were successes."""
        return {"episodes": [list(map(tuple, e)) for e in self.episodes], "passed": list(self._passed)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.__init__(self.successes.maxlen)  # type: ignore[misc]
        for episode, passed in zip(state["episodes"], state["passed"], strict=True):
            self.add([Example(*step) for step in episode], passed)


def return_of(steps: Sequence[Example], gamma: float) -> float:
    """Return the sum of gamma^t r_t over steps."""
    return discounted_return([step.reward for step in steps], gamma)


def discounted_return(rewards: Sequence[float], gamma: float) -> float:
    """Return the sum of gamma^t r_t over rewards."""
    return float(sum(gamma**t * reward for t, reward in enumerate(rewards)))
