"""Offline data: what is written is read again, and inconsistent data are refused where they are wrong."""

import json
import random
import struct
import warnings
from dataclasses import replace

import pytest

from hunch.core import Episode, HunchError, HunchWarning, Picture, State, Transition, UsageError
from hunch.rl.dataset import (
    Dataset,
    as_episodes,
    check,
    digest,
    load,
    read_json_lines,
    same_environment,
    save,
)
from hunch.rl.dataset import _plain as as_json
from hunch.rl.recording import Recording

WON = Recording(
    observations=("a room", "a hall ≠", "the goal"),
    admissible=(("left", "right"), ("left", "up"), ()),
    actions=("right", "up"),
    rewards=(-0.1, 1.0),
    terminated=True,
    truncated=False,
    task="find the goal",
    success=True,
    behaviour="oracle",
    seed=3,
)
DATA = Dataset("hunch/FrozenLake-v0", {"max_steps": 9}, (WON, WON.cut(1)), {"why": "a test"})


def test_written_and_read_again(tmp_path):
    save(DATA, tmp_path / "d")
    assert load(tmp_path / "d") == DATA


@pytest.mark.parametrize("name", ["metadata.json", "main_data.hdf5"])
def test_one_changed_bit_is_a_sentence_or_harmless(tmp_path, name):
    save(DATA, tmp_path / "d")
    (path,) = (tmp_path / "d").rglob(name)
    whole, rng, refused = path.read_bytes(), random.Random(name), []
    for _ in range(60):
        place = rng.randrange(8 * len(whole))
        path.write_bytes(
            whole[: place // 8] + bytes([whole[place // 8] ^ 1 << place % 8]) + whole[place // 8 + 1 :]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HunchWarning)  # of a checksum whose name changed
            try:
                assert load(tmp_path / "d") == DATA, f"bit {place}"
            except HunchError as error:
                refused.append(str(error))
    assert refused
    assert "\n" not in "".join(refused)


def test_another_reward_is_no_data(tmp_path):
    """Its number is as good as the one that was recorded."""
    save(DATA, tmp_path / "d")
    (path,) = (tmp_path / "d").rglob("main_data.hdf5")
    recorded, other = struct.pack("<d", -0.1), struct.pack("<d", 0.1)
    assert recorded in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(recorded, other, 1))
    with pytest.raises(HunchError, match="damaged: its checksum does not fit"):
        load(tmp_path / "d")


def test_data_of_an_earlier_version_are_read_with_one_sentence(tmp_path):
    save(DATA, tmp_path / "d")
    (path,) = (tmp_path / "d").rglob("metadata.json")
    about = json.loads(path.read_text())
    del about["hunch"]["checksum"]
    path.write_text(json.dumps(about))
    with pytest.warns(HunchWarning, match="without a checksum"):
        assert load(tmp_path / "d") == DATA


def test_minari_reads_it_too(tmp_path):
    minari = pytest.importorskip("minari")
    save(DATA, tmp_path / "d")
    episodes = list(minari.MinariDataset(tmp_path / "d").iterate_episodes())
    assert [len(episode.rewards) for episode in episodes] == [2, 1]
    assert tuple(episodes[0].observations) == WON.observations


def write_json_lines(episodes, file):
    file.write_text("".join(json.dumps(as_json(episode)) + "\n" for episode in episodes))


def test_json_lines(tmp_path):
    write_json_lines(DATA.episodes, tmp_path / "d.jsonl")
    assert read_json_lines(tmp_path / "d.jsonl", DATA.env, DATA.env_options).episodes == DATA.episodes
    (tmp_path / "d.jsonl").write_text(json.dumps({"observations": ["a"]}) + "\n")
    with pytest.raises(UsageError, match="Line 1 of"):
        read_json_lines(tmp_path / "d.jsonl", DATA.env, {})


def test_history_is_made_of_the_steps_before():
    first, last = replace(WON, history=1).transitions()
    assert first.state.history == ()
    assert last.state.history == (("a room", "right"),)
    assert last.next_state.history == (("a hall ≠", "up"),)
    assert last.next_state.text() == "a hall ≠\n> up\nthe goal"


def test_a_digest_tells_data_apart():
    episodes = as_episodes(DATA)
    negated = [[replace(t, reward=-t.reward) for t in episode] for episode in episodes]
    assert digest(episodes) == digest(as_episodes(DATA))
    assert len({digest(episodes), digest(negated), digest(episodes[:1])}) == 3


def test_episodes_without_an_end_are_refused():
    (first, last) = WON.transitions()
    for wrong in ([first], [last, last], []):
        with pytest.raises(UsageError, match="Recorded episode 1 has no end"):
            as_episodes([[first, last], wrong])


def test_transitions():
    first, last = WON.transitions()
    assert (first.state.observation, first.action, first.reward) == ("a room", "right", -0.1)
    assert first.next_state == last.state
    assert not first.done
    assert last.terminated
    assert not last.truncated
    (only,) = WON.cut(1).transitions()
    assert only.truncated
    assert not only.terminated
    assert not WON.cut(1).success


@pytest.mark.parametrize("end", [((),), (None,), ()], ids=["empty", "null", "left out"])
@pytest.mark.parametrize("limit", [False, True])
def test_no_action_at_the_end(end, limit, tmp_path):
    line = json.loads(json.dumps(as_json(WON)))
    line |= {"admissible": [*line["admissible"][:2], *end], "terminated": not limit, "truncated": limit}
    (tmp_path / "own.jsonl").write_text(json.dumps(line), encoding="utf-8")
    read = read_json_lines(tmp_path / "own.jsonl", DATA.env, {})
    assert read.episodes == (WON,)
    save(read, tmp_path / "data")
    assert load(tmp_path / "data").episodes == (WON,)
    states = WON.episode()
    last = replace(states[-1], next_state=replace(states[-1].next_state, actions=end[0] if end else None))
    last = replace(last, terminated=not limit, truncated=limit)
    assert as_episodes([[states[0], last]])[0].transitions == states.transitions


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (replace(WON, actions=("right", "fly")), "episode 1, step 1: the action 'fly' was not admissible"),
        (replace(WON, rewards=(float("nan"), 1.0)), "step 0: the reward is nan"),
        (replace(WON, rewards=(1.0,)), "2 actions need 2 rewards, but there are 1"),
        (replace(WON, observations=WON.observations[:2]), "need 3 observations"),
        (replace(WON, terminated=False), "neither terminated nor truncated"),
        (replace(WON, admissible=(("left", "right", "left"), *WON.admissible[1:])), "twice"),
    ],
)
def test_inconsistent_data_are_refused_where_they_are_wrong(broken, sentence, tmp_path):
    data = replace(DATA, episodes=(WON, broken))
    with pytest.raises(UsageError, match=sentence):
        check(data)
    with pytest.raises(UsageError, match=sentence):
        save(data, tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_folders_that_hold_no_data_set(tmp_path):
    with pytest.raises(UsageError, match="no data set"):
        load(tmp_path / "none")
    save(DATA, tmp_path / "d")
    with pytest.raises(UsageError, match="already holds"):
        save(DATA, tmp_path / "d")
    (tmp_path / "d" / "main_data.hdf5").write_bytes(b"garbage")
    with pytest.raises(HunchError, match="damaged"):
        load(tmp_path / "d")
    (tmp_path / "d" / "metadata.json").write_text("{")
    with pytest.raises(HunchError, match="damaged"):
        load(tmp_path / "d")
    (tmp_path / "d" / "metadata.json").write_text("{}")
    with pytest.raises(UsageError, match="admissible"):
        load(tmp_path / "d")


def test_another_environment_is_refused():
    same_environment(DATA, "hunch/FrozenLake-v0")
    same_environment(DATA, "somewhere:hunch/FrozenLake-v0")
    with pytest.raises(UsageError, match="recorded in hunch/FrozenLake-v0, not in hunch/FrozenLake-v1"):
        same_environment(DATA, "hunch/FrozenLake-v1")


def test_everything_of_an_episode_is_kept(tmp_path):
    """Events, plain numbers, free text, pictures, tasks that change, player, lifetime and group."""
    picture = Picture.read(b"not really a png")
    states = [
        State("one", "find it", None, pictures=(picture,), raw={"x": [1, 2]}, seat=1),
        State("two", "find it", None, raw=None, seat=1),
        State("three", "find the other", None, raw=object(), seat=1),
    ]
    steps = [
        Transition(states[0], "anything\nat all", 0.5, states[1], False, False, event="it rang"),
        Transition(states[1], "", -1.0, states[2], False, True, True),
    ]
    recording = Recording.of(Episode(tuple(steps), 3, 7, 2), "me", 11)
    save(Dataset("hunch/X-v0", {}, (recording,)), tmp_path / "data")
    (again,) = load(tmp_path / "data").episodes
    assert again == recording
    write_json_lines([recording], tmp_path / "lines.jsonl")
    (from_lines,) = read_json_lines(tmp_path / "lines.jsonl", "hunch/X-v0", {}).episodes
    assert from_lines == recording
    episode = again.episode()
    assert (episode.lifetime, episode.number, episode.group) == (3, 7, 2)
    assert list(episode) == [replace(t, success=t.done) for t in steps]
    assert [t.state.raw for t in episode] == [{"x": [1, 2]}, None]
    assert [t.state.seat for t in episode] == [1, 1]
    assert episode[0].state.pictures[0].data == picture.data


def test_a_newer_data_set_is_refused(tmp_path):
    save(Dataset("hunch/X-v0", {}, (WON,)), tmp_path / "data")
    file = tmp_path / "data" / "metadata.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 3'))
    with pytest.raises(UsageError, match="newer version"):
        load(tmp_path / "data")


def test_episodes_without_an_end_are_refused_in_every_form():
    endless = replace(WON, terminated=False)
    (episode,) = as_episodes(Dataset("hunch/FrozenLake-v0", {}, (WON,)))
    for data in (Dataset("hunch/FrozenLake-v0", {}, (WON, endless)), [episode, endless.episode()]):
        with pytest.raises(UsageError, match="Recorded episode 1 has no end"):
            as_episodes(data)
    with pytest.raises(UsageError, match="Recorded episode 0 has no end"):
        as_episodes(Dataset("hunch/FrozenLake-v0", {}, (replace(WON, actions=(), rewards=()),)))
