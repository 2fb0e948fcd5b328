"""Prompts as policies: what soft Q finds, controls at equal scores, choices by question, bad input."""

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.core import Episode, State, Transition, UsageError, World
from hunch.envs.base import Outcome, TextEnv
from hunch.roles.encoder.features import TextTable

WORDS = tuple("abcdefghijklmnopqrst")


class Scored(TextEnv):
    """A score that adds up over words: a, b and c bring 1 each, once."""

    offers = ("free_text",)
    things = WORDS

    def __init__(self, render_mode=None):
        super().__init__(1, render_mode)

    def _begin(self, options):
        return Outcome("Write a prompt.", None)

    def _move(self, action):
        noise = float(self.np_random.normal()) * 0.2
        return Outcome("", None, len(set(action.split()) & set("abc")) + noise, True, True)


def test_soft_q_becomes_the_boltzmann_distribution_of_the_rewards():
    """With all texts and exact rewards, log pi(text) and the reward differ by a constant."""
    pytest.importorskip("torch")
    from hunch_contrib.prompt.soft_q import Counts, SoftQ

    texts = np.array([(i, j) for i in range(3) for j in range(3)])
    rewards = np.random.default_rng(0).normal(size=9)
    q = SoftQ(Counts(3, 2), 32, 1e-2, 0.0, 0.1, 0)
    for _ in range(1_500):
        q.update(texts, rewards)
    scores = q.network(q.features(texts)).log_softmax(2).detach().numpy()
    chances = np.array([scores[n, [0, 1], text].sum() for n, text in enumerate(texts)])
    assert np.ptp(chances - rewards) < 0.02
    assert np.exp(chances).sum() == pytest.approx(1, abs=1e-5)
    assert list(q.write(None)) == list(texts[rewards.argmax()])


def test_soft_q_proposes_better_prompts_than_chance():
    agent = methods.find("rlprompt").agent_class()
    hunch.train(agent, Scored(), steps=120, seed=0)
    scores = [row["score"] for row in agent.records()]
    assert len(scores) == 120
    assert np.mean(scores[-40:]) > np.mean(scores[:30]) + 0.3


def test_q_is_a_layer_on_a_frozen_language_model():
    """It reads the model's states, all values are near 0 at first, and the model never changes."""
    pytest.importorskip("hunch_pocket")
    import torch

    from hunch_contrib.prompt.soft_q import FrozenLM, SoftQ

    words = ("apple", "cup", "go", "take")
    model = lm.trainable("pocket?corpus=households")
    before = [weights.clone() for weights in model.network.parameters()]
    features = FrozenLM(model, words, 2)
    q = SoftQ(features, 64, 1e-3, 0.0, 0.1, 0)
    texts = np.array([(0, 2), (0, 3), (1, 2)])
    states = features(texts)
    assert states.shape == (3, 2, model.dim)
    expected = model.states(["Prompt:", "Prompt: apple", "Prompt: cup"])
    torch.testing.assert_close(states[0, 1], expected[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(states[2], expected[[0, 2]], rtol=1e-4, atol=1e-5)
    assert q.network(states).abs().max() < 1e-2

    every = np.array([(i, j) for i in range(4) for j in range(4)])
    rewards = np.random.default_rng(0).normal(size=16)
    for _ in range(300):
        q.update(every, rewards)
    assert list(q.write(None)) == list(every[rewards.argmax()])
    assert all(torch.equal(a, b) for a, b in zip(before, model.network.parameters(), strict=True))


def test_search_at_random_answers_with_the_best_prompt_so_far():
    agent = methods.find("rlprompt").agent_class(search="random")
    hunch.train(agent, Scored(), steps=60, seed=0)
    [text] = agent.player(0).act([State("Write a prompt.")])
    assert text == max(agent.records(), key=lambda row: row["score"])["prompt"]


def test_an_edit_changes_one_word_of_the_best_prompt():
    agent = methods.find("rlprompt").agent_class(search="edits")
    hunch.train(agent, Scored(), steps=60, seed=0)
    tried = [row["prompt"].split() for row in agent.records()]
    best = agent.spelled(agent.best()).split()
    for _ in range(50):
        edited = agent.spelled(agent.proposed()).split()
        assert sum(one != other for one, other in zip(edited, best, strict=True)) == 1
    assert len(tried) == 60


def test_words_with_spaces_are_refused():
    with pytest.raises(UsageError, match="single words"):
        methods.find("rlprompt").agent_class().begin(World(things=("mug 2", "cup"), steps=9), 0)


@pytest.mark.parametrize("search", ["soft-q", "random", "edits"])
def test_the_contract_of_every_search(search):
    agent = methods.find("rlprompt").agent_class(search=search, warmup=4, updates=2)
    methods.check(agent, Scored(), steps=12, streams=2)


def test_the_contract_on_a_language_model():
    pytest.importorskip("hunch_pocket")
    agent = methods.find("rlprompt").agent_class(lm="pocket?corpus=households", warmup=4, updates=2)
    assert agent.evidence == "L1"
    methods.check(agent, Scored(), steps=12, streams=2)
    control = methods.find("rlprompt").agent_class(lm="pocket?corpus=households", search="random")
    assert control.evidence is None, "no prompt of a control depends on the model"


def episodes(right):
    """A result for each of some questions and prompts."""
    made = []
    for question in ("red one", "red two", "blue one", "blue two"):
        for prompt in ("say red", "say blue"):
            state = State(question, actions=("say red", "say blue"))
            reward = right(question, prompt)
            made.append(Episode((Transition(state, prompt, reward, State(""), True, False),)))
    return made


def test_the_prompt_is_chosen_by_question():
    data = episodes(lambda question, prompt: float(question.split()[0] in prompt))
    agent = methods.find("prompt-oirl").agent_class(TextTable(lm.load("bag-of-words")))
    agent.begin(World(data=data, streams=0, steps=200), 0)
    for _ in range(200):
        agent.learn()
    asked = [State(f"{colour} three", actions=("say red", "say blue")) for colour in ("red", "blue")]
    assert agent.player(0).act(asked) == ["say red", "say blue"]


@pytest.mark.parametrize("earlier", [False, True])
def test_the_best_of_the_records_is_known_to_an_agent_that_is_loaded_to_act(earlier):
    """It has no recorded results of its own; earlier checkpoints hold those of the replay buffer alone."""
    data = episodes(lambda question, prompt: float("blue" in prompt))
    made = [
        methods.find("prompt-oirl").agent_class(TextTable(lm.load("bag-of-words")), choose="fixed")
        for _ in range(2)
    ]
    for agent, known in zip(made, (data, ()), strict=True):
        agent.begin(World(data=known, streams=0, steps=9), 0)
    state = made[0].state_dict()
    if earlier:
        del state["means"]
    made[1].load_state_dict(state)
    asked = [State("green one", actions=("say red", "say blue"))]
    assert [agent.player(0).act(asked) for agent in made] == [["say blue"]] * 2
    assert made[1].means == made[0].means == {"say red": 0.0, "say blue": 1.0}


@pytest.mark.parametrize(
    ("right", "told"),
    [(lambda q, p: 1.0, "All recorded results are equal"), (None, "one prompt only")],
)
def test_results_that_tell_nothing_are_refused(right, told):
    data = episodes(right or (lambda q, p: float("red" in q)))
    data = data if right else data[::2]
    agent = methods.find("prompt-oirl").agent_class(TextTable(lm.load("bag-of-words")))
    with pytest.raises(UsageError, match=told):
        agent.begin(World(data=data, streams=0, steps=9), 0)


def test_the_best_of_the_records_takes_no_new_results():
    data = episodes(lambda question, prompt: float("blue" in prompt))
    agent = methods.find("prompt-oirl").agent_class(TextTable(lm.load("bag-of-words")), choose="fixed")
    with pytest.raises(UsageError, match="leave out online"):
        agent.begin(World(data=data, streams=1, steps=9), 0)


def test_without_words_there_is_no_prompt():
    agent = methods.find("rlprompt").agent_class()
    with pytest.raises(UsageError, match="at least two words"):
        agent.begin(World(steps=9), 0)
