"""A lifetime read step by step gives what it gives when read at once."""

import numpy as np
import pytest
import torch

from hunch.core import Episode, State, Transition, UsageError
from hunch.rl.lifetimes import Vocabulary, batch, drawn, histories, labelled, pieces
from hunch.rl.sequence import SequenceModel, Steps


def network() -> SequenceModel:
    torch.manual_seed(0)
    return SequenceModel(pieces=20, actions=5, length=40, places=10, width=32, layers=2, heads=4)


def steps(n: int, t: int, seed: int = 0) -> Steps:
    rng = np.random.default_rng(seed)
    rows = (rng.integers(0, 21, (n, t, 6)), rng.integers(0, 6, (n, t)))
    return Steps.of(*rows, rng.random((n, t)), rng.integers(0, 10, (n, t)))


def part(whole: Steps, lives: list[int], at: list[int]) -> Steps:
    """One step of each of some lifetimes."""
    return Steps(
        *(torch.stack([each[i, t] for i, t in zip(lives, at, strict=True)])[:, None] for each in whole)
    )


def test_the_cache_gives_what_the_whole_lifetime_gives():
    model, whole = network(), steps(3, 25)
    cache, full = model.begin(), model(whole)
    for t in range(25):
        logits = model.step(part(whole, [0, 1, 2], [t] * 3), cache, [7, 3, 9])
        torch.testing.assert_close(logits, full[:, t], rtol=1e-5, atol=1e-5)


def test_streams_may_be_at_different_steps_and_forget():
    model, whole = network(), steps(2, 20)
    cache, full = model.begin(), model(whole)
    for t in range(10):
        model.step(part(whole, [0], [t]), cache, [0])
    for t in range(10):
        logits = model.step(part(whole, [1, 0], [t, 10 + t]), cache, [4, 0])
        torch.testing.assert_close(logits, torch.stack([full[1, t], full[0, 10 + t]]), rtol=1e-5, atol=1e-5)
    cache.forget([0])
    torch.testing.assert_close(
        model.step(part(whole, [0], [0]), cache, [0])[0], full[0, 0], rtol=1e-5, atol=1e-5
    )


def test_the_memory_is_copied_only_for_new_streams():
    model, whole = network(), steps(2, 3)
    cache = model.begin()
    model.step(part(whole, [0, 1], [0, 0]), cache, [0, 1])
    memory = cache.memory
    model.step(part(whole, [0, 1], [1, 1]), cache, [0, 1])
    cache.forget([1])
    model.step(part(whole, [0, 1], [2, 0]), cache, [0, 1])
    assert cache.memory is memory
    model.step(part(whole, [0], [0]), cache, [2])
    assert cache.memory is not memory


def test_the_future_does_not_matter():
    model, whole = network(), steps(1, 20)
    other = Steps(
        *(torch.cat([a[:, :10], b[:, 10:]], 1) for a, b in zip(whole, steps(1, 20, seed=1), strict=True))
    )
    torch.testing.assert_close(model(whole)[:, :10], model(other)[:, :10])


def test_a_number_belongs_to_the_word_before_it():
    assert pieces("You are in row 3, column 4.")[-4:] == ["row", "row 1 3", "column", "column 1 4"]
    assert pieces("at (2, 3)") == ["at", "at 1 2", "at 2 3"]
    assert pieces("") == []


def episode(number: int, actions: str, lifetime: int = 0, reward: float = 0.0) -> Episode:
    listed = ("a", "b")
    made = [
        Transition(
            State(f"place {i}", actions=listed, raw=i),
            action,
            reward,
            State(f"place {i + 1}", actions=listed, raw=i + 1),
            False,
            i == len(actions) - 1,
        )
        for i, action in enumerate(actions)
    ]
    return Episode(tuple(made), lifetime, number)


def test_histories_are_lifetimes_in_the_order_of_their_episodes():
    data = [episode(2, "ab", 1), episode(0, "ba", 0), episode(0, "aa", 1), episode(1, "bb", 1)]
    assert [[e.number for e in own] for own in histories(data)] == [[0], [0, 1, 2]]


def test_a_step_carries_the_action_and_reward_before_it_across_episodes():
    data = [episode(0, "ab", reward=1.0), episode(1, "ba", reward=2.0)]
    words = Vocabulary.of(data)
    _, actions, rewards, places, labels = batch([[words.life(e, [t.action for t in e]) for e in data]])
    assert actions.tolist() == [[0, 1, 2, 2]]
    assert rewards.tolist() == [[0, 1, 1, 2]]
    assert places.tolist() == [[0, 1, 0, 1]]
    assert labels.tolist() == [[0, 1, 1, 0]]


def test_lifetimes_of_different_length_have_no_labels_after_their_end():
    data = [episode(0, "ab"), episode(1, "b")]
    words = Vocabulary.of(data)
    own = [words.life(e, [t.action for t in e]) for e in data]
    *_, labels = batch([[own[0]], [own[1]]])
    assert labels.tolist() == [[0, 1], [1, -1]]


@pytest.mark.parametrize("order", ["histories", "ends", "shuffled"])
def test_which_episodes_make_an_example(order):
    rng = np.random.default_rng(0)
    found = [drawn(20, 4, 3, order, rng) for _ in range(200)]
    assert all(len(set(own)) == 4 and set(own) <= set(range(20)) for own in found)
    if order == "histories":
        assert all(np.diff(own).tolist() == [3, 3, 3] for own in found)
        assert {own[0] for own in found} == set(range(11))
    elif order == "ends":
        assert {tuple(own) for own in found} == {(16, 17, 18, 19)}
    else:
        assert any(own != sorted(own) for own in found)


def test_final_labels_are_what_the_learner_did_in_the_end():
    life = [episode(i, "aa") for i in range(10)] + [episode(i, "ba") for i in range(10, 20)]
    assert labelled(life, "final", None)[0] == ["b", "a"]
    assert labelled(life, "taken", None)[0] == ["a", "a"]
    assert labelled(life, "best", lambda raw: "ab"[raw])[0] == ["a", "b"]


def test_what_only_the_end_of_an_episode_shows_is_known_where_it_is_read():
    data = [episode(0, "ab")]
    assert "place 1 2" not in Vocabulary.of(data).pieces
    assert Vocabulary.of(data, ends=True).observation("place 2").any()


def test_what_the_data_never_show_is_named():
    words = Vocabulary.of([episode(0, "ab")])
    with pytest.raises(UsageError, match="never have 'place 1 9'"):
        words.observation("place 9")
    with pytest.raises(UsageError, match="action 'c' is not in the recorded data"):
        words.action("c")
