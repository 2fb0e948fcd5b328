"""Say-Select: two players, five balls, and any convention is as good as another."""

import pytest

import hunch
from hunch.core import Player, UsageError
from hunch.rl.episodes import evaluate, play
from hunch.rl.rollout import Rollout
from hunch_studies.worlds.say_select import QUIT, all_deals

ID = "hunch/SaySelect-v0"


def through(env, speak, listen, seed=0, number=0):
    """Play an episode by two functions of the state."""
    return list(play(env, lambda s: (listen if s.stream % 2 else speak)(s), seed, number))


def oracle(env):
    return lambda state: env.unwrapped.oracle()[0]


@pytest.mark.parametrize("words", [False, True])
def test_whoever_says_what_is_meant_collects_every_deal(words):
    env = hunch.make(ID, words=words, deals="in turn")
    deals = all_deals(5, 3)
    assert len(deals) == len(set(deals)) == 25
    for number, deal in enumerate(deals):
        steps = through(env, oracle(env), oracle(env), number=number)
        own = [t for t in steps if t.stream == 1]
        assert sum(t.reward for t in own) == len(deal)
        assert steps[-1].success


def test_another_pairing_is_as_good():
    """The listener selects the next ball in the circle, and the speaker knows."""
    env = hunch.make(ID, deals="in turn")

    def speak(state):
        good = sorted(env.unwrapped.good) or [env.unwrapped.selected]
        return f"say {(good[0] - 1) % 5 + 1}"

    def listen(state):
        said = int(state.observation[-2])
        again = f"You selected {said % 5 + 1}." in state.observation
        return QUIT if again else f"select {said % 5 + 1}"

    assert all(through(env, speak, listen, number=n)[-1].success for n in range(25))


def test_both_players_get_what_the_listener_earns():
    rollout = Rollout([hunch.make(ID)], 0)
    assert rollout.streams == 2
    while not rollout.finished:
        transitions = rollout.step([s.options[-1] for s in rollout.states])
        assert all(t.reward in (-1.0, 0.0, 1.0) for t in transitions)
    (ended,) = rollout.take_finished()
    assert ended.length == 10, "five turns each"
    assert ended.episode_return == -5 or ended.episode_return == -3, "the same ball is bad from then on"


def test_a_good_ball_is_bad_once_it_was_selected_and_quitting_ends_it():
    env = hunch.make(ID, good=1, deals="in turn")
    env.reset(seed=0, options={"episode": 2})
    env.step("say 3")
    _, reward, *_ = env.step("select 3")
    env.step("say 3")
    _, again, *_ = env.step("select 3")
    env.step("say 1")
    _, nothing, terminated, _, info = env.step(QUIT)
    assert (reward, again, nothing, terminated, info["success"]) == (1.0, -1.0, 0.0, True, False)


def test_the_listener_never_sees_the_balls():
    env = hunch.make(ID)
    seen = [t.state.observation for n in range(20) for t in through(env, oracle(env), oracle(env), n)]
    assert all(("Good balls" in text) != ("Your partner says" in text) for text in seen)


def test_a_player_that_always_quits_earns_nothing():
    env = hunch.make(ID)

    class Quitter(Player):
        def act(self, states):
            return [s.options[0] for s in states]  # "say 1", and quit

        def observe(self, transitions):
            pass

    assert {e.episode_return for e in evaluate(lambda _: Quitter(), [env], 5, 0)} == {0.0}


@pytest.mark.parametrize("options", [{"balls": 10}, {"good": 6}, {"balls": 2}])
def test_too_many_balls(options):
    with pytest.raises(UsageError, match="Say-Select has at most 9"):
        hunch.make(ID, **options)
