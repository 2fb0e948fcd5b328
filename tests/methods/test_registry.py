"""The rows of methods, and the contract of agents held by every method in it."""

import dataclasses
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hunch
import hunch_contrib
from hunch import Evaluation, lm, methods
from hunch.cli.help import of_method
from hunch.core import Agent, Explanation, State, UsageError
from hunch.methods.registry import CONTRIB
from hunch.methods.reward.motif import PreferenceConfig
from hunch.roles.prior.language import WORDING
from hunch.runs.execute import RunConfig, execute
from hunch.runs.loading import load_agent
from hunch_contrib.goal.rl_adapter import MentorConfig

pytestmark = pytest.mark.filterwarnings("ignore:Captions are collected")  # more than are played here
Q_SMALL = {"hidden": 16, "warmup": 10, "batch_size": 8, "update_every": 2, "k": 2}
PAIRS = {"pairs": 2, "reward_epochs": 1, "n": 2}
SMALL = {
    **Q_SMALL,
    **PAIRS,
    "horizon": 8,
    "width": 8,
    "episodes": 4,
    "max_tokens": 4,
    "refresh": 1,
    "drafts": 2,
    "lm": "scratch?width=16&layers=1&heads=2",
}
TWINS = ("rloo", "ppo-text", "a2c-text", "nlpo", "twosome", "icpi-no-argmax", "inner-monologue")
"""Methods that differ in one step from one that is always checked: grpo, trpo-text, glam, icpi, saycan."""
OWN = ("constitutional", "rain", "syndicom", "gigpo")
"""Methods whose contract has a test of its own, with a smaller model."""
JUDGED = ("constitutional", "rain")
OF_STUDIES = (
    *("alpha-proof", "decision-pretrained", "syndicom", "task-explore", "rl-vlm-f", "vlm-rm"),
    *JUDGED,
)
"""Methods that play in a world of the studies, or with a judge that knows one: ``tests/studies``."""
HERE = [method for method in methods.METHODS.values() if method.name not in OF_STUDIES]
PAGES = Path(__file__).parents[2] / "docs" / "methods"
PAGES_OF = {
    "dqn": ("dqn", "dqn_prior"),
    "dqn-prior-released": ("dqn_prior",),
    "rewarded": ("rewarded", "q_learning"),
    "bc": ("cql_prior", "dqn_prior"),
    "bc-lm": ("cql_prior",),
    "cql": ("cql_prior", "dqn_prior"),
    "cql-prior": ("cql_prior", "dqn_prior"),
    "zero-shot": ("zero_shot", "dqn_prior"),
    "saycan": ("saycan", "inner_monologue", "dqn_prior"),
    "planner-actor-reporter": ("planner_actor_reporter", "saycan", "inner_monologue", "dqn_prior"),
    "inner-monologue": ("saycan", "inner_monologue", "dqn_prior"),
    "nearest-history": ("algorithm_distillation",),
    "in-context-lm": ("algorithm_distillation", "dqn_prior"),
    "icpi-no-argmax": ("icpi",),
    "matching": ("icpi",),
    "tabular-q": ("icpi",),
    "kwon": ("kwon", "q_learning"),
    "vlm-rm": ("vlm_rm", "q_learning"),
    "rl-vlm-f": ("rl_vlm_f", "vlm_rm", "q_learning"),
    "motif": ("motif", "q_learning"),
    "count-bonus": ("q_learning",),
    "ellm": ("ellm", "q_learning"),
    "rnd": ("q_learning",),
    "instruct-ppo": ("instruct_q", "ppo", "dqn_prior"),
    "instruct-q": ("instruct_q", "q_learning", "dqn_prior"),
    "likelihood-value": ("likelihood_value", "instruct_q", "q_learning", "dqn_prior"),
    "rl-adapter": ("rl_adapter", "q_learning"),
    "eureka": ("eureka", "funsearch"),
    "text2reward": ("text2reward", "funsearch"),
    "song": ("song", "funsearch"),
    "evotune": ("evotune", "funsearch"),
    "code-policy": ("code_policy", "funsearch"),
    "worldcoder": ("worldcoder",),
    "twosome": ("twosome", "glam", "ppo"),
    "glam": ("glam", "ppo"),
    "gflan-prior": ("gflan_prior", "glam", "ppo", "dqn_prior"),
    "gif-mcts": ("gif_mcts", "funsearch"),
    "best-of-n": ("best_of_n", "rlhf"),
    "tempera": ("tempera", "ppo"),
    "prompt-oirl": ("prompt_oirl", "dqn_prior"),
    "offline-rlhf": ("offline_rlhf", "sft"),
    "grpo": ("grpo",),
    "rloo": ("grpo",),
    "gigpo": ("grpo",),
    "compress": ("compress", "grpo"),
    "rest": ("rest", "grpo"),
    "constitutional": ("constitutional", "rlhf"),
    "rain": ("rain", "best_of_n", "rlhf"),
    "red-team": ("red_team", "ppo_text", "grpo"),
    "syndicom": ("syndicom", "sft"),
    "context-distillation": ("context_distillation", "sft"),
    **dict.fromkeys(("ppo-text", "a2c-text", "trpo-text", "nlpo"), ("ppo_text", "grpo")),
}
"""Pages on which the settings of a method are; a page may refer to another for those that they share."""


def small(method, spec=None, judge="uniform"):
    """An agent of the method, small enough to run in a second."""
    known = {entry.name for entry in dataclasses.fields(method.config_class)}
    config = method.config_class(**{name: value for name, value in SMALL.items() if name in known})
    if method.name == "rl-adapter":
        config = dataclasses.replace(config, mentor=MentorConfig(updates=1, stages=2))
    if method.name in ("twosome", "rlhf"):  # the first needs words, and two texts of the other have to differ
        config = dataclasses.replace(config, lm="")
    if method.name == "evotune":  # a new model without words writes no program
        config = dataclasses.replace(config, lm="pocket?corpus=walks")
    if method.name == "best-of-n":
        config = dataclasses.replace(config, pairs=6)  # some of them differ
    if method.name == "motif":
        config = dataclasses.replace(config, preference=PreferenceConfig(collect=12, pairs=20))
    if method.name == "algorithm-distillation":
        config = dataclasses.replace(config, episodes=2)  # what the checker records is short
    if method.name == "rest":
        config = dataclasses.replace(config, updates=1)
    if method.name == "rlprompt":
        config = dataclasses.replace(config, words="drop key box", warmup=2, updates=2)
    if method.name == "constitutional":
        config = dataclasses.replace(config, compare=False)  # after imitation all texts are equal
    if method.name == "rewarded":
        config = dataclasses.replace(config, reward="hunch.methods.reward.count_bonus:Counts")
    if method.name == "alpha-proof":
        config = dataclasses.replace(config, budget=8, updates=3)
    config = methods.settings.configure(method.agent_class, config, {})
    generates = "generate" in method.models.get("lm", ())
    default = "scripted:icpi" if "ICPI" in method.environments else "scripted:frozenlake?error=0.3"
    if method.environments == "design problems":
        default = "scripted:mutator"
    if method.name in ("plan4mc", "spring"):
        default = "uniform"  # the rule of the lake says nothing to their questions, and silence stops a run
    sees = method.name in ("vlm-rm", "rl-vlm-f")
    if method.name == "worldcoder" or sees:
        default = method.suggested[-1]
    if method.name == "vlm-rm":
        config = dataclasses.replace(config, goal="The agent is 1 step from the red ball.")
    if method.name == "rl-vlm-f":
        own = dataclasses.replace(
            config.pictures, goal="The agent is 1 step from the red ball.", every=16, pairs=3
        )
        config = dataclasses.replace(config, pictures=own)
    model = lm.load(spec or (default if generates or sees else "uniform"))
    if method.acts in ("text", "any") and "lm" not in method.models:
        return method.build(config, {"judge": lm.load(judge)} if method.name in JUDGED else {})
    models = {
        "lm": model,
        "policy_lm": model,
        "encoder": lm.load("bag-of-words"),
        "proposer": lm.load("uniform"),
        "judge": lm.load("uniform"),
    }
    return method.build(config, {name: own for name, own in models.items() if name not in method.unnamed})


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda m: m.name)
def test_every_method_builds_its_agent(method):
    agent = small(method)
    assert isinstance(agent, Agent)
    place = hunch_contrib if method.name in CONTRIB else methods
    assert type(agent) is getattr(place, method.agent_class.__name__)
    assert type(agent.config) is getattr(place, method.config_class.__name__)


def prompts(folder):
    """An environment with two prompts, to which any text is an answer."""
    file = folder / "prompts.jsonl"
    row = {"prompt": "You see a key", "answer": "drop", "completion": "drop"}
    file.write_text(json.dumps(row) + "\n" + json.dumps({"prompt": "go to a box"}) + "\n")
    return hunch.make("hunch/Prompts-v0", file=str(file))


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(m, marks=pytest.mark.thorough if m.name in (*TWINS, *OWN) else (), id=m.name)
        for m in HERE
    ],
)
def test_every_method_keeps_the_contract(method, tmp_path):
    """Same seed, resume, no trace, batch, streams, data: the rules of hunch.methods.checker.RULES."""
    where = "hunch/Chain-v0" if "ICPI" in method.environments else "hunch/FrozenLake-v0"
    if method.environments == "design problems":
        problem = hunch.make("hunch/Heuristic-BinPacking-v0", items=10, instances=2)
        return methods.check(small(method), problem, steps=12)
    if method.acts in ("text", "any") and "lm" not in method.models:
        return methods.check(
            small(method), prompts(tmp_path), steps=10, streams=2
        )  # resumed between two updates
    if method.roles == ("policy",):
        lake = hunch.make("hunch/FrozenLake-v0", history=0, max_steps=4)
        return methods.check(small(method), lake, steps=20, streams=2)
    steps = {"bc-lm": 6, "rl-adapter": 24}.get(method.name, 36)
    methods.check(small(method), hunch.make(where), steps=steps)


@pytest.mark.parametrize("proposals", ["kept", "visited", "fresh"])
def test_every_way_to_draw_candidates_keeps_it(proposals):
    method = methods.find("dqn-prior")
    config = method.config_class(**Q_SMALL, proposals=proposals)
    models = {"lm": lm.load("scripted:frozenlake?error=0.3"), "encoder": lm.load("bag-of-words")}
    methods.check(method.build(config, models), hunch.make("hunch/FrozenLake-v0", history=2), steps=36)


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda m: m.name)
def test_every_setting_is_on_the_methods_page(method):
    names = PAGES_OF.get(method.name, (method.name.replace("-", "_"),))
    page = "".join((PAGES / f"{name}.md").read_text() for name in names)
    known = {entry.name for entry in dataclasses.fields(method.config_class)}
    assert not {name for name in known if f"`{name}`" not in page and f"`{name}." not in page}


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda m: m.name)
def test_a_method_names_a_model_that_fits_and_no_rule_is_a_default(method):
    assert "scripted" not in method.lm
    assert method.lm or method.suggested or "lm" not in method.models or "lm" in method.unnamed


def test_importing_the_methods_loads_no_heavy_library():
    code = (
        "import sys, hunch.methods as m; m.registered(); print(*{'torch', 'transformers'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("learner", ["", "table", "dqn", "ppo"])
def test_a_method_shows_its_own_options_and_those_of_its_learner(method, learner):
    if learner and "learner" not in method.config_class.__dataclass_fields__:
        return
    shown = of_method(method, ["--learner", learner] if learner else [])
    others = {"table", "dqn", "ppo"} - {learner}
    assert not learner or not others & {option.flag.partition(".")[0] for option in shown}


def test_the_version_of_its_prompt_is_a_setting_of_an_agent():
    model = lm.load("scripted:frozenlake")
    assert hunch.methods.ZeroShot(hunch.roles.MappedPrior(model)).settings["wording"] == WORDING


class Walker(Agent):
    """A sound agent: it remembers, by stream, how often each action was taken, and takes the rarest."""

    def begin(self, world, seed):
        self.counts = {}

    def act(self, states):
        return [min(s.options, key=lambda a: self.counts.get((s.stream, a), 0)) for s in states]

    def observe(self, transitions):
        for t in transitions:
            self.counts[t.stream, t.action] = self.counts.get((t.stream, t.action), 0) + 1

    def player(self, seed):
        twin = type(self)()
        twin.begin(None, seed)
        return twin

    def state_dict(self):
        return {"counts": [[*key, n] for key, n in self.counts.items()]}

    def load_state_dict(self, state):
        self.counts = {(stream, action): n for stream, action, n in state["counts"]}


class Shares(Walker):
    def player(self, seed):
        twin = super().player(seed)
        twin.counts = self.counts
        return twin


class Itself(Walker):
    def player(self, seed):
        return self


class Forgets(Walker):
    def state_dict(self):
        return {"counts": []}


class OneMemory(Walker):
    def observe(self, transitions):
        super().observe(
            [dataclasses.replace(t, state=dataclasses.replace(t.state, stream=0)) for t in transitions]
        )

    def act(self, states):
        return super().act([dataclasses.replace(s, stream=0) for s in states])


class Remembers(Walker):
    def begin(self, world, seed):
        self.counts = getattr(self, "counts", {})


class NeedsData(Walker):
    """It knows how many episodes were recorded, and saves nothing of it."""

    def begin(self, world, seed):
        super().begin(world, seed)
        self.place = -1 if world and world.data else 0

    def act(self, states):
        return [s.options[self.place] for s in states]

    def player(self, seed):
        twin = super().player(seed)
        twin.place = self.place
        return twin


class TooFew(Walker):
    def act(self, states):
        return super().act(states)[1:]


class Elsewhere(Walker):
    def act(self, states):
        return ["fly" for _ in states]


class Opinionated(Walker):
    def explain(self, state):
        return Explanation({"Q": [1.0]})


class Company(Walker):
    def act(self, states):
        return [s.options[len(states) % len(s.options)] for s in states]


class Raises(Walker):
    def learn(self):
        raise ZeroDivisionError("no data")


def test_a_sound_agent_passes():
    methods.check(Walker(), hunch.make("hunch/FrozenLake-v0"))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (Shares, "no trace"),
        (Itself, "no trace"),
        (Forgets, "resume"),
        (OneMemory, "streams"),
        (Remembers, "same seed"),
        (NeedsData, "data"),
        (TooFew, "admissible"),
        (Elsewhere, "admissible"),
        (Opinionated, "explanation"),
        (Company, "batch"),
        (Raises, "contract"),
    ],
)
def test_every_broken_rule_is_named(broken, rule):
    with pytest.raises(methods.AgentError) as caught:
        methods.check(broken(), hunch.make("hunch/FrozenLake-v0"))
    assert caught.value.rule == rule, str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_agent():
    class Nothing:
        def act(self, states):
            pass

    with pytest.raises(methods.AgentError, match=r"no subclass of hunch\.core\.Agent"):
        methods.check(Nothing(), hunch.make("hunch/FrozenLake-v0"))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Shares, "must return a copy"),
        (TooFew, "0 actions for 1 states"),
        (Elsewhere, "'fly' is not admissible here"),
        (Raises, "Raises failed to learn after 1 steps: ZeroDivisionError: no data"),
    ],
)
def test_a_run_of_a_broken_agent_ends_in_one_sentence_and_stays_intact(broken, said, tmp_path):
    """What a sound agent saved before is still there, and goes on."""
    lake, judge = hunch.make("hunch/FrozenLake-v0"), [hunch.make("hunch/FrozenLake-v0")]
    evaluation = Evaluation(judge, 30, 2)
    calls = iter(range(100))
    hunch.train(
        Walker(),
        lake,
        90,
        out=tmp_path,
        watch=hunch.Watch(stop=lambda: next(calls) >= 20),
        evaluation=evaluation,
    )
    before = (tmp_path / "checkpoint" / "state.pt").read_bytes()
    broken.__name__ = "Walker" if broken is not Raises else "Raises"
    with pytest.raises(hunch.core.HunchError, match=said if broken is not Raises else "another run"):
        hunch.train(broken(), lake, 90, out=tmp_path, evaluation=evaluation)
    if broken is Raises:
        with pytest.raises(hunch.core.HunchError, match=said):
            hunch.train(broken(), lake, 90)
    assert (tmp_path / "checkpoint" / "state.pt").read_bytes() == before
    assert hunch.train(Walker(), lake, 90, out=tmp_path, evaluation=evaluation).complete


def test_unknown_method_names_near_ones():
    with pytest.raises(UsageError, match="dqn-prior"):
        methods.find("dqn-proir")
    with pytest.raises(AttributeError):
        _ = methods.NoSuchAgent


MINE = replace(methods.find("q-learning"), name=f"{__name__}:MINE")


def test_a_method_is_named_where_it_is_in_python(tmp_path):
    assert methods.find(MINE.name) is MINE
    config = RunConfig(method=MINE.name, env="hunch/FrozenLake-v0", steps=30)
    assert execute(config, tmp_path / "run").complete
    agent, again = load_agent(tmp_path / "run")
    assert type(agent) is MINE.agent_class
    assert again.method == MINE.name
    for wrong in ("no_such_module:MINE", f"{__name__}:YOURS", "json:dumps"):
        with pytest.raises(UsageError, match=wrong):
            methods.find(wrong)


def test_listed_actions_are_asked_for_in_one_sentence():
    with pytest.raises(UsageError, match="needs listed actions"):
        _ = State("Write a program.").options
