"""World models as code: search rules with equal numbers of calls, and planning in the learned code.

hunch study code-world-models
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hunch
from hunch.envs.design.dynamics import CART_POLE
from hunch.envs.design.program_model import ProgramModel
from hunch.envs.design.running import box
from hunch.envs.design.world_model import START, WorldModelCode
from hunch.methods.program.gif_mcts import GIFMCTSConfig
from hunch.rl.cem import CEM
from hunch.rl.episodes import evaluate
from hunch.rl.search import MCTS
from hunch.rl.small_models import tabulate, value_iteration
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch.rl.world_model import LookUp, TrueCopy, WorldModel, frozen, measure
from hunch.roles.writer.programs import best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.plans import plan
from hunch_studies.programs_funsearch import attempts_of
from hunch_studies.study import Part, Scale, Study, runs_of
from hunch_studies.worlds.pendulum import nearest

CALLS = 50
"""Programs per run, as in the paper with the smaller model."""
RATES = {"CliffWalking": (0.1, 0.3, 0.6), "Taxi": (0.3,), "CartPole": (0.3,), "Pendulum": (0.3,)}
"""Repair rates of the writer; its other dials are fixed."""
WRITER = "scripted:modeller?bugs=0.3&repair={}&break=0.1&crash=0.1"
LINES: dict[str, dict[str, Any]] = {
    "GIF-MCTS": {"search": "tree"},
    "Thompson (WorldCoder's rule)": {"search": "thompson"},
    "linear refinement": {"search": "linear"},
    "best of n": {"search": "single"},
    "GIF-MCTS, feedback of another program": {"search": "tree", "feedback": "shuffled"},
    "GIF-MCTS, no feedback": {"search": "tree", "feedback": "blind"},
}
CONTROLS_AT = ("CliffWalking", 0.3)
"""Base environment and repair rate for the controls of the feedback."""
FEWER = {"CartPole": 5, "Pendulum": 10}
"""Base environments with fewer seeds, because their runs take longer."""
PLANNED = 3
"""Number of winners with which planning is measured."""
EPISODES = {"CliffWalking": 5, "Taxi": 5, "CartPole": 5, "Pendulum": 3}
"""Episodes per measurement of a planner."""
CART_STEPS = 60
"""Step limit of CartPole there; a random player lasts about 22 steps."""
LARGE = ("CartPole", "Pendulum")
"""Base environments with too many states to visit all of them."""
HORIZON = 20
"""Steps of a plan in Pendulum: a second, in which a swing comes to its end."""
PLAYED = 5
"""Steps of a plan that are played before the next plan."""
PLANS = CEM(population=32, elites=8, generations=3, spread=2.0, noise=0.5)
"""Search of a plan there: fewer plans than the paper's 1,000, so that it is done in minutes."""


# ---- search -----------------------------------------------------------------------------------------------


def arms(base: str, calls: int) -> tuple[Arm, ...]:
    """Return the rules of search, at each repair rate of the writer."""
    return tuple(
        arm(base, repair, line, calls)
        for repair in RATES[base]
        for line in LINES
        if (base, repair) == CONTROLS_AT or "feedback" not in LINES[line]
    )


def arm(base: str, repair: float, line: str, calls: int) -> Arm:
    """Return the runs of a rule."""
    config = RunConfig(
        method="gif-mcts",
        env="hunch/WorldModelCode-v0",
        env_options={"base": f"hunch/{base}-v0"},
        lm=WRITER.format(repair),
        steps=calls,
        options=GIFMCTSConfig(give_up=0, **LINES[line]),
    )
    return Arm(label(repair, line), config)


def label(repair: float, line: str) -> str:
    """Return the label of a rule at a repair rate."""
    return f"{line}, repair rate {repair}"


def winner(run: Path) -> dict[str, Any]:
    """Return what a run came to."""
    attempts = attempts_of(run)
    top = best(attempts)
    return {
        "fitness": top.fitness if top else 0.0,
        "held_out": top.components["held_out_exact"] if top else 0.0,
        "first": attempts[0].fitness or 0.0,
        "solved": next((a.number + 1 for a in attempts if a.fitness == 1.0), None),
        "program": top.program if top else "",
    }


def part(base: str, scale: Scale) -> Part:
    """Return the searches in an environment."""
    calls = max(4, round(CALLS * scale.share))
    most = FEWER.get(base, 0)
    told = partial(search_table, base, min(scale.seeds, most or scale.seeds), calls)
    return Part(base, arms(base, calls), beside=told, most=most)


def winners(base: str, scale: Scale, folder: Path) -> list[dict[str, Any]]:
    """Return the winners of GIF-MCTS in an environment, given the folder of another part."""
    own = part(base, scale)
    (found,) = (arm for arm in own.arms if arm.label == label(0.3, "GIF-MCTS"))
    return [winner(run) for run in runs_of(found, own.seeds(scale), folder.parent / own.folder)]


def search_table(base: str, seeds: int, calls: int, folder: Path) -> str:
    """Return the result of each rule by repair rate, and the lead of the tree search."""
    found = {a.label: [winner(run) for run in runs_of(a, seeds, folder)] for a in arms(base, calls)}
    head = (
        "| repair rate | arm | fitness | right held out | all right | calls until then |\n" + "|---" * 6 + "|"
    )
    lines = [head]
    for repair in RATES[base]:
        own = {line: rows for line in LINES if (rows := found.get(label(repair, line)))}
        lines += [f"| {repair} | {line} | {_cells(rows)} |" for line, rows in own.items()]
        zero = over_seeds([row["first"] for row in own["best of n"]])
        lines.append(f"| {repair} | zero-shot, the first of these | {three(zero)} | | | 1 |")
    ahead = [
        f"- Repair rate {repair}: fitness of GIF-MCTS minus that of {line}, paired by seed: "
        f"{three(_difference(found[label(repair, 'GIF-MCTS')], found[label(repair, line)]))}."
        for repair in RATES[base]
        for line in ("best of n", "linear refinement", "Thompson (WorldCoder's rule)")
    ]
    return "\n".join(lines) + "\n\n" + "\n".join(ahead)


def _cells(rows: Sequence[dict[str, Any]]) -> str:
    solved = sorted(row["solved"] or np.inf for row in rows)
    half = solved[(len(solved) - 1) // 2]
    median = "not in half of the runs" if half == np.inf else f"{half:.0f} in the median"
    return " | ".join(
        [
            three(over_seeds([row["fitness"] for row in rows])),
            three(over_seeds([row["held_out"] for row in rows])),
            f"{sum(row['solved'] is not None for row in rows)} of {len(rows)}",
            median,
        ]
    )


def _difference(ours: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> Estimate:
    return over_pairs([a["fitness"] - b["fitness"] for a, b in zip(ours, other, strict=True)])


def three(estimate: Estimate) -> str:
    """An estimate with its interval, or in parentheses with the range of few seeds, three decimals each."""
    if estimate.range_of:
        return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
    return estimate.short(digits=3)


# ---- planning ---------------------------------------------------------------------------------------------


class Planning:
    """Plays by planning in a world model.

    Where the model is small, it visits all states (value iteration, discount 0.99). Otherwise it is the
    paper's tree search, one call of the model for all streams together; in Pendulum the cross-entropy method
    on sequences of torques, each rounded to one that the environment has.

    Args:
        model: The world model.
        actions: The actions, the same in all states.
        base: The environment.
        seed: Seed of the search.
    """

    def __init__(self, model: WorldModel, actions: tuple[str, ...], base: str, seed: int) -> None:
        self.model, self.actions, self.base = model, actions, base
        self.rng = np.random.default_rng(seed)
        self.known: dict[Any, str] = {}
        self.ways: dict[int, Sequence[float]] = {}  # by stream: the rest of a plan
        self.search = MCTS(simulations=25, depth=100, c=1.0, gamma=0.99, chance=False)

    def act(self, states: Sequence[hunch.core.State]) -> list[str]:
        """Return the best action of each state according to the model."""
        here = [frozen(state.raw) for state in states]
        if self.base not in LARGE:
            return [self._looked_up(state) for state in here]
        if self.base == "Pendulum":
            return [self._torque(s.stream, raw) for s, raw in zip(states, here, strict=True)]
        rngs = [np.random.default_rng(seed) for seed in self.rng.integers(2**63, size=len(here))]
        roots = self.search.search(self.model, here, lambda state: self.actions, rngs)
        return [str(root.best) for root in roots]

    def _looked_up(self, state: Any) -> str:
        if state not in self.known:
            table = tabulate(self.model, [state], lambda state: self.actions, self.rng)
            q = value_iteration(table, 0.99)
            self.known |= {s: self.actions[int(row.argmax())] for s, row in zip(table.states, q, strict=True)}
        return self.known[state]

    def _torque(self, stream: int, state: Any) -> str:
        first, *later = (
            self.ways.pop(stream, ())
            or plan(self.model, state, self.rng, horizon=HORIZON, bound=2.0, name=nearest, cem=PLANS)[:PLAYED]
        )
        self.ways[stream] = later
        return nearest(float(first))

    def observe(self, transitions: Sequence[hunch.core.Transition]) -> None:
        """Forget the plans of finished episodes."""
        for t in transitions:
            if t.done:
                self.ways.pop(t.stream, None)


def _made(base: str) -> Any:
    return hunch.make(f"hunch/{base}-v0", max_steps=CART_STEPS if base == "CartPole" else 100)


def planned(base: str, model: Callable[[], WorldModel] | None, seed: int) -> float:
    """Return the mean return of planning in a model in the true environment; None plays at random."""
    env = _made(base)
    env.reset(seed=0)
    actions = tuple(env.action_space.actions)
    envs = [_made(base) for _ in range(EPISODES[base])]

    def player(seed: int) -> Any:
        if model is None:
            return _Random(seed)
        return Planning(model(), actions, base, seed)

    return float(np.mean([episode.episode_return for episode in evaluate(player, envs, len(envs), seed)]))


class _Random:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def act(self, states: Sequence[hunch.core.State]) -> list[str]:
        return [str(self.rng.choice(state.options)) for state in states]

    def observe(self, transitions: Sequence[hunch.core.Transition]) -> None:
        pass


def _true(base: str) -> TrueCopy:
    env = _made(base)
    env.reset(seed=0)
    return TrueCopy(env)


def planning_table(scale: Scale, folder: Path) -> str:
    """Return of the planner in winners of the search, in the true simulator, and at random."""
    lines = ["| base | model | right held out | return |", "|---|---|---|---|"]
    for base in RATES:
        rows = [(seed, row) for seed, row in enumerate(winners(base, scale, folder)) if row["program"]]
        lines.append(f"| {base} | none: random actions | | {planned(base, None, 0):.1f} |")
        lines.append(
            f"| {base} | the true simulator | 1.000 | {planned(base, partial(_true, base), 0):.1f} |"
        )
        for seed, row in rows[:PLANNED]:
            with box().load(row["program"], "step") as program:
                value = planned(base, partial(ProgramModel, program), 0)
            lines.append(f"| {base} | program of seed {seed} | {row['held_out']:.3f} | {value:.1f} |")
    return "\n".join(lines) + f"\n\n{speed()}"


def speed(trees: int = 64) -> str:
    """Model steps per second of tree search in CartPole, in a sandboxed program and in the true simulator."""
    told = []
    with box().load(CART_POLE, "step") as program:
        for name, model in (
            ("the program in the sandbox", ProgramModel(program)),
            ("the simulator", _true("CartPole")),
        ):
            counted = _Counted(model)
            rngs = [np.random.default_rng(i) for i in range(trees)]
            begun = time.perf_counter()
            MCTS(chance=False).search(
                counted, [(0.0, 0.0, 0.0, 0.0)] * trees, lambda state: ("push left", "push right"), rngs
            )
            told.append(f"{counted.steps / (time.perf_counter() - begun):,.0f} in {name}")
    return f"Steps of the model per second, {trees} trees side by side in CartPole: {', '.join(told)}."


class _Counted:
    def __init__(self, model: WorldModel) -> None:
        self.model, self.steps = model, 0

    def step(self, states: Any, actions: Any, rngs: Any) -> Any:
        self.steps += len(states)
        return self.model.step(states, actions, rngs)


def quality_table(scale: Scale, folder: Path) -> str:
    """One-step and five-step accuracy, and speed, of look-up, a program of the search, and the truth."""
    lines = ["| base | model | right after 1 step | after 5 | steps per second |", "|---|---|---|---|---|"]
    for base in RATES:
        env: WorldModelCode = hunch.make("hunch/WorldModelCode-v0", base=f"hunch/{base}-v0").unwrapped  # type: ignore[assignment]
        rows = winners(base, scale, folder)
        held = env.further(5)
        with box().load(rows[0]["program"] or START, "step") as program:
            models: dict[str, WorldModel] = {
                "look-up in the data": LookUp(env.buffer),
                "program of seed 0": ProgramModel(program),
                "the true simulator": _true(base),
            }
            for name, model in models.items():
                q = measure(model, held, depth=5)
                cells = f"{q.by_depth[0]:.3f} | {q.by_depth[4]:.3f} | {q.steps_per_second:,.0f}"
                lines.append(f"| {base} | {name} | {cells} |")
    return "On five further episodes, played at random.\n\n" + "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        *(part(base, scale) for base in RATES),
        Part("Models beside each other", (), beside=partial(quality_table, scale)),
        Part("Planning in the code", (), beside=partial(planning_table, scale)),
    ]


STUDIES = {
    "code-world-models": Study(
        "code-world-models",
        "Does tree search find better world models than simpler rules with the same number of calls, and are "
        "they good enough for planning?",
        "On 18 environments GIF-MCTS found discrete world models of accuracy 0.84 with Llama-3-70B (50 "
        "calls) and 0.91 with GPT-4 Turbo (10 calls), ahead of zero-shot and of WorldCoder's rule; planning "
        "in them returned 0.76 and 0.81 of the return of planning in the true simulator, relative to random "
        "play (Dainese et al., NeurIPS 2024).",
        "The writer is a script (L0) that knows the dynamics and plants errors; it acts on feedback as often "
        "as its repair rate says, damages a line in one revision of ten, and misspells a name in one answer "
        "of ten. There are four environments. Planning visits all states of CliffWalking and Taxi (value "
        f"iteration); in CartPole it is the paper's tree search, with episodes of {CART_STEPS} steps, and in "
        "Pendulum the paper's cross-entropy method with fewer and shorter plans.",
        _parts,
        seeds=30,
    )
}
