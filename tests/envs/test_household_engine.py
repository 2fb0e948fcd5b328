"""Our household simulator against the real TextWorld engine: every text, command and win, exactly.

Skipped where the engine (extra ``alfworld``) is not installed. ``HUNCH_ENGINE_GAMES`` sets the number of
games for each kind of task, ``HUNCH_ENGINE_SEED`` which games.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from hunch.envs.household.generator import Recipe, generate
from hunch.envs.household.goals import KINDS, Goal, recognise
from hunch.envs.household.house import House
from hunch.envs.household.oracle import plan
from hunch.envs.household.pddl import parse
from hunch.envs.household.problem import Wording, read, write
from hunch.envs.household.simulator import Simulator

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("alfworld", "textworld", "fast_downward")),
        reason="the real engine is not installed (extra alfworld)",
    ),
]

GAMES = int(os.environ.get("HUNCH_ENGINE_GAMES", "16"))
SEED = int(os.environ.get("HUNCH_ENGINE_SEED", "0"))
STEPS = 60
OLD = Wording(put_in_on=True, arrive_at_place=True, help=False)
BAD_COMMANDS = (
    "",
    "dance",
    "go to",
    "take mug 1",
    "open the door",
    "put mug 1 in/on desk 1",
    "examine mug 1",
    "go to moon 1",
)


class Engine:
    """The real engine, remembering two pure functions: a problem's translation and a command's text."""

    def __init__(self) -> None:
        # Importing alfworld sets this and makes a folder of that name; loading a game rewrites sys.argv.
        os.environ.setdefault("ALFWORLD_DATA", tempfile.mkdtemp())
        import fast_downward
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from alfworld.info import ALFRED_PDDL_PATH, ALFRED_TWL2_PATH
        from textworld import EnvInfos
        from textworld.envs.pddl import PddlEnv

        self.domain = Path(ALFRED_PDDL_PATH).read_text()
        self.grammar = Path(ALFRED_TWL2_PATH).read_text()
        remember_translations(fast_downward)
        remember_commands()
        self.env = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)

    def texts(self, wording: Wording) -> tuple[str, str]:
        """Domain and grammar; the old ones differ from the shipped ones as the 0.4 release notes say."""
        if wording == Wording():
            return self.domain, self.grammar
        grammar = re.sub(r"action help \{.*?\n\}\n", "", self.grammar, flags=re.DOTALL)
        grammar = grammar.replace("You arrive at {r.name}.", "You arrive at {lend.name}.")
        grammar = grammar.replace("move {o} to {r}", "put {o} in/on {r}")
        grammar = grammar.replace(
            "You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."
        )
        return re.sub(r"\(:action help.*?\n\)\n", "", self.domain, flags=re.DOTALL), grammar

    def start(self, path: Path):
        argv = sys.argv[:]
        self.env.load(str(path))
        state = self.env.reset()
        sys.argv[:] = argv
        return state


def remember_translations(fast_downward) -> None:
    translate, known = fast_downward.pddl2sas, {}

    def pddl2sas(domain, problem, verbose=False, optimize=False):
        # The planner's own translation (optimize) is never used here.
        if (domain, problem) not in known:
            known.clear()
            known[domain, problem] = translate(domain, problem, verbose=verbose)
        return known[domain, problem]

    fast_downward.pddl2sas = pddl2sas


def remember_commands() -> None:
    from textworld.envs.pddl.textgen import ContextSensitiveGrammar

    derive = ContextSensitiveGrammar.derive

    def remembering(self, start, context):
        if start.startswith("#"):
            return derive(self, start, context)
        known = self.__dict__.setdefault("known_commands", {})
        key = (start, tuple((ph.name, var.name) for ph, var in context["mapping"].items()))
        if key not in known:
            known[key] = derive(self, start, context)
        return known[key]

    ContextSensitiveGrammar.derive = remembering


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


def disturbed(problem, rng):
    """Make a problem as untidy as ALFWorld's own: identifiers, fixtures, states and places of all sorts."""
    names = {name: renamed(name, rng) for name, kind in problem.objects if "_bar_" in name}
    facts = {tuple(names.get(word, word) for word in fact) for fact in problem.facts}
    objects = {names.get(name, name): kind for name, kind in problem.objects}
    things = sorted(fact[1] for fact in facts if fact[0] == "pickupable")
    places = sorted(name for name, kind in objects.items() if kind == "location")
    for state in ("isclean", "ishot", "iscool", "issliced", "toggleable", "istoggled"):
        facts |= {(state, thing) for thing in rng.sample(things, rng.randint(0, 2))}
    facts |= {("opened", fact[1]) for fact in facts if fact[0] == "openable" and rng.random() < 0.2}
    outer = sorted(fact[1] for fact in facts if fact[0] == "isreceptacleobject")
    if outer:
        facts |= {("inreceptacleobject", thing, rng.choice(outer)) for thing in rng.sample(things, 2)}
        facts = {fact for fact in facts if fact[0] != "inreceptacleobject" or fact[1] != fact[2]}
    for kind in ("window", "lightswitch", "tomato"):
        fixture = f"{kind}_bar_{rng.random():.3f}".replace(".", "_dot_")
        objects |= {fixture: "object", f"{kind}type": "otype"}
        facts |= {("objecttype", fixture, f"{kind}type"), ("objectatlocation", fixture, rng.choice(places))}
        facts |= {("sliceable", fixture)} if kind == "tomato" else {("ison", fixture)}
    if rng.random() < 0.3:
        facts = {fact for fact in facts if fact[0] != "atlocation"} | {
            ("atlocation", "agent1", rng.choice(places))
        }
    return replace(
        problem,
        objects=tuple(sorted(objects.items())),
        facts=tuple(sorted(facts)),
        task=rng.choice((problem.task, "Put it, please, on the lady's desk; it's hers.")),
    )


def shout(path: Path) -> None:
    """Letter case and costs make no difference."""
    game = json.loads(path.read_text())
    game["pddl_problem"] = game["pddl_problem"].upper().replace("(:INIT", "(:INIT (= (TOTAL-COST) 0)")
    path.write_text(json.dumps(game))


def renamed(name: str, rng: random.Random) -> str:
    kind, _, rest = name.partition("_bar_")
    numbers = [
        f"{rng.choice(('_minus_', '_plus_'))}{rng.uniform(0, 20):05.2f}".replace(".", "_dot_") for _ in "xyz"
    ]
    return "_bar_".join([kind, *numbers, *re.findall(r"[a-z]+basin", rest)])


def chosen(simulator: Simulator, rng: random.Random) -> str:
    """A command that is rather about handling things than about walking."""
    if rng.random() < 0.03:
        return rng.choice(BAD_COMMANDS)
    commands = simulator.commands
    weights = [
        0.15 if command.startswith("go to") else 0.3 if command == "help" else 1.0 for command in commands
    ]
    return rng.choices(commands, weights)[0]


def compare(engine: Engine, path: Path, choose) -> int:
    """Play what ``choose`` chooses on both sides until that is None; return how many states were compared."""
    simulator = Simulator(House(read(path)))
    state = engine.start(path)
    history = []
    text = simulator.introduction()
    states = 0
    while True:
        states += 1
        assert text == state.feedback, history
        assert list(simulator.commands) == state["admissible_commands"], history
        assert simulator.won == state["won"], history
        command = choose(simulator, len(history))
        if command is None:
            return states
        history.append(command)
        text = simulator.step(command)
        state, _, _ = engine.env.step(command)


def follow(commands):
    return lambda simulator, steps: commands[steps] if steps < len(commands) else None


def walk(rng: random.Random):
    """Random play that now and then follows the oracle, so that goals are reached as well."""

    def choose(simulator: Simulator, steps: int) -> str | None:
        if steps == STEPS:
            return None
        way = plan(simulator) if rng.random() < 0.15 else None
        return way[0] if way else chosen(simulator, rng)

    return choose


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["generated", "uniform", "old wording", "disturbed"])
def test_the_simulator_is_the_engine(engine, tmp_path, kind, variant):
    path, states = tmp_path / "game.tw-pddl", 0
    for index in range(-(-GAMES // 4)):
        rng = random.Random(f"{kind} {variant} {SEED} {index}")
        placement = "uniform" if variant == "uniform" else "typical"
        problem = generate(
            Recipe(kind, rng.choice(("train", "unseen")), placement, SEED, rng.randrange(10_000))
        )
        wording = OLD if variant == "old wording" else Wording()
        problem = replace(problem, wording=wording)
        if variant == "disturbed":
            problem = disturbed(problem, rng)
        domain, grammar = engine.texts(wording)
        write(problem, path, domain=domain, grammar=grammar)
        if variant == "disturbed":
            shout(path)
        assert read(path) == problem
        states += compare(engine, path, walk(rng))
    print(f"{kind}, {variant}: {states} states compared")


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_accepts_the_oracle(engine, tmp_path, kind):
    path = tmp_path / "game.tw-pddl"
    for index in range(-(-GAMES // 4)):
        problem = generate(Recipe(kind, seed=SEED, index=index))
        domain, grammar = engine.texts(problem.wording)
        write(problem, path, domain=domain, grammar=grammar)
        commands = plan(Simulator(House(problem)))
        assert commands
        compare(engine, path, follow(commands))
        assert engine.env.state["won"]


@pytest.mark.parametrize("kind", KINDS)
def test_alfworlds_own_goals_are_recognised(engine, kind):
    from alfworld.gen.goal_library import gdict

    name = {
        "pick": "pick_and_place_simple",
        "examine": "look_at_obj_in_light",
        "picktwo": "pick_two_obj_and_place",
    }.get(kind, f"pick_{kind}_then_place_in_recep")
    target = "DeskLamp" if kind == "examine" else "CounterTop"
    text = gdict[name]["pddl"].format(obj="Mug", recep=target, toggle=target).replace("#", "-")
    # The library's text goes on to close the problem that it stands in.
    _, condition = parse(text.strip().removesuffix(")"))
    goal = recognise(condition)
    assert goal == Goal(kind, "mug", target.lower())
    sentences = [
        line.format(obj=goal.object, recep=goal.target, toggle=goal.target)
        for line in gdict[name]["templates"]
    ]
    assert sentences == [goal.sentence(0), goal.sentence(1)]
