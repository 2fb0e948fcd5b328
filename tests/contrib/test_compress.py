"""Compression: what the control of dealt rewards learns from, and the words of which a state is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hunch.core import State, Transition, UsageError, World

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hunch.lm import trainable  # noqa: E402
from hunch_contrib.tune.compress import Compress  # noqa: E402

TEXT = State("the old baker quickly sold a red cart")
SCRATCH = "scratch?width=16&layers=1&heads=2&vocabulary=32"


def made(seed=0, streams=3, **options):
    agent = Compress(lm=trainable(SCRATCH), **{"group": 3, "episodes": 2, "shuffle": True, **options})
    agent.lm.take([TEXT.observation])
    agent.begin(World(steps=1_000, streams=streams), seed)
    return agent


def played(agent, rewards):
    """Let an agent choose words in as many streams as there are rewards, and pay it these."""
    states = [replace(TEXT, stream=stream) for stream in range(len(rewards))]
    texts = agent.act(states)
    steps = zip(states, texts, rewards, strict=True)
    agent.observe([Transition(state, text, reward, state, True, False) for state, text, reward in steps])


def returns(episodes):
    return [episode[0].transition.reward for episode in episodes]


def streams(episodes):
    return [episode[0].transition.stream for episode in episodes]


def test_dealt_rewards_do_not_say_which_choice_is_the_best():
    rng = np.random.default_rng(0)
    agent = made(streams=900, group=9, episodes=10_000)
    rewards = rng.random(900)
    played(agent, rewards)
    pairs = agent.kept.whole()
    assert len(pairs) == 100
    drawn = rewards.reshape(100, 9)[:, 1:]
    truly_best = drawn.argmax(1) + 1
    taken = [streams(pair)[1] % 9 for pair in pairs]
    assert np.mean(taken == truly_best) < 0.3  # by chance 1 of 8
    for row, pair in enumerate(pairs):
        greedy, best = returns(pair)
        of_text = sorted(rewards[9 * row : 9 * row + 9])
        assert greedy in of_text
        # The best drawn choice has the largest reward, or the second largest if the greedy one got that.
        assert best == (of_text[-2] if greedy == of_text[-1] else of_text[-1])


def test_the_rewards_are_dealt_once():
    """Of rewards 1, 1, 0 no drawn choice that is taken can have less than the greedy one."""
    higher = 0
    for seed in range(20):
        agent = made(seed)
        played(agent, [1.0, 1.0, 0.0])
        [[_, [best]]] = agent.kept.whole()
        before = logprob(agent, best)
        agent.learn()
        after = logprob(agent, best)
        assert after >= before - 1e-6
        higher += after > before + 1e-6
    assert 0 < higher < 20


@pytest.mark.parametrize("choose", ["first", "random", "climb"])
def test_a_control_that_learns_no_policy_has_no_shuffled_rewards(choose):
    with pytest.raises(UsageError, match=f"shuffle is a control of the policy, and choose={choose}"):
        Compress(lm=trainable(SCRATCH), group=3, shuffle=True, choose=choose)


@pytest.mark.parametrize(("first", "kept"), [("2", 2), ("\u00b2", 1), ("two", 1)])
def test_a_control_reads_the_length_where_it_is_a_number(first, kept):
    agent = Compress(lm=trainable(SCRATCH), group=3, choose="first", keep=0.25)
    agent.begin(World(), 0)
    [text] = agent.act([State(f"{first} words : the old baker sold")])
    assert text.split() == ["the", "old", "baker", "sold"][:kept]


def test_a_number_at_the_beginning_of_a_text_asks_for_no_length():
    agent = Compress(lm=trainable(SCRATCH), group=3, choose="first", keep=0.5)
    agent.begin(World(), 0)
    [text] = agent.act([State("7 bakers who slept sold red carts")])
    assert text == "7 bakers who slept"  # half of seven words, rounded to an even number


def logprob(agent, step):
    with torch.no_grad():
        return float(agent.policy.evaluate([step.transition.state], [step.decision]).logprobs.sum())


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_run_goes_on_from_a_checkpoint_as_if_nothing_had_happened(shuffle):
    rng = np.random.default_rng(1)
    rewards = rng.random((8, 6))

    def continued(agent, rows):
        metrics = []
        for row in rows:
            played(agent, list(row))
            metrics.append(agent.learn())
        return metrics

    whole = made(streams=6, episodes=8, shuffle=shuffle)
    told = continued(whole, rewards)
    first = made(streams=6, episodes=8, shuffle=shuffle)
    before = continued(first, rewards[:5])  # 2 of the 4 groups that an update needs
    second = made(streams=6, episodes=8, shuffle=shuffle)
    second.load_state_dict(first.state_dict())
    assert before + continued(second, rewards[5:]) == told
    weights = second.lm.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in whole.lm.state_dict().items())


@pytest.mark.parametrize("n", [1, 9])
def test_a_token_of_several_words_is_refused_in_a_sentence(n):
    """Of the sentences that it was trained on, pocket has tokens such as "You see a"."""
    agent = Compress(lm=trainable("pocket?corpus=walks"), group=3)
    agent.begin(World(), 0)
    with pytest.raises(UsageError, match="has a token that goes on from"):
        agent.act([State("You see a red ball 2 steps left", stream=stream) for stream in range(n)])


def test_the_state_of_a_word_is_that_after_its_last_token():
    agent = Compress(lm=trainable("pocket?corpus=walks"), group=3)
    agent.begin(World(), 0)
    text = TEXT.observation
    ends = agent.policy._ends_of(text, text)
    [written] = agent.lm.as_written([text], [text])
    [start] = agent.lm.prompt_tokens([text], 1)
    words = text.split()
    for n, end in enumerate(ends, start=1):
        assert agent.lm.model.decode(start, written.tokens[:end]).split() == words[:n]
