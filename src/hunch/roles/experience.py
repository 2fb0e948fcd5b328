"""What in-context roles are shown: finished episodes as texts, and the words of their domain."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias


class Example(NamedTuple):
    """One step of an episode, as prompts show it.

    Attributes:
        state: The text of the state.
        action: The action's name.
        reward: What it earned.
        done: Whether the domain itself ended here; a step limit does not count.
        next_state: The text of the state that followed.
    """

    state: str
    action: str
    reward: float
    done: bool
    next_state: str


Episode: TypeAlias = tuple[Example, ...]


class Experience:
    """The finished episodes of an agent, and the latest of them that passed as worth imitating.

    Attributes:
        episodes: All, the oldest first.
        successes: The last ``capacity`` that passed, the oldest first.

    Args:
        capacity: How many successes are kept; ``None`` keeps all.
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
        """All episodes, and which of them passed."""
        return {"episodes": [list(map(tuple, e)) for e in self.episodes], "passed": list(self._passed)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        self.__init__(self.successes.maxlen)  # type: ignore[misc]
        for episode, passed in zip(state["episodes"], state["passed"], strict=True):
            self.add([Example(*step) for step in episode], passed)


def discounted_return(rewards: Sequence[float], gamma: float) -> float:
    """The sum of gamma^t r_t."""
    return float(sum(gamma**t * reward for t, reward in enumerate(rewards)))


class Wording(Hashable, Protocol):
    """The words of a domain: how its pieces read in a prompt, and how a completion is read.

    The domains of ICPI have theirs in :class:`hunch.envs.icpi.texts.Texts`, which says what each piece is. A
    reader returns ``None`` for what it cannot read.
    """

    @property
    def actions(self) -> Mapping[str, str]:
        """The text of each action by its name."""
        ...

    @property
    def reset(self) -> str:
        """The line that opens an episode in a policy prompt."""
        ...

    @property
    def action_stop(self) -> str:
        """The end of an action's text."""
        ...

    @property
    def done_stop(self) -> str:
        """The end of a done text."""
        ...

    @property
    def reward_stop(self) -> str:
        """The end of a reward text."""
        ...

    @property
    def state_stop(self) -> str:
        """The end of a state text."""
        ...

    @property
    def gamma(self) -> float:
        """The discount of planning."""
        ...

    @property
    def success_threshold(self) -> float:
        """The return that an episode worth imitating exceeds."""
        ...

    def done(self, done: bool) -> str:
        """Say whether a step was the last."""
        ...

    def reward(self, reward: float) -> str:
        """Say what a step earned."""
        ...

    def transition(self, state: str, action: str, reward: float, done: bool, next_state: str) -> str:
        """Return a step as policy prompts show it."""
        ...

    def without_hint(self, state: str) -> str:
        """Return the text of a state without its hint."""
        ...

    def read_action(self, completion: str) -> str | None:
        """Return the name of the action that the completion is."""
        ...

    def read_done(self, completion: str) -> bool | None:
        """Return whether the completion says that the step was the last."""
        ...

    def read_reward(self, completion: str) -> float | None:
        """Return what the completion says was earned."""
        ...

    def read_state(self, completion: str) -> str | None:
        """Return the text of the state that the completion is."""
        ...
