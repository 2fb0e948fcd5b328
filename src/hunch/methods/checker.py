"""Checks whether an agent keeps the contract of :class:`hunch.core.Agent`; names the first broken rule."""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hunch.core import Agent, Episode, HunchError, Player, State, Transition, World
from hunch.envs.checker import BrokenRuleError
from hunch.rl.comparison import difference
from hunch.rl.episodes import evaluate, play
from hunch.rl.rollout import Rollout, TextEnvironment
from hunch.rl.world import advance, world_of

RULES = {
    "contract": "An agent has all methods of hunch.core.Agent; its settings are plain values, learn returns "
    "numbers by name, and records returns a list of plain values by name that only grows.",
    "same seed": "The same world and seed give the same run: derive all randomness from begin's seed, and "
    "let begin forget everything.",
    "resume": "state_dict holds everything needed to resume, in a form that torch.load(weights_only=True) "
    "reads: a run that was saved and resumed equals an uninterrupted one.",
    "no trace": "player(seed) shares no randomness and no memory with the agent, and neither evaluating nor "
    "explaining changes it.",
    "admissible": "act returns one admissible action per state.",
    "batch": "The choice for a state does not depend on the other states of its batch.",
    "order": "The order of transitions within one call of observe does not matter.",
    "streams": "Memory is kept per transition.stream: what happens in one stream does not affect the choices "
    "in others.",
    "data": "Recorded data reach an agent only in begin, each time anew; the numbers of their streams do not "
    "matter. What players need of them is in state_dict: a run is loaded without its data.",
    "explanation": "The columns of explain have a number for every admissible action, and chosen is a "
    "distribution.",
}
"""Descriptions of the rules by name."""


_TRIES = 8
"""Number of players with different seeds that are compared if choices are random."""


class AgentError(BrokenRuleError):
    """An agent breaks a rule of its contract, see :data:`RULES`."""

    rules = RULES


def check(agent: Agent, env: TextEnvironment, *, steps: int = 60, streams: int = 3, seed: int = 0) -> None:
    """Check that an agent keeps its contract, :data:`RULES`, by running it in copies of an environment.

    Args:
        agent: Any agent; the check restarts it several times, so it loses what it has learnt.
        env: A text environment that ``copy.deepcopy`` can copy.
        steps: Environment steps per run; enough for at least one update of the agent.
        streams: Number of parallel environments.
        seed: Seed of the runs.

    Raises:
        AgentError: if a rule is broken; the message names the first one.
    """
    _require(
        "contract", isinstance(agent, Agent), f"{type(agent).__name__} is no subclass of hunch.core.Agent"
    )
    data = _recorded(env, seed)
    for n in (agent.group, streams * agent.group):
        run = _Run(agent, [copy.deepcopy(env) for _ in range(n)], seed)
        whole = run.go(steps)
        _same("same seed", run.go(steps), whole)
        evaluated = run.go(steps, evaluated=steps // 2)
        _same("no trace", evaluated, whole)
        _same("resume", run.resumed(evaluated, steps), whole)
    states, played = whole.states, whole.last
    _batch(agent, states)
    _streams(agent, states, played, data)
    _explanation(agent, states[0])
    if data:
        _data(agent, env, data, steps, seed)


# ---- runs -------------------------------------------------------------------------------------------------


@dataclass
class _Trace:
    """The record of a run."""

    transitions: list[tuple[int, str, float, str]] = field(default_factory=list)
    metrics: list[dict[str, float]] = field(default_factory=list)
    final: Any = None
    states: list[State] = field(default_factory=list)
    last: list[Transition] = field(default_factory=list)
    saved: Any = None
    """What it was halfway, and the state of the environments then."""


@dataclass
class _Run:
    """Runs of one agent in the same environments, from the same seed."""

    agent: Agent
    envs: list[TextEnvironment]
    seed: int

    def go(self, steps: int, evaluated: int = 0) -> _Trace:
        """Run from the beginning; optionally save and evaluate after some steps."""
        rollout, trace = self._begin(steps), _Trace()
        if evaluated:
            self._on(rollout, trace, evaluated)
            half = replace(trace, transitions=[*trace.transitions], metrics=[*trace.metrics])
            trace.saved = half, _round_trip(rollout.state_dict())
            self._evaluate()
        return self._on(rollout, trace, steps)

    def resumed(self, trace: _Trace, steps: int) -> _Trace:
        """Begin again, restore what a run saved, and go on to the end."""
        half, worlds = trace.saved
        rollout = self._begin(steps)
        _called("resume", "load_state_dict", lambda: self.agent.load_state_dict(half.final))
        rollout.load_state_dict(worlds)
        return self._on(rollout, half, steps)

    def _on(self, rollout: Rollout, trace: _Trace, steps: int) -> _Trace:
        while rollout.steps < steps:
            trace.states = rollout.states
            trace.last = _called("admissible", "act", lambda: advance(rollout, self.agent))
            trace.transitions += [
                (t.stream, t.action, t.reward, t.next_state.observation) for t in trace.last
            ]
            trace.metrics.append(self._learn())
        trace.final = _round_trip(self.agent.state_dict())
        return trace

    def _begin(self, steps: int) -> Rollout:
        rollout = Rollout(self.envs, self.seed, group=self.agent.group)
        self.agent.begin(world_of(rollout, self.envs[0], steps, ()), self.seed)
        return rollout

    def _learn(self) -> dict[str, float]:
        metrics = _called("contract", "learn", self.agent.learn)
        numbers = isinstance(metrics, Mapping) and all(isinstance(float(x), float) for x in metrics.values())
        _require("contract", numbers, f"learn returned {metrics!r}")
        _plain("settings", self.agent.settings)
        _plain("records", self.agent.records())
        return dict(metrics)

    def _evaluate(self) -> None:
        """Play an episode with a player, and check that the agent is unchanged."""
        before = copy.deepcopy(self.agent.state_dict())
        twins = [copy.deepcopy(env) for env in self.envs]
        _require("no trace", self.agent.player(0) is not self.agent, "player returned the agent itself")
        _called("no trace", "a player", lambda: evaluate(self.agent.player, twins, len(twins), self.seed))
        _unchanged(self.agent, before, "evaluating")


def _recorded(env: TextEnvironment, seed: int) -> Sequence[Episode]:
    """Episodes by random actions, one for each player as in recordings; none if any text is an action."""
    env, rng = copy.deepcopy(env), np.random.default_rng(seed)
    if Rollout([env], seed).states[0].actions is None:
        return ()
    episodes: list[Episode] = []
    for number in range(3):
        played = tuple(play(env, lambda s: s.options[int(rng.integers(len(s.options)))], seed + number))
        streams = sorted({t.stream for t in played})
        episodes += [Episode(tuple(t for t in played if t.stream == stream)) for stream in streams]
    return episodes


# ---- rules ------------------------------------------------------------------------------------------------


def _batch(agent: Agent, states: Sequence[State]) -> None:
    for i, state in enumerate(states):
        rest = [*states[i + 1 :], *states[:i]]
        _agree("batch", agent, ((), [state]), ((), [state, *rest]), "the other states of a batch changed")


def _streams(
    agent: Agent, states: Sequence[State], played: Sequence[Transition], data: Sequence[Episode]
) -> None:
    _agree("order", agent, (played, states), (played[::-1], states), "another order of transitions changed")
    first = states[0].stream
    others = [_in_stream(t, first + 1 + n) for n, episode in enumerate(data) for t in episode]
    of_stream = [t for t in played if t.stream == first]
    alone, disturbed = (of_stream, states[:1]), ([*of_stream, *others], states[:1])
    _agree("streams", agent, alone, disturbed, "events in other streams changed")


_Seen = tuple[Sequence[Transition], Sequence[State]]
"""What a player observes, and the states in which it then acts."""


def _agree(rule: str, agent: Agent, one: _Seen, other: _Seen, changed: str) -> None:
    """Raise an error if a choice in the first state is certain on one side and never made on the other.

    Players of several seeds choose, until that is settled.
    """
    before: set[str] = set()
    after: set[str] = set()
    for seed in range(_TRIES):
        before.add(_choice(agent.player(seed), *one))
        after.add(_choice(agent.player(seed), *other))
        if before & after or (len(before) > 1 and len(after) > 1):
            return
    raise AgentError(rule, f"{changed} the choice from {before} to {after}")


def _choice(player: Player, seen: Sequence[Transition], states: Sequence[State]) -> str:
    if seen:
        player.observe(seen)
    return player.act(states)[0]


def _explanation(agent: Agent, state: State) -> None:
    before = copy.deepcopy(agent.state_dict())
    explanation = _called("explanation", "explain", lambda: agent.explain(state))
    _unchanged(agent, before, "explaining")
    columns = {
        **explanation.columns,
        **({} if explanation.chosen is None else {"chosen": explanation.chosen}),
    }
    if state.actions is None:
        return
    for name, figures in columns.items():
        fits = np.shape(figures) == (len(state.actions),)
        _require(
            "explanation", fits, f"{name} has shape {np.shape(figures)} for {len(state.actions)} actions"
        )
    total = 1.0 if explanation.chosen is None else float(np.sum(explanation.chosen))
    _require("explanation", math.isclose(total, 1.0, abs_tol=1e-6), f"chosen sums to {total:g}")


def _data(agent: Agent, env: TextEnvironment, data: Sequence[Episode], steps: int, seed: int) -> None:
    def learnt(episodes: Sequence[Episode]) -> Any:
        agent.begin(world_of(None, env, 5, episodes), seed)
        for _ in range(5):
            agent.learn()
        return _round_trip(agent.state_dict())

    once = learnt(data)
    _same_state("data", once, learnt(data), "the same data gave another result the second time")
    renumbered = [e.with_steps(_in_stream(t, 10 + len(data) - n) for t in e) for n, e in enumerate(data)]
    _same_state("data", once, learnt(renumbered), "the same data in other streams gave another result")

    states = [data[0][0].state]
    before = [_choice(agent.player(n), (), states) for n in range(_TRIES)]
    agent.begin(world_of(None, env, steps, ()), seed)
    _called("data", "load_state_dict", lambda: agent.load_state_dict(once))
    after = [_choice(agent.player(n), (), states) for n in range(_TRIES)]
    lost = f"loaded without the data, players choose {after} and not {before}"
    _require("data", before == after, lost)
    agent.begin(World(streams=0), seed)


def _in_stream(t: Transition, stream: int) -> Transition:
    return replace(t, state=replace(t.state, stream=stream), next_state=replace(t.next_state, stream=stream))


# ---- comparing --------------------------------------------------------------------------------------------


def _same(rule: str, actual: _Trace, expected: _Trace) -> None:
    for t, (now, before) in enumerate(zip(actual.transitions, expected.transitions, strict=False)):
        problem = f"step {t} was {now[1]!r} in stream {now[0]} instead of {before[1]!r} in stream {before[0]}"
        _require(rule, difference(now, before) is None, problem)
    for t, (metrics, earlier) in enumerate(zip(actual.metrics, expected.metrics, strict=False)):
        where = difference(metrics, earlier)
        _require(rule, where is None, f"call {t} of learn returned other numbers ({where})")
    _same_state(rule, expected.final, actual.final, "the agent ended in another state")


def _same_state(rule: str, expected: Any, actual: Any, problem: str) -> None:
    where = difference(expected, actual)
    _require(rule, where is None, f"{problem} ({where})")


def _unchanged(agent: Agent, before: Any, doing: str) -> None:
    where = difference(before, agent.state_dict())
    _require("no trace", where is None, f"{doing} changed the agent ({where})")


def _round_trip(state: Any) -> Any:
    """Return the state as restored from a checkpoint."""
    import torch

    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return _called("resume", "reading its state_dict", lambda: torch.load(buffer, weights_only=True))


def _plain(name: str, value: Any) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise AgentError("contract", f"{name} is not made of plain values: {error}") from error


def _called(rule: str, doing: str, call: Any) -> Any:
    try:
        return call()
    except AgentError:
        raise
    except HunchError as error:
        raise AgentError(rule, str(error).rstrip(".")) from error
    except Exception as error:
        raise AgentError(rule, f"{doing} raised {type(error).__name__}: {error}") from error


def _require(rule: str, kept: bool, problem: str) -> None:
    if not kept:
        raise AgentError(rule, problem)
