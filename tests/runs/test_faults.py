"""Faults of environments and of parts made by others are named as theirs, before they are trained on."""

import sys

import gymnasium
import numpy as np
import pytest

import hunch
from hunch.cli.main import main
from hunch.core import Agent, HunchError, InadmissibleActionError, UsageError
from hunch.methods.q_learning import QLearningConfig
from hunch.roles import UniformPrior
from hunch.roles.prior.base import Proposal
from hunch.roles.reward.rewarded import Rewarded, RewardSource

LAKE = "hunch/FrozenLake-v0"


class Walk(gymnasium.Env):
    """Five steps that keep the contract, but for one fault, which may come only late in the run."""

    offers = ()

    def __init__(self, fault="", after=0, metadata=None):
        self.fault, self.after, self.taken, self.left = fault, after, 0, None
        self.metadata = metadata or {}

    def told(self):
        faulty = self.taken >= self.after
        listed = {"text": "ab", "twice": ("a", "a"), "number": ("a", 1), "blank": ("a", "")}
        listed |= {"no actions": None, "half an action": ("a", "\ud800")}
        listed |= {"lists": [["a"], ["b"]], "a number": 2}
        actions = listed.get(self.fault, ("a", "b")) if faulty else ("a", "b")
        shown = {"actions": actions, "success": False, "task": "walk", "event": ""}
        wrong = {"success": "no", "task": 3, "event": ["fell"], "half": "\ud800"}
        where = {"half": "event"}.get(self.fault, self.fault)
        return shown | ({where: wrong[self.fault]} if faulty and self.fault in wrong else {})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return "here", self.told()

    def step(self, action):
        if not self.left:
            raise RuntimeError("over")
        name = ("a", "b")[action] if action in (0, 1) else action
        if name not in ("a", "b"):
            raise InadmissibleActionError(f"{action!r} is not admissible.")
        self.taken += 1
        self.left -= 1
        faulty = self.taken >= self.after
        if faulty and self.fault == "raises":
            raise ValueError("boom")
        if faulty and self.fault == "many lines":
            raise ValueError("one\n\ntwo")
        if faulty and self.fault in ("four", "nothing", "no info"):
            return {
                "four": ("here", 0.0, False, self.told()),
                "no info": ("here", 0.0, False, False, None),
            }.get(self.fault)
        if faulty and self.fault == "exits":
            sys.exit(0)
        if faulty and self.fault == "refuses":
            raise InadmissibleActionError("I take no more.")
        rewards = {"nan": float("nan"), "infinite": float("inf"), "worded": "1", "whole": 1}
        reward = rewards.get(self.fault, 0.0) if faulty else 0.0
        seen = 3 if faulty and self.fault == "observation" else "here"
        seen = f"here {np.random.random()}" if faulty and self.fault == "chance" else seen
        return seen, reward, self.left == 0, False, self.told()


class Plain(Agent):
    """Takes the first action."""

    def act(self, states):
        return [state.options[0] for state in states]

    def observe(self, transitions):
        pass

    def player(self, seed):
        return self


AT_A_STEP = {
    "nan": "rewards 'a' with nan",
    "infinite": "rewards 'a' with inf",
    "worded": "rewards 'a' with '1', a str",
    "whole": "rewards 'a' with 1, a int",
    "text": "one text",
    "twice": "different, non-empty texts",
    "number": "different, non-empty texts",
    "blank": "different, non-empty texts",
    "lists": r"different, non-empty texts, not \(\['a'\], \['b'\]\)",
    "a number": r"info\['actions'\] is 2: it has to be a tuple of texts",
    "observation": "The environment's observation has to be a text, and is 3",
    "success": "success has to be True or False, and is 'no'",
    "task": "The environment's task has to be a text, and is 3",
    "event": r"The environment's event has to be a text, and is \['fell'\]",
    "half": "The environment's event has to be a text",
    "raises": "The environment raised ValueError in step\\('a'\\): boom",
    "exits": "The environment raised SystemExit in step\\('a'\\)",
    "refuses": "refused an action that it lists",
    "four": "The environment's step has to return 5 values, the last a dict, not \\('here', 0.0",
    "nothing": "The environment's step has to return 5 values, the last a dict, not None",
    "no info": "The environment's step has to return 5 values, the last a dict, not",
    "no actions": r"The environment names no admissible actions: info\['actions'\] is missing",
    "half an action": "different, non-empty texts",
    "many lines": "The environment raised ValueError in step\\('a'\\): one two$",
}


@pytest.mark.parametrize("fault", [*AT_A_STEP, "chance"])
def test_a_broken_contract_is_found_before_the_run(fault, tmp_path):
    with pytest.raises(UsageError, match=r"Walk cannot be used|one text|has to be"):
        hunch.train(Plain(), Walk(fault), 20, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("fault", "said"), AT_A_STEP.items())
def test_a_fault_that_comes_late_ends_the_run(fault, said, tmp_path):
    with pytest.raises(HunchError, match=said):
        hunch.train(Plain(), Walk(fault, after=2_000), 3_000, out=tmp_path / "run")


def test_what_was_recorded_before_a_late_fault_is_kept(tmp_path):
    """The fault is an error of usage, as that of a run that was refused, and no checkpoint was due yet."""
    with pytest.raises(HunchError, match="rewards 'a' with nan"):
        hunch.train(Plain(), Walk("nan", after=2_000), 10_000_000, out=tmp_path / "run")
    assert len((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()) > 5


def test_where_episodes_do_not_repeat_only_rules_of_form_are_checked():
    with pytest.warns(hunch.core.HunchWarning, match="does not repeat its episodes"):
        hunch.train(Plain(), Walk("chance", metadata={"reproducible": False}), 20)
    with (
        pytest.warns(hunch.core.HunchWarning, match="does not repeat"),
        pytest.raises(UsageError, match="reward"),
    ):
        hunch.train(Plain(), Walk("nan", metadata={"reproducible": False}), 20)


def test_a_run_in_a_sound_environment_is_not_disturbed(tmp_path):
    """The check plays in a copy: the environment itself has taken the steps of the run only."""
    env = Walk()
    hunch.train(Plain(), env, 20)
    assert env.taken == 20


def test_the_command_checks_an_environment(capsys):
    from hunch.cli.lists import envs

    gymnasium.register("Walk-v0", Walk)
    envs(["Walk-v0", "--check"])
    assert "keeps the contract" in capsys.readouterr().out
    with pytest.raises(UsageError, match="Broken rule 'reward'"):
        envs(["Walk-v0", "--check", "--env.fault", "nan"])


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (np.full(99, 1 / 99), "99 probabilities for 4 actions"),
        (np.array([]), "0 probabilities for 4 actions"),
        (np.full(4, np.nan), "no distribution"),
        (np.ones(4), "no distribution"),
        (np.array([2.0, -1.0, 0.0, 0.0]), "no distribution"),
    ],
)
@pytest.mark.parametrize("verb", ["probabilities", "_compute"])
def test_what_a_prior_gives_is_a_distribution(verb, numbers, said):
    prior = type("Mine", (UniformPrior,), {verb: lambda self, states: [numbers for _ in states]})()
    with pytest.raises(UsageError, match=said):
        hunch.train(hunch.methods.ZeroShot(prior), LAKE, 10)


@pytest.mark.parametrize("given", [[], ["Go Left"]])
def test_a_prior_gives_numbers_for_every_state(given):
    prior = type("Mine", (UniformPrior,), {"_compute": lambda self, states: given})()
    with pytest.raises(UsageError, match=r"The prior gives 0 distributions for 1|are not numbers: 'Go Left'"):
        hunch.train(hunch.methods.ZeroShot(prior), LAKE, 10)


class Broken(UniformPrior, RewardSource):
    """A prior and a reward source that fails with an exception."""

    evidence = None

    def _compute(self, states):
        raise KeyError("oops")

    def rewards(self, transitions):
        return self._compute(transitions)


def test_a_part_that_raises_is_named_and_not_the_agent_alone():
    for agent in (hunch.methods.ZeroShot(Broken()), Rewarded(Plain(), Broken())):
        with pytest.raises(HunchError, match=r"failed to .* after . steps, in Broken\._compute: KeyError"):
            hunch.train(agent, LAKE, 10)


def test_a_run_in_an_environment_of_a_program_is_not_evaluated_in_another(tmp_path, capsys):
    env = hunch.envs.TextWrapper(gymnasium.make("FrozenLake-v1"), describe=str, actions=("a", "b", "c", "d"))
    hunch.train("q-learning", env, steps=10, out=tmp_path / "run")
    for command in (["evaluate", str(tmp_path / "run")], ["play", "--run", str(tmp_path / "run"), "--auto"]):
        with pytest.raises(SystemExit) as stopped:
            main(command)
        assert stopped.value.code == 2
        assert "was made in Python; settings cannot rebuild it" in capsys.readouterr().err


@pytest.mark.parametrize("weights", [(), (0.5,), (0.5, float("nan")), (0.5, 0.6)])
def test_a_proposal_has_weights_that_sum_to_one(weights):
    with pytest.raises(UsageError, match="A prior's proposal"):
        Proposal(np.arange(2), np.array(weights))


@pytest.mark.parametrize(
    "found", [[float("nan")], [float("inf")], ["1"], [None], [[1.0]], [10**400], None, 1.0, [1.0, None], []]
)
def test_a_source_gives_finite_rewards(found):
    source = type("Mine", (RewardSource,), {"evidence": None, "rewards": lambda self, ts: found})()
    with pytest.raises(UsageError, match="Mine has to give 1 finite rewards for 1 transitions, not"):
        hunch.train(Rewarded(Plain(), source), LAKE, 10)


@pytest.mark.parametrize("found", [[1], [True], np.ones(1, np.float32), (0.5,)])
def test_a_source_gives_any_sequence_of_numbers(found):
    source = type("Mine", (RewardSource,), {"evidence": None, "rewards": lambda self, ts: found})()
    hunch.train(Rewarded(Plain(), source), LAKE, 10)


@pytest.mark.parametrize("error", [KeyError("oops"), SystemExit(0)])
def test_a_callback_or_agent_that_fails_is_named(error):
    def fail(*_):
        raise error

    kind = type(error).__name__
    with pytest.raises(HunchError, match=f"The callback Mine failed after 1 steps: {kind}"):
        hunch.train(
            Plain(),
            LAKE,
            10,
            watch=hunch.Watch(callbacks=[type("Mine", (hunch.Callback,), {"on_step": fail})()]),
        )
    with pytest.raises(HunchError, match=f"Mine failed to learn after 1 steps: {kind}"):
        hunch.train(type("Mine", (Plain,), {"learn": fail})(), LAKE, 10)


def test_an_agent_has_methods_of_its_own():
    mine = type("Mine", (Agent,), {"act": Plain.act, "config_class": QLearningConfig})
    with pytest.raises(TypeError, match="observe"):
        mine()
    method = hunch.methods.Method("mine", mine, "nothing", "none")
    with pytest.raises(UsageError, match=r"Mine is not a whole agent: it has no observe, player"):
        method.build(QLearningConfig(), {})


def test_streams_are_in_one_environment():
    with pytest.raises(UsageError, match="in one environment, not in hunch/FrozenLake-v0 and hunch/Craft"):
        hunch.train(Plain(), [hunch.make(LAKE), hunch.make("hunch/Craft-v0")], 10)


@pytest.mark.parametrize("verb", ["generate", "embed"])
def test_a_model_is_not_asked_letter_by_letter(verb):
    lm = hunch.lm.load("uniform" if verb == "generate" else "bag-of-words")
    with pytest.raises(UsageError, match="not a single text"):
        getattr(lm, verb)("a text")
    with pytest.raises(UsageError, match="texts or lists of messages, not 3"):
        getattr(lm, verb)([3])
    with pytest.raises(UsageError, match="a list of options, not a single text"):
        hunch.lm.load("uniform").score(["a text"], ["ab"])


def test_paths_and_boards_of_a_wrong_type_are_named():
    with pytest.raises(UsageError, match="path of a folder, not 3"):
        hunch.train(Plain(), LAKE, 10, out=3)
    for boards, said in (([3], "not 3"), (["mlflow"], "not 'mlflow'")):
        with pytest.raises(UsageError, match=said):
            hunch.train(Plain(), LAKE, 10, out="r", watch=hunch.Watch(boards=boards))
    with pytest.raises(UsageError, match=r"boards is a list: write boards=\['mlflow:lakes'\]"):
        hunch.Watch(boards="mlflow:lakes")
    with pytest.raises(UsageError, match="not from 3"):
        hunch.read_config(3)


def test_a_missing_success_does_not_hide_worse_faults():
    class Quiet(Walk):
        def told(self):
            return {"actions": ("a", "b"), "event": 3}

    with pytest.raises(UsageError, match="Broken rule 'event'"):
        hunch.train(Plain(), Quiet(), 10)
