"""Replays of episodes for the page: what was rewarded and seen at each action."""

import json
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import pytest

import hunch
from hunch.report.episodes import RunEpisodes, episodes_of, replay
from hunch.report.pack import pack
from hunch.rl.rollout import Rollout

PNG = b"\x89PNG\r\n\x1a\n"


class Counting(gymnasium.Env):
    """Two players count to four by turns; some numbers are drawn."""

    metadata = {"players": 2, "render_modes": []}  # noqa: RUF012
    observation_space = gymnasium.spaces.Text(100)
    action_space = gymnasium.spaces.Text(100)

    def __init__(self, rewards=None, drawn=()):
        self.rewards = rewards
        self.drawn = drawn

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return "0", self.info()

    def step(self, action):
        self.count += 1
        return str(self.count), 0.1 * self.count, self.count == 4, False, self.info()

    def info(self):
        info = {"actions": (f"say {self.count + 1}", "wait"), "player": self.count % 2}
        if self.rewards is not None:
            info["rewards"] = self.rewards
        if self.count in self.drawn:
            info["pictures"] = (PNG + bytes([self.count]),)
        return info


gymnasium.register("tests/Counting-v0", Counting)


def replayed(episodes=1, **options):
    env = hunch.make("tests/Counting-v0", **options)
    rollout = Rollout([env], seeds=range(episodes))
    while rollout.states:
        rollout.step([rollout.states[0].options[0]])
    finished = rollout.take_finished()
    return finished, replay(SimpleNamespace(env="tests/Counting-v0", env_options=options, data=""), finished)


@pytest.mark.parametrize("rewards", [None, (1.0, -1.0)])
def test_a_game_of_two_players_is_replayed_action_by_action(rewards):
    _, (one,) = replayed(rewards=rewards)
    assert one.answers == ["0", "1", "2", "3", "4"]
    assert [offer[0] for offer in one.offers] == ["say 1", "say 2", "say 3", "say 4"]
    assert one.rewards == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("drawn", [(), (2,), (0, 4), (0, 1, 2, 3, 4)])
def test_pictures_stand_beside_their_states(drawn):
    finished, seen = replayed(episodes=3, drawn=drawn)
    seen[1] = replace(seen[1], pictures=[])  # as of an episode without any
    run = SimpleNamespace(result=SimpleNamespace(episodes=finished))
    _, (block,) = pack([RunEpisodes(run, finished, seen, "", {}, "")], plain=True)
    columns = json.loads(block)
    assert len(columns["pictures"]) == (len(columns["answers"]) if drawn else 0)
    for episode in (seen[0], seen[2]):
        assert [n for n, url in enumerate(episode.pictures) if url] == list(drawn)


class Sore(Counting):
    """Its actions must not stand on a page as they are."""

    def masked(self, text):
        return text.replace("say", "s*y")


gymnasium.register("tests/Sore-v0", Sore)


def test_a_page_shows_texts_as_their_environment_masks_them(tmp_path):
    env = hunch.make("tests/Sore-v0")
    rollout = Rollout([env], seeds=[0])
    while rollout.states:
        rollout.step([rollout.states[0].options[0]])
    finished = rollout.take_finished()
    config = SimpleNamespace(env="tests/Sore-v0", env_options={}, data="")
    result = SimpleNamespace(episodes=finished, evaluations=[])
    tale = episodes_of(SimpleNamespace(config=config, result=result, folder=tmp_path), 0)
    assert tale.reason == ""  # replayed with the actions as they were
    assert tale.episodes[0].actions == ("s*y 1", "s*y 2", "s*y 3", "s*y 4")
