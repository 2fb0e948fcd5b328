"""A model as the opponent in a game of several players: the game becomes one of the first player."""

import copy
from typing import ClassVar

import pytest

import hunch
from hunch.core import UsageError
from hunch.envs import Outcome, TextEnv
from hunch.envs.opponent import Against
from hunch.lm import Cached
from hunch.lm.base import Model
from hunch.lm.prompts import Message
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.roles import PriorConfig
from hunch.runs.execute import RunConfig, execute


class Sticks(TextEnv):
    """Take one or two of some sticks by turns; who takes the last one wins."""

    metadata: ClassVar = {"render_modes": ["ansi"], "players": 2}
    free = False

    def _begin(self, options):
        self.left, self.player, self.paid = 7, 0, [0.0, 0.0]
        return Outcome(f"{self.left} sticks are left.", None if self.free else ("take 1", "take 2"))

    def _move(self, action):
        self.left = max(0, self.left - (2 if "2" in action else 1))
        over = self.left == 0
        if over:
            self.paid = [1.0, -1.0] if self.player == 0 else [-1.0, 1.0]
        mover, self.player = self.player, 1 - self.player
        told = f"Player {mover} took sticks; {self.left} are left."
        listed = None if self.free else ("take 1", "take 2")
        return Outcome(told, listed, self.paid[0], terminated=over, success=over, event=told)

    def _extras(self):
        return {"player": self.player, "rewards": self.paid}


class Written(Sticks):
    """The same, where any text is a move."""

    free = True


class Taker(Model):
    """Always takes as many sticks as it is told to."""

    verbs = frozenset({"generate"})
    revision, evidence = "1", "L0"
    answer_tokens = 64
    messages = True

    def __init__(self, text):
        self.name, self.text, self.prompts = f"taker {text}", text, []

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.prompts += prompts
        return [[self.text] * k for _ in prompts]


def against(game, text):
    model = Cached(Taker(text))
    return Against(game(max_steps=20), model), model


@pytest.mark.parametrize("game", [Sticks, Written])
def test_the_model_moves_until_it_is_the_first_players_turn(game):
    env, _ = against(game, "take 2")
    observation, info = env.reset(seed=0)
    assert "player" not in info
    observation, reward, terminated, _, info = env.step("take 1")
    assert observation == "Player 1 took sticks; 4 are left."
    assert info["event"].splitlines() == ["Player 0 took sticks; 6 are left.", observation]
    assert (reward, terminated) == (0.0, False)
    env.step("take 1")  # 3, then 1
    _, reward, terminated, _, info = env.step("take 1")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_the_opponents_win_is_no_success():
    env, _ = against(Sticks, "take 2")
    env.reset(seed=0)
    env.step("take 2")  # 5, then 3
    _, reward, terminated, _, info = env.step("take 1")  # 2, then 0
    assert (reward, terminated, info["success"]) == (-1.0, True, False)


def test_where_any_text_is_a_move_the_opponent_sees_its_own_conversation():
    env, model = against(Written, "take 1")
    env.reset(seed=0)
    env.step("take 1")
    env.step("take 1")
    first, second = model.model.prompts
    assert [message.role for message in first] == ["system", "user"]
    assert second[1:4] == (
        Message("user", "Player 0 took sticks; 6 are left."),
        Message("assistant", "take 1"),
        Message("user", "Player 0 took sticks; 4 are left."),
    )
    env.reset(seed=0)
    env.step("take 1")
    assert len(model.model.prompts) == 2  # the same seed asks for the same sample, which is known


def test_episodes_after_a_seeded_one_repeat_as_well():
    def moves():
        env = hunch.make(f"{__name__}:Sticks", max_steps=40, opponent="uniform")
        chosen = []
        for episode in range(8):
            env.reset(seed=5 if episode == 0 else None)
            over = False
            while not over:
                _, _, terminated, truncated, info = env.step("take 1")
                over = terminated or truncated
                chosen.append(info["event"])
        return chosen

    assert moves() == moves()


def test_it_is_an_environment_of_one_player_that_copies_and_keeps_the_contract():
    env, _ = against(Sticks, "take 2")
    hunch.envs.check(env)
    env.reset(seed=0)
    env.step("take 1")
    twin = copy.deepcopy(env)
    assert twin.step("take 2")[:2] == env.step("take 2")[:2]


def test_a_run_against_a_model_counts_its_answers(tmp_path):
    env, _ = against(Sticks, "take 2")
    result = hunch.train("q-learning", env, steps=30)
    assert result.episodes
    assert result.models["opponent"]["calls"] > 0
    assert {len(episode.actions) for episode in result.episodes} <= {2, 3}


def test_it_is_an_option_of_every_environment_and_needs_a_game_of_several(tmp_path):
    with pytest.raises(UsageError, match="no game of several players"):
        hunch.make("hunch/FrozenLake-v0", opponent="uniform").reset(seed=0)
    env = hunch.make(f"{__name__}:Sticks", max_steps=20, opponent="uniform")
    assert env.get_wrapper_attr("option") == {"opponent": "uniform"}
    options = ZeroShotConfig(prior=PriorConfig(way="text"))
    config = RunConfig(
        env=f"{__name__}:Sticks",
        env_options={"max_steps": 20, "opponent": "uniform"},
        method="zero-shot",
        lm="uniform",
        steps=12,
        options=options,
    )
    first = execute(config, tmp_path / "one")
    second = execute(config, tmp_path / "two")
    assert [e.actions for e in first.episodes] == [e.actions for e in second.episodes]
    assert len(first.episodes) >= 2
