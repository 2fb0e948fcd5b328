"""Bargaining in words: OpenSpiel's returns, and a partner who wants its share."""

import pytest

import hunch
from hunch.core import UsageError
from hunch_studies.worlds.bargaining import AGREE, TOTAL


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyspiel", None)
    with pytest.raises(UsageError, match=r"pip install .*\[open-spiel\]"):
        hunch.make("hunch/Bargaining-v0")


@pytest.fixture
def env():
    pytest.importorskip("pyspiel")
    return hunch.make("hunch/Bargaining-v0")


def test_the_contract(env):
    hunch.envs.check(env)


def test_greed_gets_nothing_and_what_is_left_is_taken(env):
    for seed in range(20):
        _, info = env.reset(seed=seed)
        inner = env.unwrapped
        assert sum(n * v for n, v in zip(inner._pool, inner._values[0], strict=True)) == TOTAL
        _, reward, over, _, info = env.step(info["actions"][0])  # keeps nothing
        assert (reward, over, info["success"]) == (0.0, True, False), "all is worth ten to the partner"
        _, info = env.reset(seed=seed)
        keep_all = max(info["actions"], key=lambda name: sum(int(c) for c in name if c.isdigit()))
        _, reward, over, _, info = env.step(keep_all)
        assert not over
        assert info["event"].startswith(f"You {keep_all}. Your partner offers to keep")
        assert AGREE in info["actions"]
        asked = info["event"]
        _, reward, over, _, info = env.step(AGREE)
        assert over
        assert info["event"] == "You agree."
        kept = [int(word) for word in asked.split("partner")[1].replace(",", "").split() if word.isdigit()]
        left = [n - k for n, k in zip(inner._pool, kept, strict=True)]
        assert reward * TOTAL == sum(n * v for n, v in zip(left, inner._values[0], strict=True))


def test_without_agreement_both_have_nothing(env):
    _, info = env.reset(seed=1)
    over = False
    while not over:
        greedy = max(info["actions"], key=lambda name: sum(int(c) for c in name if c.isdigit()))
        _, reward, over, truncated, info = env.step(greedy)
        assert not truncated
    assert (reward, info["success"]) == (0.0, False)
