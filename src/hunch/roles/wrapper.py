"""Base class of agents that wrap another agent to change its rewards or goals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    FloatArray,
    HunchError,
    Player,
    Source,
    State,
    Transition,
    UsageError,
    Valued,
    World,
    weakest,
)


def worth(agent: Agent, states: Sequence[State]) -> FloatArray:
    """Return an agent's values of states, shape (n,).

    Raises:
        HunchError: if the agent has no values.
    """
    if not isinstance(agent, Valued):
        raise HunchError(f"{type(agent).__name__} has no method 'values', so it cannot be a skill.")
    return agent.values(states)


class Wrapper(Agent):
    """An agent that uses a source of rewards or goals, and leaves everything else to the inner agent.

    Agent and source learn in ``learn``.

    Args:
        agent: Any agent.
        source: The source of rewards or goals.

    Raises:
        UsageError: if the first argument is not an agent, or the second not such a source.
    """

    source_class: ClassVar[type[Source]] = Source
    """The class of sources that it uses."""
    source: Any

    def __init__(self, agent: Agent, source: Source) -> None:
        if not isinstance(agent, Agent):  # most often a source in the agent's place
            raise UsageError(f"{type(self).__name__} needs an agent as first argument, not {agent!r}.")
        if not isinstance(source, self.source_class):
            kind = self.source_class.__name__
            raise UsageError(
                f"{type(self).__name__} needs a source that is a subclass of {kind}, not {source!r}."
            )
        self.agent = agent
        self.source = source
        self.models = {**agent.models, **source.models}
        self.group = agent.group

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker evidence level of agent and source."""
        return weakest((self.agent.evidence, self.source.evidence))

    @property
    def first_update(self) -> int:
        """The step of the agent's first update."""
        return self.agent.first_update

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of agent and source."""
        source = {"name": type(self.source).__name__, **self.source.settings}
        return {"agent": dict(self.agent.settings), "source": source}

    def export(self, folder: Path) -> None:
        """Let the agent write its model, if it trains one."""
        self.agent.export(folder)

    def begin(self, world: World, seed: int) -> None:
        """Begin the source, then the agent."""
        self.source.begin(world, seed)
        self.agent.begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the agent act."""
        return self.agent.act(states)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the agent observe the transitions."""
        self.agent.observe(transitions)

    def forget(self, streams: Sequence[int]) -> None:
        """Let the agent forget these streams, whose lifetime is over."""
        self.agent.forget(streams)

    def learn(self) -> dict[str, float]:
        """Let the agent learn, then the source; return the metrics of both."""
        metrics = dict(self.agent.learn())
        metrics.update(self.source.learn())
        return metrics

    def player(self, seed: int) -> Player:
        """Return the agent's player."""
        return self.agent.player(seed)

    def explain(self, state: State) -> Explanation:
        """Return the agent's explanation."""
        return self.agent.explain(state)

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the agent's values of states, shape (n,)."""
        return worth(self.agent, states)

    def records(self) -> list[dict[str, Any]]:
        """Return the source's records, followed by the agent's."""
        records: list[dict[str, Any]] = self.source.records()
        return records + self.agent.records()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of agent and source, and of the attributes in ``saved``."""
        source = self.source.state_dict()
        return {"agent": self.agent.state_dict(), "source": source, **super().state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.agent.load_state_dict(state["agent"])
        if state["source"]:
            self.source.load_state_dict(state["source"])
