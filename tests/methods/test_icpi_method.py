"""ICPI and its baselines: one loop, and what it promises."""

import math
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm
from hunch.core import Explanation, State, Transition, UsageError
from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.reader import answers
from hunch.envs.icpi.reading import read
from hunch.lm.backends.scripted import load
from hunch.methods import ICPI, ICPIConfig, ICPINoArgMax, Matching, TabularQ
from hunch.rl.tabular import QTable

DOMAINS = ("Chain", "DistractorChain", "Maze", "MiniCatch", "MiniInvaders", "PointMass", "Tug", "Bulbs")
SMALL = {"required_successes": 0.0}
CHAIN = {"texts": Chain.wording}
"""For agents that are shown transitions without an environment."""
ACTIONS = ("left", "try_goal", "right")


def place(n):
    return State(f"assert state == [{n}] and state {'==' if n == 4 else '!='} [4]\n", "", ACTIONS)


def step(n, action, reward=0.0, to=None, *, over=False, limit=False):
    return Transition(place(n), action, reward, place(n if to is None else to), over, limit)


def env(domain="Chain", **options):
    return hunch.make(f"hunch/{domain}-v0", **options)


def model(**dials):
    return lm.load("scripted:icpi", cache=None, **dials)


def agents():
    reader = model(error=0.2)
    return [
        begun(ICPI(reader, **SMALL)),
        begun(ICPINoArgMax(reader, **SMALL)),
        begun(Matching(**SMALL)),
        begun(TabularQ()),
    ]


def actions(result):
    return [episode.actions for episode in result.episodes]


@pytest.mark.parametrize("which", range(4))
def test_same_seed_same_run_and_another_seed_another(which):
    first, again, other = (hunch.train(agents()[which], env(), 60, seed=seed) for seed in (0, 0, 1))
    assert actions(first) == actions(again)
    assert actions(first) != actions(other)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_is_played_and_every_prompt_is_read(domain):
    agent = begun(ICPI(model(), **SMALL))
    hunch.train(agent, env(domain), 40)
    assert agent.completer.counts.completions > 50
    assert agent.completer.counts.unread == 0


def test_another_model_fills_the_role_of_the_policy():
    def played(**filled):
        agent = begun(ICPI(model(), answers="choose", **SMALL, **filled))
        return agent, hunch.train(agent, env("Maze"), 60)

    agent, swapped = played(policy_lm=lm.load("uniform", cache=None))
    assert agent.completer.counts.completions > agent.actor.counts.completions > 20
    (_, alone), (_, same) = played(), played(policy_lm=model())
    assert actions(same) == actions(alone) != actions(swapped)


def test_exploration_by_successes():
    agent = begun(ICPI(model(), **CHAIN))
    shares = []
    for n in range(10):
        shares.append(agent.share())
        agent.observe([step(n % 4, "try_goal", over=True)])
    wanted = [0.0025, 0.018, 0.119, 0.5, 0.881, 0.982, 0.9975, 0.9997, 0.99995, 0.99995]
    assert shares == pytest.approx(wanted, abs=5e-4)


def test_the_coin_is_tossed_at_every_step():
    agent = begun(Matching(**CHAIN))
    for t in [step(3, "right", to=4), step(4, "try_goal", 1.0, over=True), step(3, "left", to=2, limit=True)]:
        agent.observe([t])
    taken = [agent.act([place(4)])[0] for _ in range(400)]
    share = 1 / (1 + math.exp(2 * (3 - 2)))
    expected = share + (1 - share) / 3
    assert taken.count("try_goal") / 400 == pytest.approx(expected, abs=0.08)
    assert set(agent.player(0).act([place(4)] * 20)) == {"try_goal"}


def test_readiness_wants_an_example_of_everything():
    agent = begun(ICPI(model(), **CHAIN))
    agent.observe([step(3, "left", to=2)])
    agent.observe([step(2, "right", to=3)])
    assert not agent.ready(place(3))
    agent.observe([step(3, "try_goal", over=True)])
    assert agent.ready(place(3))
    ends = begun(ICPI(model(), **CHAIN))
    for action in ACTIONS:
        ends.observe([step(3, action, over=True)])
    assert not ends.ready(place(3)), "no example of a next state"
    cold = begun(ICPI(model(), **CHAIN))
    cold.act([place(3)] * 50)
    assert cold.completer.counts.completions == 0


def test_no_argmax_is_ready_after_a_success_only():
    agent = begun(ICPINoArgMax(model(), **CHAIN))
    for t in (step(3, "left", to=2), step(2, "right", to=3), step(3, "try_goal", over=True)):
        agent.observe([t])
    assert not agent.ready(place(3))
    agent.observe([step(4, "try_goal", 1.0, over=True)])
    assert agent.ready(place(3))
    assert len(agent.experience.successes) == 1


def test_the_running_episode_is_in_no_prompt_and_a_time_out_is_not_done():
    agent = begun(ICPI(model(), **CHAIN))
    agent.observe([step(3, "left", to=2)])
    assert agent.experience.episodes == []
    agent.observe([step(2, "left", to=1, limit=True)])
    assert [example.done for example in agent.experience.episodes[0]] == [False, False]


def test_values_by_hand():
    """From 3, with the way shown: right, then the goal, is worth 0.8; trying the goal at 3 nothing."""
    agent = begun(ICPI(model(), **CHAIN))
    for t in (step(2, "right", to=3), step(3, "right", to=4), step(4, "try_goal", 1.0, over=True)):
        agent.observe([t])
    agent.observe([step(3, "left", to=2)])
    agent.observe([step(2, "try_goal", over=True)])
    (q,) = agent.q([place(4)], np.random.default_rng(0))
    assert q[1] == 1.0
    told = agent.explain(place(4))
    assert isinstance(told, Explanation)
    assert told.chosen.argmax() == 1
    assert told.chosen.sum() == pytest.approx(1)


def test_matching_by_hand():
    """Rollouts follow the latest step of the same state; from 3 to the right: 0.8."""
    agent = begun(Matching(**CHAIN))
    for t in (
        step(2, "right", to=3), step(3, "right", to=4), step(4, "try_goal", 1.0, over=True),
        step(3, "try_goal", over=True), step(5, "left", to=4), step(4, "right", to=5, limit=True),
    ):  # fmt: skip
        agent.observe([t])
    rng = np.random.default_rng(0)
    q2, q3, q4 = agent.q([place(2), place(3), place(4)], rng)
    assert q2.tolist() == [0, 0, 0], "the policy at 3 now is to try the goal"
    assert q3.tolist() == [0, 0, 0], "the policy at 4 now is to go right, and there is no policy at the end"
    assert q4.tolist() == [0, 1, 0]
    agent.observe([step(4, "try_goal", 1.0, over=True)])
    assert agent.q([place(3)], rng)[0].tolist() == [0, 0, pytest.approx(0.8)]


def test_values_do_not_depend_on_the_company():
    agent = begun(ICPI(model(error=0.3), **SMALL))
    hunch.train(agent, env(), 80)
    together = agent.q([place(1), place(3), place(6)], np.random.default_rng(5))
    seeds = np.random.default_rng(5)
    alone = [agent.q([place(n)], seeds)[0] for n in (1, 3, 6)]
    assert [q.tolist() for q in together] == [q.tolist() for q in alone]


def test_a_stage_is_one_call():
    """One decision in three environments: at most four calls a transition, however many rollouts."""
    agent = begun(ICPI(model(), **SMALL))
    hunch.train(agent, env(), 60)
    calls = []
    ask = agent.completer.lm.generate
    agent.completer.lm.generate = lambda prompts, *rest: calls.append(len(prompts)) or ask(prompts, *rest)
    agent.q([place(1), place(3), place(6)], np.random.default_rng(0))
    assert calls[0] == 9
    assert len(calls) <= 4 * Chain.wording.max_rollout_steps


@pytest.mark.parametrize(("own", "asked"), [({}, {0.3}), ({"policy_temperature": 1.0}, {0.3, 1.0})])
def test_only_actions_have_the_temperature_of_the_policy(own, asked):
    agent = begun(ICPI(model(), temperature=0.3, **own, **SMALL))
    hunch.train(agent, env(), 60)
    degrees, ask = [], agent.completer.lm.generate
    agent.completer.lm.generate = lambda *a: degrees.append(a[2].temperature) or ask(*a)
    agent.q([place(3)], np.random.default_rng(0))
    assert set(degrees) == asked
    assert degrees[:3] == [0.3] * 3, "end, reward and state are asked for first"


def test_table_by_hand():
    table = QTable(0.8, 0.5, 1.0)
    table.update("s", "a", 0.0, "t", ("a", "b"))
    assert table.values("s", ("a", "b")).tolist() == [0.5 * 1 + 0.5 * 0.8, 1.0]
    table.update("t", "b", 1.0, "end", ())
    table.update("t", "a", 0.0, "end", ())
    assert table.values("t", ("a", "b")).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(("released", "wanted"), [(False, 0.0), (True, 0.8)])
def test_released_table_has_no_end(released, wanted):
    agent = begun(TabularQ(released=released, **CHAIN))
    agent.observe([step(2, "try_goal", over=True)])
    assert agent.q([place(2)], agent.rng)[0].tolist() == [1.0, wanted, 1.0]
    agent.observe([step(2, "left", to=1, limit=True)])
    assert agent.q([place(2)], agent.rng)[0][0] == 0.8, "a time-out is no end"


def test_the_table_looks_at_the_actions_of_the_next_state():
    """The best value of s' is over what is admissible there, which may be more, or other, than at s."""
    agent = begun(TabularQ(initial=0.0, **CHAIN))
    here, there = State("here", "", ("go",)), State("there", "", ("stay", "leave"))
    agent.observe([Transition(there, "leave", 1.0, there, True, False)])
    agent.observe([Transition(here, "go", 0.0, there, False, False)])
    assert agent.q([here], agent.rng)[0].tolist() == [0.8]


def test_scripted_answers_by_hand():
    three, four = place(3).observation, place(4).observation
    asked = three + "state = right()\n"
    assert answers(f"{asked}assert not done\n\n{asked}") == ("assert not done\n", "assert done\n")
    assert answers(f"{asked}assert reward == 0\n\n{asked}")[0] == "assert reward == 0\n"
    assert answers(f"{asked}{four}\n{asked}")[:2] == (four, place(2).observation)
    reset = "\nstate, reward = reset()\n"
    shown = f"{reset}{three}state = left()\nassert reward == 0.0\n{reset}{asked}assert reward == 0.0\n"
    assert answers(f"{shown}{reset}{three}")[0] == "state = right()\n", "the last that was shown"
    assert answers(f"{shown}{reset}{place(2).observation}", nearest=True)[0] == "state = right()\n"
    assert answers("What is 1 + 1?") == ()


def test_scripted_errors_are_shares_and_well_formed():
    right = load("icpi", error=0.3)
    asked = place(3).observation + "state = right()\n"
    texts = [right.generate([f"{asked}assert not done\n\n" * n + asked])[0][0] for n in range(1, 400)]
    assert set(texts) == {"assert not done", "assert done"}
    assert texts.count("assert done") / len(texts) == pytest.approx(0.3, abs=0.08)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("hints", [True, False])
def test_states_are_read_back(domain, hints):
    played = env(domain, hints=hints)
    for seed in range(20):
        observation, info = played.reset(seed=seed)
        for action in info["actions"]:
            found = read(observation)
            assert found[0] is type(played.unwrapped)
            numbers = pytest.approx(info["state"], abs=0.0051) if domain == "PointMass" else info["state"]
            assert found[1] == numbers
            observation, _, over, _, info = played.step(action)
            if over:
                break


def test_refusals():
    with pytest.raises(UsageError, match="'generate'"):
        begun(ICPI(lm.load("minilm")))
    with pytest.raises(UsageError, match="no option 'resamples'"):
        begun(Matching(resamples=3))
    with pytest.raises(UsageError, match="offers none"):
        hunch.train(begun(ICPI(model())), hunch.make("hunch/FrozenLake-v0"), 400)


def test_settings_on_the_page_are_those_of_the_code():
    page = Path(__file__).parents[2] / "docs" / "methods" / "icpi.md"
    table = page.read_text().partition("## Settings")[2].partition("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\S+)` \| `(.+?)` \|", table, re.MULTILINE))
    assert listed == {name: str(value) or '""' for name, value in asdict(ICPIConfig()).items()}


@pytest.mark.parametrize("domain", DOMAINS)
def test_choosing_among_answers_foretells_what_writing_does(domain):
    """Of a model without errors; and one that garbles what it writes still chooses an action."""
    agent = begun(ICPI(model(), **SMALL))
    hunch.train(agent, env(domain), 30, seed=3)
    state = State.read(*env(domain).reset(seed=5))
    told = []
    for how in ("write", "choose"):
        asked = begun(ICPI(model(), **SMALL, answers=how, temperature=0.0))
        world = asked.world_model(agent.experience, agent.words)
        rngs = [np.random.default_rng(i) for i in range(len(state.options))]
        told.append([asdict(p) for p in world.step([state.observation] * len(rngs), state.options, rngs)])
    assert told[0] == told[1]
    garbled = begun(ICPI(model(malformed=1.0), **SMALL, answers="choose"))
    choose = garbled.policy(agent.experience, agent.words).choose
    assert choose([state.observation], [np.random.default_rng(0)])[0] in state.options
    assert garbled.completer.counts.unread == 0


def test_a_model_that_cannot_score_is_refused_a_choice():
    writer = lm.load("scripted:writer", cache=None)
    with pytest.raises(UsageError, match="score"):
        begun(ICPI(writer, answers="choose"))
