"""Compression: the bed leaves room, the policy learns from rewards, controls share its code, bad input."""

import numpy as np
import pytest

import hunch
from hunch import methods
from hunch.cli.main import main
from hunch.core import State, UsageError, World
from hunch_studies.worlds.compression import Compression, f1, is_part, pool

torch = pytest.importorskip("torch")

from hunch_contrib.tune.words import WordsPolicy, kept, places_of, words_of  # noqa: E402

ENV = "hunch_studies.worlds.compression:Compression"
SCRATCH = "scratch?width=32&layers=1&vocabulary=128"


def agent(**options):
    found = methods.find("compress")
    return found.build(
        methods.settings.configure(
            found.agent_class, None, {"lm": SCRATCH, "group": 3, "episodes": 4, **options}
        ),
        {},
    )


# ---- the bed ----------------------------------------------------------------------------------------------


def test_the_gold_compression_is_part_of_the_sentence_and_no_longer_than_asked():
    for own in pool("held out", 100):
        gold = [own.words[i] for i in own.gold()]
        assert is_part(gold, own.words)
        assert 5 <= len(gold) <= own.length < len(own.words)
        assert f1(own, gold) == 1


def test_there_is_room_between_controls_and_gold_and_the_reward_is_not_the_gold():
    env, rng = Compression(split="held out", sentences=100), np.random.default_rng(0)
    found = {name: [] for name in ("first", "random", "gold")}
    for own in env.every:
        env.sentence, n = own, len(own.words)
        places = {
            "first": range(own.length),
            "random": sorted(rng.choice(n, own.length, replace=False)),
            "gold": own.gold(),
        }
        for name, where in places.items():
            words = [own.words[i] for i in where]
            found[name].append((env.reward(words), f1(own, words)))
    means = {name: np.mean(own, axis=0) for name, own in found.items()}
    assert max(means["first"][1], means["random"][1]) < 0.6 < means["gold"][1] == 1
    assert means["gold"][0] > max(means["first"][0], means["random"][0]) + 0.05


def test_the_environment_keeps_its_contract_and_pays_nothing_for_other_texts():
    env = hunch.make(ENV)
    hunch.envs.check(env)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("a boat of my own")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    env.reset(seed=0)
    [best] = env.unwrapped.oracle()
    gold = Compression(measure="gold")
    gold.reset(seed=0)
    assert gold.step(best)[1] == 1
    with pytest.raises(UsageError, match="has no part 'style'"):
        Compression(parts="style")
    with pytest.raises(UsageError, match="cannot score"):
        Compression(lm="bag-of-words")


# ---- the policy -------------------------------------------------------------------------------------------


def test_what_is_drawn_is_judged_with_the_same_probability():
    own = agent()
    own.begin(World(streams=6, steps=100, examples=Compression().examples[:50]), 0)
    states = [State(asked) for asked, _ in Compression().examples[:4]]
    drawn = own.policy.sample(states, [np.random.default_rng(i) for i in range(4)])
    found = own.policy.evaluate(states, drawn)
    for row, decision in enumerate(drawn):
        assert found.logprobs[row, found.mask[row]].tolist() == pytest.approx(decision.logprobs, abs=1e-5)
        assert kept(words_of(states[row]), decision.tokens) == decision.text
    assert places_of(["a", "b", "a"], "b a") == (0, 1, 1)
    assert isinstance(own.policy, WordsPolicy)


def test_rewards_teach_which_words_to_keep():
    own, env = agent(group=5, episodes=16, learning_rate=3e-3), Compression()

    def paid():
        player, rewards = own.player(0), []
        for i in range(50):
            observation, _ = env.reset(seed=i)
            rewards.append(env.step(player.act([State(observation)])[0])[1])
        return np.mean(rewards)

    own.begin(World(examples=env.examples), 0)
    before = paid()
    hunch.train(own, [Compression() for _ in range(40)], steps=40 * 50, seed=0)
    assert paid() > before + 0.1


@pytest.mark.parametrize("choose", ["policy", "first", "random", "climb"])
def test_the_agent_keeps_its_contract_with_every_control(choose):
    methods.check(agent(choose=choose), hunch.make(ENV, sentences=2), steps=12, streams=2)


def test_climbing_only_gets_better_on_what_it_has_met():
    own, env = agent(choose="climb"), Compression(sentences=1)
    first = None
    own.begin(World(streams=1, steps=50), 0)
    for i in range(200):
        observation, _ = env.reset(seed=i)
        [text] = own.act([State(observation)])
        reward = env.step(text)[1]
        state = State(observation)
        own.observe([hunch.core.Transition(state, text, reward, state, True, False)])
        first = reward if first is None else first
        assert own.known[observation][1] >= max(first, reward)
    assert own.known[observation][1] > first


# ---- bad input --------------------------------------------------------------------------------------------


def test_a_text_without_words_and_a_group_of_one_are_refused_in_a_sentence(capsys, tmp_path):
    own = agent()
    own.begin(World(), 0)
    with pytest.raises(UsageError, match="There are no words to keep"):
        own.act([State("7 words : ")])
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "run",
                "compress",
                "--env",
                ENV,
                "--lm",
                SCRATCH,
                "--group",
                "1",
                "--steps",
                "9",
                "--out",
                str(tmp_path / "x"),
            ]
        )
    assert stopped.value.code == 2
    assert "compares the answers of a group" in capsys.readouterr().err
