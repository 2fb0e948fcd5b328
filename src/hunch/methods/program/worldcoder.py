"""WorldCoder: an optimistic world model as code, learnt while acting (Tang, Key and Ellis, NeurIPS 2024).

    act at random for some steps
    repeat
        write transition(state, action), and for each mission reward(state, action, next state), so that
            they predict all steps so far, and
            optimism: in the model, a planner finds a path to a reward from each of the mission's latest
            first states, at most three different ones
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
from hunch.envs.design.transitions import refuse_contradictions
from hunch.methods.method import Method
from hunch.methods.program.coding import SPACING, CodingAgent, CodingConfig
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl.small_models import Searched, breadth_first
from hunch.rl.world_model import Prediction, Step, frozen, right, steps_of
from hunch.roles.world_model.program import NO_WAY, CodedModel, Piece, problem_of, tried
from hunch.roles.writer.programs import Attempt
from hunch.roles.writer.search import Thompson

LATELY = 3
"""Number of first states that are remembered per mission (ours)."""
FEW_STEPS = 10
"""After this multiple of ``warmup`` the first program is written even if fewer of the steps differ (ours)."""


@dataclass(frozen=True, kw_only=True)
class WorldCoderConfig(CodingConfig):
    """Settings of WorldCoder."""

    optimism: bool = True
    """Require that the world model contains a path to a reward, from the first state of each mission."""
    warmup: NonNegativeInt = 10
    """Random steps before the first program is written (released code). Equal ones count once, but ten times
    as many steps are enough in any case."""
    epsilon: Share = 0.05
    """Share of random steps after the warm-up (released code)."""
    refinements: PositiveInt = 30
    """Maximum programs written after an environment step that is new (released code: 30 to 50)."""
    beta_weight: PositiveFloat = 5.0
    """Weight of the share of explained steps in the Beta distributions over programs (released code)."""
    most: PositiveInt = 2_000
    """Number of visited states after which the planner gives up (our choice)."""


class WorldCoder(CodingAgent):
    """The agent of WorldCoder; arguments as for :class:`~hunch.methods.program.coding.CodingAgent`."""

    config_class: ClassVar[type[Any]] = WorldCoderConfig
    prompt = staticmethod(GIFMCTS.prompt)

    def begin(self, world: World, seed: int) -> None:
        """Forget all steps except recorded ones, and all programs."""
        self.seed = seed
        self.written = 0  # programs
        self.attempted = 0  # evaluations of programs, by which they are numbered
        self.seen = Seen()
        self.settled: dict[str, bool] = {}  # by mission: whether its programs explain everything
        self.acted: dict[int, int] = {}  # steps so far, by stream; they seed the random choices
        # Paths to a reward by mission and state, until the programs change; None where there is none.
        self.paths: dict[tuple[str, Any], list[str] | None] = {}
        self.transition: Piece | None = None
        self.rewards: dict[str, Piece] = {}  # by mission
        self._loaded: dict[tuple[str, str], Patient] = {}
        for episode in world.data:
            steps = [self.seen.take_in(t) for t in episode]
            self.seen.start(episode[0].state.task, steps[0].state)

    # ---- acting ---------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the next action of the planned path, or with probability epsilon a random one."""
        return [self._choose(state) for state in states]

    def _choose(self, state: State) -> str:
        rng = np.random.default_rng([self.seed, 0, state.stream, self.acted.get(state.stream, 0)])
        at_random = rng.random() < self.config.epsilon
        path = None if at_random else self._planned(state)
        if path and path[0] in state.options:
            return path[0]
        return state.options[int(rng.integers(len(state.options)))]

    def _planned(self, state: State) -> list[str] | None:
        """Return the path from a state; it is searched once until the programs change."""
        key = state.task, frozen(state.raw)
        if key not in self.paths:
            visited: list[Any] = []
            searched = self._plan(state, visited)
            self.paths[key] = searched.path
            if searched.path is None and searched.everywhere:  # then what was visited has no path either
                self.paths |= dict.fromkeys([(state.task, other) for other in visited])
        return self.paths[key]

    def _plan(self, state: State, visited: list[Any]) -> Searched:
        """Search the shortest path to a reward in the current model; without a model there is none."""
        model = self._model(state.task)
        if model is None:
            return Searched(None, False)
        return self._path(model, frozen(state.raw), visited)

    def _model(self, mission: str) -> CodedModel | None:
        """Return the current programs, if both can be run, with the time of a trial for their calls."""
        reward = self.rewards.get(mission)
        if self.transition is None or self.transition.current is None:
            return None
        if reward is None or reward.current is None:
            return None
        if self.transition.current.fitness is None or reward.current.fitness is None:
            return None
        model = CodedModel(
            self._loaded_function(self.transition.current.program, "transition"),
            self._loaded_function(reward.current.program, "reward"),
        )
        model.transition.renew()  # each use of it, such as a plan, may take as long as a trial
        model.reward.renew()
        return model

    def _loaded_function(self, program: str, function: str) -> Patient:
        """Return a function of a program, which is loaded once until the programs change."""
        if (program, function) not in self._loaded:
            self._loaded[program, function] = Patient.load(program, function)
        return self._loaded[program, function]

    # ---- steps ----------------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember the steps that are new.

        Raises:
            UsageError: if the same action had another result in the same state before.
        """
        for t in sorted(transitions, key=lambda t: t.stream):
            self.acted[t.stream] = self.acted.get(t.stream, 0) + 1
            mission = t.state.task
            step = self.seen.take_in(t)
            path = self.paths.get((mission, step.state))
            if path and path[0] == step.action and path[1:] and not t.done:
                self.paths.setdefault((mission, step.next_state), path[1:])  # the rest of the plan
            self.seen.follow(t, step)

    # ---- writing --------------------------------------------------------------------------------------

    @property
    def first_update(self) -> int:
        """The first step at which a program may be written."""
        return int(self.config.warmup)

    def learn(self) -> dict[str, float]:
        """Write and refine programs if new steps contradict them, or no path to a reward is known."""
        warmup = self.config.warmup
        if len(self.seen) < warmup and sum(self.acted.values()) < FEW_STEPS * warmup:
            return {}
        for mission, steps in self.seen.news().items():
            if not self.settled.get(mission) or self._surprised(mission, steps):
                self._explain(mission)
        settled = sum(self.settled.values()) / max(len(self.settled), 1)
        return {"programs": float(self.written), "explained_missions": settled}

    def _surprised(self, mission: str, steps: Sequence[Step]) -> bool:
        """Return whether the current programs predict one of the steps wrongly."""
        model = self._model(mission)
        if model is None:
            return True
        predictions = model.step([step.state for step in steps], [step.action for step in steps])
        return not all(right(prediction, step) for prediction, step in zip(predictions, steps, strict=True))

    def _explain(self, mission: str) -> None:
        """Refine both functions until they explain everything, or the limit is reached."""
        self.paths.clear()
        while self._loaded:
            _, function = self._loaded.popitem()
            function.close()
        self.transition = self.transition or Piece(self._problem("transition", mission))
        if mission not in self.rewards:
            self.rewards[mission] = Piece(self._problem("reward", mission))
        for piece in (self.transition, self.rewards[mission]):
            self._begin_anew(piece, mission)
        for _ in range(self.config.refinements):
            wanting = self._wanting(mission)
            if wanting is None:
                break
            self._refine(wanting, mission)
        self.settled[mission] = self._wanting(mission) is None

    def _begin_anew(self, piece: Piece, mission: str) -> None:
        """Evaluate the current program on all steps so far."""
        last = piece.current
        piece.current = None
        piece.since = len(piece.attempts)
        piece.search = Thompson(self.config.beta_weight)
        if last is not None:
            again = self._judged(replace(last, number=self._number(), group=-1), piece, mission)
            piece.add(again, self._rng(again.number))

    def _wanting(self, mission: str) -> Piece | None:
        """Return the function to refine next; None if everything is explained."""
        transition = self.transition
        reward = self.rewards[mission]
        assert transition is not None
        for piece in (transition, reward):
            if piece.current is None or not self._explains(piece.current):
                return piece
        if reward.current is not None and reward.current.fitness == 1.0:
            return None
        # All steps are explained, and there is no path to a reward: either may be wrong, so they take turns.
        return reward if self.written % 2 == 0 else transition

    def _explains(self, attempt: Attempt) -> bool:
        """Return whether it predicts all steps, whether or not there is a path to a reward."""
        return attempt.components.get("explained") == 1.0

    def _refine(self, piece: Piece, mission: str) -> None:
        """Let the writer refine a program of a function, or write the first one, and evaluate the result."""
        number = self._number()
        (request,) = piece.search.ask(1, self._rng(number))  # Thompson sampling chooses the parent
        parents = request.parents
        feedback = parents[-1].outcome_text() if parents else ""
        if piece is self.transition and parents and self._explains(parents[-1]):
            feedback += NO_WAY  # otherwise there would be nothing to refine
        first = self.seed * SPACING + self.written
        problem = self._problem(piece.problem.function, mission)  # with the steps and actions so far
        (program,) = self.programs_by(problem, parents, feedback, 1, first)
        self.written += 1
        ancestry = tuple(parent.number for parent in parents)
        attempt = Attempt(number, program, None, parents=ancestry, shown=feedback)
        piece.add(self._judged(attempt, piece, mission), self._rng(number))
        reward = self.rewards[mission]
        if piece is self.transition and reward.current is not None:
            reward.current = self._judged(reward.current, reward, mission)  # there may be a path now

    def _judged(self, attempt: Attempt, piece: Piece, mission: str) -> Attempt:
        """Return the attempt with its share of explained steps; a path to a reward counts as one step."""
        missions = [mission] if piece.problem.function == "reward" else list(self.seen.steps)
        judged = tried(attempt, piece.problem, self.seen.of(*missions))
        if piece is self.transition or judged.fitness is None or not self.config.optimism:
            return judged
        # Optimism: of n steps and the path, n + 1 in all, the fitness is the share that holds. A path is
        # searched only where all steps are explained; before that it counts as missing.
        n = len(self.seen.steps[mission])
        if judged.fitness < 1.0:
            return replace(judged, fitness=judged.fitness * n / (n + 1))
        if self._finds_a_path(judged.program, mission):
            return judged
        return replace(judged, fitness=n / (n + 1), feedback=judged.feedback + NO_WAY)

    def _finds_a_path(self, reward_program: str, mission: str) -> bool:
        """Return whether the planner finds a reward from the latest first states."""
        current = self.transition.current if self.transition else None
        if current is None or current.fitness is None:
            return False
        with (
            Patient.load(current.program, "transition") as transition,
            Patient.load(reward_program, "reward") as reward,
        ):
            model = CodedModel(transition, reward)
            paths = [self._path(model, start, []).path for start in self.seen.starts.get(mission, [])]
        return None not in paths

    def _path(self, model: CodedModel, state: Any, visited: list[Any]) -> Searched:
        """Search the shortest path to a reward in a model; visited states are added to ``visited``."""

        def actions(state: Any) -> tuple[str, ...]:
            visited.append(state)
            return self.seen.actions

        def pays(step: Prediction) -> bool:
            return (step.reward or 0.0) > 0

        return breadth_first(model, state, actions, pays, np.random.default_rng(0), most=self.config.most)

    def _problem(self, function: str, mission: str) -> Problem:
        return problem_of(function, mission, self.seen.of(mission), self.seen.actions)

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
        twin.seed = seed
        twin.acted = {}
        return Planned(twin)

    def explain(self, state: State) -> Explanation:
        """Return the planned path as a note."""
        path = self._plan(state, []).path
        return Explanation(note="no way to a reward is known" if path is None else " > ".join(path))

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
            "ways": [(*key, path) for key, path in self.paths.items()],  # the name in all checkpoints
            "transition": self.transition and self.transition.state(),
            "rewards": [(mission, piece.state()) for mission, piece in self.rewards.items()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.written, self.attempted = state["counters"]
        self.seen.load_state_dict(state["seen"])
        self.settled = dict(state["settled"])
        self.acted = dict(state["acted"])
        self.paths = {}
        for mission, place, path in state["ways"]:
            self.paths[mission, frozen(place)] = path and list(path)
        self.transition = None
        if state["transition"]:
            self.transition = self._piece("transition", next(iter(self.seen.steps)), state["transition"])
        self.rewards = {mission: self._piece("reward", mission, saved) for mission, saved in state["rewards"]}

    def _piece(self, function: str, mission: str, saved: Mapping[str, Any]) -> Piece:
        """Return a function with its programs, from a checkpoint."""
        piece = Piece(self._problem(function, mission), search=Thompson(self.config.beta_weight))
        piece.attempts = [Attempt.read(line) for line in saved["attempts"]]
        piece.since = saved["since"]
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
            self.start(t.state.task, step.state)
            self.running.add(t.stream)
        if t.done:
            self.running.discard(t.stream)

    def start(self, mission: str, state: Any) -> None:
        """Record the first state of an episode."""
        others = [other for other in self.starts.get(mission, []) if other != state]
        self.starts[mission] = [*others, state][-LATELY:]

    def news(self) -> dict[str, list[Step]]:
        """Return the steps since the last call, by mission."""
        by_mission: dict[str, list[Step]] = {}
        for mission, step in self.new:
            by_mission.setdefault(mission, []).append(step)
        self.new = []
        return by_mission

    def of(self, *missions: str) -> list[Step]:
        """Return the steps of the named missions."""
        return [step for mission in missions for step in self.steps[mission].values()]

    def state_dict(self) -> dict[str, Any]:
        """Return all steps and first states as plain values."""
        return {
            "actions": list(self.actions),
            "steps": [(mission, list(map(tuple, steps.values()))) for mission, steps in self.steps.items()],
            "new": [(mission, tuple(step)) for mission, step in self.new],
            "starts": list(self.starts.items()),
            "running": sorted(self.running),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.steps = {}
        for mission, saved in state["steps"]:
            steps = map(_step, saved)
            self.steps[mission] = {(step.state, step.action): step for step in steps}
        self.new = [(mission, _step(step)) for mission, step in state["new"]]
        self.starts = {mission: [frozen(s) for s in starts] for mission, starts in state["starts"]}
        self.actions = tuple(state["actions"])
        self.running = set(state["running"])


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
