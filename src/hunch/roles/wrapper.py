"""An agent around an agent: what those have in common that change its rewards or its goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    Player,
    State,
    Transition,
    UsageError,
    World,
    weakest,
)


class Wrapper(Agent):
    """An agent that asks a source of rewards or goals, and leaves all else to the agent inside.

    A source says at least how good the evidence behind it is. It may have memory and figures of its own, by
    the names that an agent has for them: ``models``, ``settings``, ``begin(world, seed)``, ``metrics()``,
    ``records()``, ``state_dict()`` and ``load_state_dict(state)``. ``metrics`` are told by ``learn``.

    Args:
        agent: Any agent.
        source: What it asks.

    Raises:
        UsageError: if there is no agent, or a source lacks what every source has.
    """

    needs: ClassVar[tuple[str, ...]] = ("evidence",)
    """What every source has."""

    def __init__(self, agent: Agent, source: Any) -> None:
        if not isinstance(agent, Agent):
            raise UsageError(f"{type(self).__name__} takes an agent first, not {agent!r}.")
        if lacking := [name for name in self.needs if not hasattr(source, name)]:
            raise UsageError(f"The source {type(source).__name__} lacks {' and '.join(lacking)}.")
        self.agent, self.source = agent, source
        self.models: Mapping[str, Any] = {**getattr(agent, "models", {}), **getattr(source, "models", {})}

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker of agent and source."""
        return weakest((self.agent.evidence, self.source.evidence))

    @property
    def settings(self) -> dict[str, Any]:
        """The agent's settings and the source's."""
        source = {"name": type(self.source).__name__, **getattr(self.source, "settings", {})}
        return {"agent": dict(self.agent.settings), "source": source}

    def begin(self, world: World, seed: int) -> None:
        """Begin the source, then the agent."""
        if hasattr(self.source, "begin"):
            self.source.begin(world, seed)
        self.agent.begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the agent act."""
        return self.agent.act(states)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the agent see the transitions."""
        self.agent.observe(transitions)

    def learn(self) -> dict[str, float]:
        """Let the agent learn; tell its figures and the source's."""
        return {**self.agent.learn(), **getattr(self.source, "metrics", dict)()}

    def player(self, seed: int) -> Player:
        """The agent's own player."""
        return self.agent.player(seed)

    def explain(self, state: State) -> Explanation:
        """The agent's own word."""
        return self.agent.explain(state)

    def records(self) -> list[dict[str, Any]]:
        """The source's records, then the agent's."""
        return [*getattr(self.source, "records", list)(), *self.agent.records()]

    def state_dict(self) -> dict[str, Any]:
        """The agent's state and the source's."""
        return {"agent": self.agent.state_dict(), "source": getattr(self.source, "state_dict", dict)()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        self.agent.load_state_dict(state["agent"])
        if state["source"]:
            self.source.load_state_dict(state["source"])
