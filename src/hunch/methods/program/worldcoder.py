"""WorldCoder: an optimistic world model as code, learnt while acting (Tang, Key and Ellis, NeurIPS 2024).

    act at random for some steps
    repeat
        write transition(state, action), and for each mission reward(state, action, next state), so that
            they predict all steps so far, and
            optimism: in the model, a planner finds a path to a reward from the mission's first state
        refine a program that violates either; it is drawn from Beta distributions over programs (Thompson
        sampling)
        follow the planner's path; act at random if there is none, and with probability epsilon
        after a wrong prediction: refine

Optimism is one more constraint on a program. It makes the agent try what might be rewarded, instead of
trusting a program that predicts no reward because none was seen. A new mission has its own reward function
and keeps the transition function.

Departures: steps are deterministic, and the planner is breadth-first search instead of tree search, so that
"no path" is exact within ``most`` states; a reward is written from the mission's text and its steps, without
examples of the rewards of other missions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hunch.core import Explanation, Player, State, Transition, World
from hunch.envs.design.problem import Problem
from hunch.envs.design.program_model import Patient
from hunch.envs.design.running import box
from hunch.envs.design.transitions import refuse_contradictions
from hunch.methods.method import Method
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.methods.program.writing import SPACING, WritingAgent, WritingConfig
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl.small_models import shortest
from hunch.rl.world_model import Prediction, Step, frozen, right, steps_of
from hunch.roles.world_model.program import NO_WAY, CodedModel, Piece, problem_of, tried
from hunch.roles.writer.programs import Attempt
from hunch.roles.writer.search import Thompson

LATELY = 3
"""Number of first states that are remembered per mission (ours)."""


@dataclass(frozen=True, kw_only=True)
class WorldCoderConfig(WritingConfig):
    """Settings of WorldCoder."""

    optimism: bool = True
    """Require that the world model contains a path to a reward, from the first state of each mission."""
    warmup: NonNegativeInt = 10
    """Random steps before the first program is written (released code)."""
    epsilon: Share = 0.05
    """Share of random steps after the warm-up (released code)."""
    refinements: PositiveInt = 30
    """Maximum programs written between two environment steps (released code: 30 to 50)."""
    beta_weight: PositiveFloat = 5.0
    """Weight of the share of explained steps in the Beta distributions over programs (released code)."""
    most: PositiveInt = 2_000
    """Number of visited states after which the planner gives up (our choice)."""


class WorldCoder(WritingAgent):
    """The agent of WorldCoder; arguments as for :class:`~hunch.methods.program.writing.WritingAgent`."""

    config_class: ClassVar[type[Any]] = WorldCoderConfig
    prompt = staticmethod(GIFMCTS.prompt)

    def begin(self, world: World, seed: int) -> None:
        """Forget all steps except recorded ones, and all programs."""
        self.seed, self.written, self.attempted = seed, 0, 0
        self.seen = Seen()
        self.settled: dict[str, bool] = {}
        self.acted: dict[int, int] = {}
        self.ways: dict[tuple[str, Any], list[str] | None] = {}
        self.transition: Piece | None = None
        self.rewards: dict[str, Piece] = {}
        self._loaded: dict[tuple[str, str], Patient] = {}
        for episode in world.data:
            for t in episode:
                self.seen.take_in(t)

    # ---- acting ---------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the next action of the planned path, or with probability epsilon a random one."""
        return [self._choose(state) for state in states]

    def _choose(self, state: State) -> str:
        rng = np.random.default_rng([self.seed, 0, state.stream, self.acted.get(state.stream, 0)])
        at_random = rng.random() < self.config.epsilon
        way = None if at_random else self._planned(state)
        if way and way[0] in state.options:
            return way[0]
        return state.options[int(rng.integers(len(state.options)))]

    def _planned(self, state: State) -> list[str] | None:
        """Return the path from a state; it is searched once until the programs change."""
        key = state.task, frozen(state.raw)
        if key not in self.ways:
            seen: list[Any] = []
            self.ways[key] = self._plan(state, seen)
            if self.ways[key] is None:  # then the states seen by the planner have no path either
                self.ways |= dict.fromkeys([(state.task, other) for other in seen])
        return self.ways[key]

    def _plan(self, state: State, seen: list[Any]) -> list[str] | None:
        model = self._model(state.task)
        return None if model is None else self._way(model, frozen(state.raw), seen)

    def _model(self, mission: str) -> CodedModel | None:
        """Return the current programs, if both can be run."""
        pieces = self.transition, self.rewards.get(mission)
        programs = [p.current for p in pieces if p is not None and p.current is not None]
        if len(programs) < 2 or any(attempt.fitness is None for attempt in programs):
            return None
        return CodedModel(
            self._called(programs[0].program, "transition"), self._called(programs[1].program, "reward")
        )

    def _called(self, program: str, function: str) -> Patient:
        if (program, function) not in self._loaded:
            self._loaded[program, function] = Patient(box().load(program, function))
        return self._loaded[program, function]

    # ---- steps ----------------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember the steps that are new.

        Raises:
            UsageError: if the same action had another result in the same state before.
        """
        for t in sorted(transitions, key=lambda t: t.stream):
            self.acted[t.stream] = self.acted.get(t.stream, 0) + 1
            mission, step = t.state.task, self.seen.take_in(t)
            way = self.ways.get((mission, step.state))
            if way and way[0] == step.action and way[1:] and not t.done:
                self.ways.setdefault((mission, step.next_state), way[1:])
            self.seen.follow(t, step)

    # ---- writing --------------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Write and refine programs if new steps contradict them, or no path to a reward is known."""
        if len(self.seen) < self.config.warmup:
            return {}
        for mission, own in self.seen.news().items():
            if not self.settled.get(mission) or self._surprised(mission, own):
                self._explain(mission)
        settled = sum(self.settled.values()) / max(len(self.settled), 1)
        return {"programs": float(self.written), "explained_missions": settled}

    def _surprised(self, mission: str, steps: Sequence[Step]) -> bool:
        model = self._model(mission)
        if model is None:
            return True
        found = model.step([s.state for s in steps], [s.action for s in steps])
        return not all(right(p, s) for p, s in zip(found, steps, strict=True))

    def _explain(self, mission: str) -> None:
        """Refine both functions until they explain everything, or the limit is reached."""
        self.ways.clear()
        while self._loaded:
            self._loaded.popitem()[1].program.close()
        self.transition = self.transition or Piece(self._problem("transition", mission))
        if mission not in self.rewards:
            self.rewards[mission] = Piece(self._problem("reward", mission))
        for piece in (self.transition, self.rewards[mission]):
            self._begin_anew(piece, mission)
        for _ in range(self.config.refinements):
            if (wanting := self._wanting(mission)) is None:
                break
            self._refine(wanting, mission)
        self.settled[mission] = self._wanting(mission) is None

    def _begin_anew(self, piece: Piece, mission: str) -> None:
        """Evaluate the current program on all steps so far."""
        last, piece.current, piece.since = piece.current, None, len(piece.attempts)
        piece.search = Thompson(self.config.beta_weight)
        if last is not None:
            again = self._judged(replace(last, number=self._number(), group=-1), piece, mission)
            piece.add(again, self._rng(again.number))

    def _wanting(self, mission: str) -> Piece | None:
        """Return the function to refine next; None if everything is explained."""
        transition, reward = self.transition, self.rewards[mission]
        assert transition is not None
        for piece in (transition, reward):
            if piece.current is None or not self._explains(piece.current):
                return piece
        if reward.current is not None and reward.current.fitness == 1.0:
            return None
        return (reward, transition)[self.written % 2]  # no path to a reward: either may be wrong

    def _explains(self, attempt: Attempt) -> bool:
        """Return whether it predicts all steps, whether or not there is a path to a reward."""
        return attempt.components.get("explained") == 1.0

    def _refine(self, piece: Piece, mission: str) -> None:
        number = self._number()
        (request,) = piece.search.ask(1, self._rng(number))
        parents = request.parents
        feedback = parents[-1].outcome_text() if parents else ""
        if piece is self.transition and parents and self._explains(parents[-1]):
            feedback += NO_WAY  # otherwise there would be nothing to refine
        first = self.seed * SPACING + self.written
        (program,) = self.writer.write(piece.problem, parents, feedback, 1, first)
        self.written += 1
        attempt = Attempt(number, program, None, parents=tuple(p.number for p in parents), shown=feedback)
        piece.add(self._judged(attempt, piece, mission), self._rng(number))
        reward = self.rewards[mission]
        if piece is self.transition and reward.current is not None:
            reward.current = self._judged(reward.current, reward, mission)  # there may be a path now

    def _judged(self, attempt: Attempt, piece: Piece, mission: str) -> Attempt:
        """Return the attempt with its share of explained steps; a path to a reward counts as one step."""
        of = [mission] if piece.problem.function == "reward" else list(self.seen.steps)
        found = tried(attempt, piece.problem, self.seen.of(*of))
        if piece is self.transition or found.fitness is None or not self.config.optimism:
            return found
        n = len(self.seen.steps[mission])
        if found.fitness < 1.0:
            return replace(found, fitness=found.fitness * n / (n + 1))
        if self._finds_a_way(found.program, mission):
            return found
        return replace(found, fitness=n / (n + 1), feedback=found.feedback + NO_WAY)

    def _finds_a_way(self, reward: str, mission: str) -> bool:
        """Return whether the planner finds a reward from the latest first states."""
        now = self.transition.current if self.transition else None
        if now is None or now.fitness is None:
            return False
        with box().load(now.program, "transition") as transition, box().load(reward, "reward") as earned:
            model = CodedModel(Patient(transition), Patient(earned))
            ways = [self._way(model, start, []) for start in self.seen.starts.get(mission, [])]
        return None not in ways

    def _way(self, model: CodedModel, state: Any, seen: list[Any]) -> list[str] | None:
        """Return the shortest path to a reward in a model; visited states are added to ``seen``."""

        def actions(state: Any) -> tuple[str, ...]:
            seen.append(state)
            return self.seen.actions

        def pays(step: Prediction) -> bool:
            return (step.reward or 0.0) > 0

        return shortest(model, state, actions, pays, np.random.default_rng(0), most=self.config.most)

    def _problem(self, function: str, mission: str) -> Problem:
        shown = self.seen.of(mission)[0].state
        return problem_of(function, mission, shown, self.seen.actions)

    def _number(self) -> int:
        self.attempted += 1
        return self.attempted - 1

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 1, number])

    # ---- the rest -------------------------------------------------------------------------------------

    def player(self, seed: int) -> Player:
        """Return a player that plans with the current programs, and acts at random where there is no path."""
        twin = type(self)(self.writer, replace(self.config, epsilon=0.0))
        twin.begin(World(), seed)
        twin.load_state_dict(self.state_dict())
        twin.seed, twin.acted = seed, {}
        return Planned(twin)

    def explain(self, state: State) -> Explanation:
        """Return the planned path as a note."""
        way = self._plan(state, [])
        return Explanation(note="no way to a reward is known" if way is None else " > ".join(way))

    def records(self) -> list[dict[str, Any]]:
        """Return one record per program: its function, mission, text and result."""
        pieces = [("", self.transition), *self.rewards.items()]
        lines = [
            {"function": piece.problem.function, "mission": mission, **attempt.line()}
            for mission, piece in pieces
            if piece is not None
            for attempt in piece.attempts
        ]
        return sorted(lines, key=lambda line: int(line["number"]))

    def state_dict(self) -> dict[str, Any]:
        """Return steps, programs, and the state of each search."""
        return {
            "counters": [self.written, self.attempted],
            "seen": self.seen.state_dict(),
            "settled": list(self.settled.items()),
            "acted": list(self.acted.items()),
            "ways": [(*key, way) for key, way in self.ways.items()],
            "transition": self.transition and self.transition.state(),
            "rewards": [(mission, piece.state()) for mission, piece in self.rewards.items()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.written, self.attempted = state["counters"]
        self.seen.load_state_dict(state["seen"])
        self.settled, self.acted = dict(state["settled"]), dict(state["acted"])
        self.ways = {(mission, frozen(at)): way and list(way) for mission, at, way in state["ways"]}
        self.transition, self.rewards = None, {}
        if state["transition"]:
            self.transition = self._piece("transition", next(iter(self.seen.steps)), state["transition"])
        self.rewards = {m: self._piece("reward", m, saved) for m, saved in state["rewards"]}

    def _piece(self, function: str, mission: str, saved: Mapping[str, Any]) -> Piece:
        piece = Piece(self._problem(function, mission), search=Thompson(self.config.beta_weight))
        piece.attempts, piece.since = [Attempt.read(line) for line in saved["attempts"]], saved["since"]
        piece.current = Attempt.read(saved["current"]) if saved["current"] else None
        piece.search.tell(piece.attempts[piece.since :], self._rng(0))
        return piece


class Planned(Player):
    """A player that acts like the agent, without learning."""

    def __init__(self, agent: WorldCoder) -> None:
        self.agent = agent

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the next action of the planned path."""
        return self.agent.act(states)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Count the steps; the count seeds the random actions."""
        for t in transitions:
            self.agent.acted[t.stream] = self.agent.acted.get(t.stream, 0) + 1


# ---- remembered steps -------------------------------------------------------------------------------------


class Seen:
    """Remembered steps of a deterministic environment by mission (the state's task).

    Each state and action is remembered once.

    Attributes:
        steps: Steps by mission, then by state and action.
        new: Missions and steps not yet returned by :meth:`news`.
        starts: Latest first states of each mission, oldest first.
        actions: All actions that were ever admissible.
        running: Streams whose episode has begun and not ended.
    """

    def __init__(self) -> None:
        self.steps: dict[str, dict[Any, Step]] = {}
        self.new: list[tuple[str, Step]] = []
        self.starts: dict[str, list[Any]] = {}
        self.actions: tuple[str, ...] = ()
        self.running: set[int] = set()

    def __len__(self) -> int:
        return sum(map(len, self.steps.values()))

    def take_in(self, t: Transition) -> Step:
        """Remember a step, if it is new.

        Raises:
            UsageError: if the same action had another result before.
        """
        (step,) = steps_of([t])
        known = self.steps.setdefault(t.state.task, {})
        self.actions = tuple(dict.fromkeys([*self.actions, *t.state.options]))
        if (step.state, step.action) in known:
            refuse_contradictions([known[step.state, step.action], step])
        else:
            known[step.state, step.action] = step
            self.new.append((t.state.task, step))
        return step

    def follow(self, t: Transition, step: Step) -> None:
        """Record the first state of an episode, and whether the episode continues."""
        if t.stream not in self.running:
            starts = [state for state in self.starts.get(t.state.task, []) if state != step.state]
            self.starts[t.state.task] = [*starts, step.state][-LATELY:]
            self.running.add(t.stream)
        if t.done:
            self.running.discard(t.stream)

    def news(self) -> dict[str, list[Step]]:
        """Return the steps since the last call, by mission."""
        found: dict[str, list[Step]] = {}
        for mission, step in self.new:
            found.setdefault(mission, []).append(step)
        self.new = []
        return found

    def of(self, *missions: str) -> list[Step]:
        """Return the steps of the named missions."""
        return [step for mission in missions for step in self.steps[mission].values()]

    def state_dict(self) -> dict[str, Any]:
        """Return all steps and first states as plain values."""
        return {
            "actions": list(self.actions),
            "steps": [(mission, [tuple(s) for s in own.values()]) for mission, own in self.steps.items()],
            "new": [(mission, tuple(step)) for mission, step in self.new],
            "starts": list(self.starts.items()),
            "running": sorted(self.running),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        known = [(mission, map(_step, own)) for mission, own in state["steps"]]
        self.steps = {mission: {(s.state, s.action): s for s in own} for mission, own in known}
        self.new = [(mission, _step(step)) for mission, step in state["new"]]
        self.starts = {mission: [frozen(s) for s in starts] for mission, starts in state["starts"]}
        self.actions, self.running = tuple(state["actions"]), set(state["running"])


def _step(saved: Sequence[Any]) -> Step:
    state, action, reward, done, after = saved
    return Step(frozen(state), action, reward, done, frozen(after))


METHOD = Method(
    "worldcoder",
    WorldCoder,
    "write the world model as code while acting, with optimism as a constraint, and plan in it",
    "Tang, Key and Ellis, WorldCoder: Building World Models by Writing Code and Interacting with the "
    "Environment, NeurIPS 2024",
    leaf="LLM4RL / world model",
    environments="environments with raw states and without chance",
    reads={"raw"},
    models={"lm": ("generate",)},
    suggested=("openai:gpt-4o-mini", "scripted:modeller?repair=0.5"),
    roles=("world model",),
)
