"""Tiny Hanabi in words: OpenSpiel's payoffs, and what a code between the players is worth."""

import pytest

import hunch
from hunch.core import UsageError


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyspiel", None)
    with pytest.raises(UsageError, match=r"pip install .*\[open-spiel\]"):
        hunch.make("hunch/TinyHanabi-v0")


@pytest.fixture
def env():
    pytest.importorskip("pyspiel")
    return hunch.make("hunch/TinyHanabi-v0")


def test_the_contract(env):
    hunch.envs.check(env)


def played(env, first, second):
    """Mean reward of a pair over the deals, each met once; every deal must be met."""
    rewards = {}
    for seed in range(60):
        text, info = env.reset(seed=seed)
        assert info["player"] == 0
        heard, _, over, _, info = env.step(first[text])
        assert (over, info["player"]) == (False, 1)
        _, reward, over, _, info = env.step(second[heard])
        assert over
        assert info["success"] == (reward == 1)
        rewards[text, heard.splitlines()[0]] = reward
    assert len(rewards) == 4
    return sum(rewards.values()) / 4


def test_only_a_code_earns_everything(env):
    cards = ("You hold card 1.", "You hold card 2.")
    heard = [f"{card}\nYour partner played {n}." for card in cards for n in (1, 2, 3)]
    safe = dict.fromkeys(heard, "play 2")
    assert played(env, dict.fromkeys(cards, "play 2"), safe) == pytest.approx(0.8)
    code = {cards[0]: "play 3", cards[1]: "play 1"}
    answers = {
        f"{cards[card]}\nYour partner played {said}.": f"play {answer}"
        for (card, said), answer in {(0, 3): 1, (1, 3): 3, (0, 1): 3, (1, 1): 1}.items()
    }
    assert played(env, code, answers) == 1.0
