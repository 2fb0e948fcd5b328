"""RL-VLM-F: rewards fitted to a judge's verdicts on pictures, and a learner whose past gets new rewards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.begun import begun
from tests.lm.test_lies import Liar
from tests.started import answering

import hunch
from hunch import lm
from hunch.cli.main import main
from hunch.core import HunchWarning, Picture, State, Transition, UsageError, World
from hunch.methods.q_learning import QLearning
from hunch.roles.reward.picture_judge import PictureAsking, PictureJudge
from hunch_contrib.reward.rl_vlm_f import RLVLMF, PicturePreference, PicturesConfig

pytest.importorskip("minigrid")
pytest.importorskip("hunch_pocket")

BED = "hunch/BabyAI-GoToRedBallNoDists-v0"
SHOWN = {"picture": True, "history": 0, "tile": 8}
TASK = "go to the red ball"
NEAR = "The agent is 1 step from the red ball."


@pytest.fixture(scope="module")
def steps() -> list[Transition]:
    """Forty episodes of seven random steps."""
    env, rng, found = hunch.make(BED, **SHOWN), np.random.default_rng(0), []
    for seed in range(40):
        states = [State.read(*env.reset(seed=seed))]
        for _ in range(7):
            action = states[-1].options[rng.integers(3)]  # turns, and a step forward
            observation, reward, over, _, info = env.step(action)
            states.append(State.read(observation, info))
            found.append(Transition(states[-2], action, float(reward), states[-1], over, False))
            if over:
                break
        found[-1] = replace(found[-1], truncated=not found[-1].terminated)
    return found


def judge(spec: str, **options: Any) -> PicturePreference:
    config = PicturesConfig(**({"every": 100, "pairs": 300} | options))
    return begun(PicturePreference(lm.load(spec, cache=None), config), World(task=TASK))


def distances(steps: list[Transition]) -> np.ndarray:
    from hunch_studies.laboratory.tiles import Distance

    return np.array(Distance().rewards(steps))


def test_rewards_have_the_order_of_a_right_judge(steps: list[Transition]) -> None:
    from hunch_studies.vision import spearman

    few = list({t.next_state.pictures[0].digest: t for t in steps}.values())[:24]
    source = judge("scripted:onlooker", every=len(few), pairs=50)
    assert source.rewards(few) == [0.0] * len(few)
    told = source.learn()
    assert told["pair_abstained"] < 0.3
    for _ in range(2):
        source.rewards(few)
        source.learn()
    assert [own["pairs"] for own in source.records()] == [50] * 3
    rewards = np.array(source.rewards(few))
    assert rewards.max() == 0
    assert np.std(rewards) == pytest.approx(1)
    assert spearman(rewards, distances(few)) > 0.6


def test_missed_rounds_are_not_made_up_for(steps: list[Transition]) -> None:
    """As with recorded data, whose steps come at once: one round followed the other in successive steps."""
    source = judge("scripted:onlooker", every=20, pairs=10)
    assert len(steps) > 100
    source.rewards(steps)
    assert source.learn()
    assert source.learn() == {}
    source.rewards(steps[: 20 - len(steps) % 20])  # up to the next multiple
    assert source.learn()
    assert source.learn() == {}
    assert len(source.records()) == 2


def test_of_equal_rewards_neither_picture_is_preferred(steps: list[Transition]) -> None:
    source = judge("scripted:onlooker")
    source.rewards(steps)
    source.learn()
    one, other = list(source.pictures)[:2]
    source.values[one] = source.values[other] = source.scale[0] - 1.0
    for verdict in (1, 2):
        labels = [(one, other, verdict)]
        assert source._figures(1, labels, labels)["accuracy"] == 0.5
    source.values[one] += 0.5
    assert [source._figures(1, [(one, other, v)], [(one, other, v)])["accuracy"] for v in (1, 2)] == [
        1.0,
        0.0,
    ]


def test_rewards_after_a_resume_are_the_same_to_the_last_bit(steps: list[Transition]) -> None:
    by_picture = list({t.next_state.pictures[0].digest: t for t in steps}.values())
    few, later = by_picture[:24], by_picture[24:60]
    source = judge("scripted:onlooker", every=len(few), pairs=50)
    source.rewards(few)
    source.learn()
    paid = [source.rewards([t])[0] for t in later]  # one picture at a time, as one environment shows them
    resumed = judge("scripted:onlooker", every=len(few), pairs=50)
    resumed.load_state_dict(source.state_dict())
    assert resumed.rewards(later) == paid


def test_the_accuracy_of_pictures_better_than_the_best_is_that_of_the_networks(
    steps: list[Transition],
) -> None:
    """Their rewards are all 0, so none would be better than another."""
    few = list({t.next_state.pictures[0].digest: t for t in steps}.values())[:12]
    source = judge("scripted:onlooker", every=len(few), pairs=20)
    source.rewards(few)
    source.learn()
    source.scale = (min(source.values.values()), 1.0)  # as if all pictures were new, and better
    assert set(source.rewards(few)) == {0.0}
    best_first = sorted(source.values, key=lambda digest: -source.values[digest])
    labels = [(better, worse, 1) for better, worse in pairwise(best_first)]
    assert source._figures(len(labels), labels, labels)["accuracy"] == 1.0


def test_a_verdict_without_a_description_is_the_same(steps: list[Transition]) -> None:
    data = [t.next_state.pictures[0].data for t in steps[:20]]
    model = lm.load("scripted:onlooker", cache=None)
    both = [PictureJudge(model, PictureAsking(describe=own)) for own in (True, False)]
    told, short = (own.verdicts(TASK, list(pairwise(data))) for own in both)
    assert told == short
    assert {1, 2} < set(told)


def test_a_judge_that_always_abstains_is_said_and_fits_nothing(steps: list[Transition]) -> None:
    source = judge("scripted:onlooker?abstain=1.0")
    source.rewards(steps)
    with pytest.warns(HunchWarning, match="preferred neither picture in any of"):
        source.learn()
    assert source.fits == 0
    assert set(source.rewards(steps)) == {0.0}
    assert source.records()[0]["abstained"] == 1.0


def test_errors_are_about_as_frequent_as_said(steps: list[Transition]) -> None:
    shown = list({t.next_state.pictures[0].digest: t for t in steps}.values())
    true = distances(shown)
    pairs = [(i, j) for i, j in pairwise(range(len(shown))) if true[i] != true[j]]
    seen = [tuple(shown[i].next_state.pictures[0].data for i in pair) for pair in pairs]
    asked = PictureJudge(lm.load("scripted:onlooker?error=0.3", cache=None), PictureAsking())
    told = asked.verdicts(TASK, seen)
    wrong = [(v == 1) != (true[i] > true[j]) for v, (i, j) in zip(told, pairs, strict=True)]
    assert len(wrong) > 100
    assert 0.15 < np.mean(wrong) < 0.45


def test_a_model_that_embeds_prefers_what_is_more_like_the_goal(steps: list[Transition]) -> None:
    from hunch_contrib.reward.vlm_rm import Likeness

    eyes = lm.load("pocket?corpus=clip", cache=None)
    shown = list({t.next_state.pictures[0].digest: t for t in steps}.values())[:12]
    near = Likeness(eyes, NEAR).rewards(shown)
    data = [t.next_state.pictures[0].data for t in shown]
    told = PictureJudge(eyes, PictureAsking()).verdicts(NEAR, list(pairwise(data)))
    assert told == [1 if one > other else 2 for one, other in pairwise(near)]


def test_the_learner_is_one_that_had_the_last_rewards_from_the_start() -> None:
    model = lm.load("scripted:onlooker", cache=None)
    agent = RLVLMF(model, pictures=PicturesConfig(every=100, pairs=10, zero="mean"))
    hunch.train(agent, BED, steps=250, streams=hunch.Streams(options=SHOWN))
    assert agent.source.fits == 2
    rewards = agent.source.given([digest for _, digest in agent.past])
    again = begun(QLearning())
    again.relearn([replace(t, reward=r) for (t, _), r in zip(agent.past, rewards, strict=True)])
    own = dict(agent.agent.table.entries.items())
    assert len(agent.past) == 250
    assert own == pytest.approx(again.table.entries)


def test_a_reward_as_released_is_the_mean_of_the_networks() -> None:
    model = lm.load("scripted:onlooker", cache=None)
    rewards = {}
    for scaled in (True, False):
        agent = RLVLMF(model, pictures=PicturesConfig(every=100, pairs=10, zero="mean", scaled=scaled))
        hunch.train(agent, BED, steps=110, streams=hunch.Streams(options=SHOWN))
        source = agent.source
        digests = list(source.pictures)[:20]
        rewards[scaled] = np.array(source.given(digests))
        assert source.fitted is not None
        values = source.fitted(source._pixels(digests))
    assert rewards[False] == pytest.approx(values)
    zero, deviation = source.scale
    assert rewards[True] == pytest.approx((rewards[False] - zero) / deviation, abs=1e-5)


class Onlooking(Liar):
    """Describes, and then says that the second picture is better."""

    def __init__(self) -> None:
        super().__init__()
        self.lie = self.said

    def said(self, reply: dict[str, Any]) -> dict[str, Any]:
        content = self.asked[-1]["messages"][-1]["content"]
        text = "I see two rooms." if isinstance(content, list) else "**2**, I would say."
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return reply | {"choices": [choice], "usage": usage}


@pytest.fixture
def server() -> Iterator[Onlooking]:
    with answering(Onlooking()) as own:
        yield own


def test_a_server_sees_both_pictures_and_then_its_own_words(
    server: Onlooking, steps: list[Transition]
) -> None:
    model = lm.load("openai:m?see=true", cache=None, base_url=server.url)
    one, other = (t.next_state.pictures[0].data for t in (steps[0], steps[-1]))
    assert PictureJudge(model, PictureAsking()).verdicts(TASK, [(one, other)]) == [2]
    first, second = (body["messages"][-1]["content"] for body in server.asked[-2:])
    kinds = [part["type"] for part in first]
    assert kinds.count("image_url") == 2
    assert TASK in str(first)
    assert "I see two rooms." in second
    assert TASK in second


def test_a_run_with_a_server(server: Onlooking, tmp_path: Path) -> None:
    model = lm.load("openai:m?see=true", cache=None, base_url=server.url)
    options = {"pictures": PicturesConfig(every=20, pairs=4, most=6)}
    agent = RLVLMF(model, **options)
    result = hunch.train(agent, BED, steps=60, streams=hunch.Streams(options=SHOWN), out=tmp_path / "run")
    asked = sum(own["asked"] for own in agent.records())
    assert [own["pairs"] for own in agent.records()] == [4, 2]
    assert {own["first"] for own in agent.records()} == {0.0}
    assert result.models["judge"]["calls"] >= asked


def test_bad_input_is_refused(steps: list[Transition], capsys: pytest.CaptureFixture[str]) -> None:
    source = judge("scripted:onlooker")
    blind = replace(steps[0], next_state=replace(steps[0].next_state, pictures=()))
    with pytest.raises(UsageError, match=r"add --env.picture"):
        source.rewards([blind])
    other = replace(steps[0], state=replace(steps[0].state, task="go to the blue box"))
    with pytest.raises(UsageError, match="knows one goal"):
        source.rewards([steps[1], other])
    with pytest.raises(UsageError, match="see"):
        PicturePreference(lm.load("scripted:captions", cache=None))
    bad = replace(steps[0], next_state=replace(steps[0].next_state, pictures=(Picture.read(b"no png"),)))
    source.rewards([bad, steps[1]])
    source.due = 0
    with pytest.raises(UsageError, match="picture"):
        source.learn()
    with pytest.raises(SystemExit):
        main(["run", "rl-vlm-f", "--env", BED, "--lm", "scripted:onlooker", "--steps", "10"])
    assert "--env.picture" in capsys.readouterr().err
