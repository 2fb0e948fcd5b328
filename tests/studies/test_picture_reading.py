"""Pictures in states, and models that read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hunch.core import HunchError, HunchWarning, State, UsageError
from hunch.envs import Pictured, Read, Schema, make
from hunch.envs.reading import schema_of
from hunch.lm import Cached
from hunch.lm.base import Model
from hunch.lm.prompts import shown
from hunch.rl import dataset
from hunch.runs.environments import identify
from hunch.runs.environments import shown as options_of
from hunch.runs.record import collect, parse_mix

pytest.importorskip("minigrid")
pytest.importorskip("PIL")
pytest.importorskip("hunch_studies")

from hunch_studies.worlds.babyai.facts import SCHEMA, facts, told

BED = "hunch/BabyAI-GoToRedBallNoDists-v0"
TRUE = {
    "agent's column": "2",
    "agent's row": "3",
    "agent's heading": "up",
    "ball's column": "2",
    "ball's row": "1",
}
TRUTH = "You see a wall 2 steps left\nYou see a red ball 2 steps forward"


class Teller(Model):
    """Answers what it is told to, one answer a question."""

    name, revision, messages = "teller", "1", True
    verbs = frozenset({"generate", "see"})

    def __init__(self, *answers: object) -> None:
        self.answers = [a if isinstance(a, str) else json.dumps(a) for a in answers]
        self.asked: list[Any] = []

    def generate(
        self, prompts: Sequence[Any], k: int = 1, sampling: Any = None, first: int = 0
    ) -> list[list[str]]:
        self.asked += prompts
        return [[self.answers[min(len(self.asked), len(self.answers)) - 1]] for _ in prompts]


def reading(*answers: object) -> tuple[Read, Teller]:
    teller = Teller(*answers)
    return Read(make(BED, history=0, picture=True), Cached(teller)), teller


def played(env: Any, seed: int = 0, steps: int = 6) -> list[State]:
    observation, info = env.reset(seed=seed)
    states = [State.read(observation, info)]
    for action in (["turn left", "go forward"] * steps)[:steps]:
        observation, _, over, cut, info = env.step(action)
        states.append(State.read(observation, info))
        if over or cut:
            break
    return states


def test_states_have_pictures_that_depend_on_the_seed_only() -> None:
    once, again = (played(make(BED, history=0, picture=True)) for _ in range(2))
    assert once == again
    assert [s.observation for s in once] == [s.observation for s in played(make(BED, history=0))]
    assert len({s.pictures for s in once}) > 3
    assert all(s.pictures[0].data.startswith(b"\x89PNG") for s in once)
    assert State.of(json.loads(json.dumps(once[0].plain()))) == once[0]
    dusk = played(make(BED, history=0, picture=True, skin="dusk"))
    assert not {s.pictures for s in dusk} & {s.pictures for s in once}


def test_an_environment_with_pictures_is_made_again_from_its_options() -> None:
    env = make(BED, history=0, picture=True)
    name, options, again = identify([env])
    assert again
    assert isinstance(make(name, **options), Pictured)
    assert options_of(env) == {"picture": True}


def test_recorded_data_hold_pictures(tmp_path: Path) -> None:
    recorded = collect(BED, {"picture": True}, parse_mix("random"), 40, seed=1)
    dataset.save(recorded, tmp_path)
    again = dataset.load(tmp_path)
    kept, now = (
        [t.next_state for episode in dataset.as_episodes(own) for t in episode] for own in (recorded, again)
    )
    assert kept == now
    assert all(state.pictures for state in now)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"picture": 3}, "picture must be true or false"),
        ({"reader": "uniform"}, "A reader must see pictures"),
        ({"reader": "no-model"}, "There is no model"),
        ({"skin": "night"}, "must be one of plain, dusk"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(BED, **options)


def test_environments_without_pictures_or_facts_are_refused() -> None:
    with pytest.raises(UsageError, match="draws no pictures"):
        make("hunch/Household-Pick-v0", picture=True)
    with pytest.raises(UsageError, match="does not say what its pictures show"):
        make("hunch/BabyAI-GoToObj-v0", reader="uniform")
    env = make(BED)
    env.unwrapped.schema = Schema({"ball": {"red": "The ball is red."}}, str)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="two values or more"):
        schema_of(env)


def test_pictures_of_a_wrong_kind_are_refused() -> None:
    env = Pictured(make(BED))  # draws texts
    with pytest.raises(UsageError, match="render_mode"):
        env.reset(seed=0)
    env.unwrapped.render_mode = "rgb_array"
    for wrong in (
        None,
        "a map",
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 3)),
        np.zeros((0, 4, 3), np.uint8),
    ):
        env.unwrapped.render = lambda wrong=wrong: wrong  # type: ignore[method-assign, misc]
        with pytest.raises(UsageError, match="uint8 of shape"):
            env.reset(seed=0)


@pytest.mark.parametrize("seed", range(4))
def test_true_facts_are_told_in_the_words_of_the_environment(seed: int) -> None:
    env = make(BED, history=0)
    observation, _ = env.reset(seed=seed)
    for action in ("turn left", "go forward", "turn left", "pick up", "go forward"):
        assert told(facts(env.unwrapped.level)) == observation  # type: ignore[attr-defined]
        observation, _, over, _, _ = env.step(action)
        if over:
            break


def test_the_agent_reads_what_the_model_says() -> None:
    env, teller = reading(f"It shows:\n```json\n{json.dumps(TRUE)}\n```")
    observation, info = env.reset(seed=0)
    assert (observation, info["facts"]) == (TRUTH, TRUE)
    assert shown(teller.asked[0])[0].startswith("data:image/png")
    assert all(f'"{name}"' in teller.asked[0][0].content for name in SCHEMA.fields)
    env.reset(seed=0)
    assert len(teller.asked) == 1, "a picture that is asked twice is read once"


def test_a_wrong_answer_is_repaired_once_then_the_last_reading_stays() -> None:
    env, teller = reading("A room.", TRUE, "A room.", "[]", {**TRUE, "agent's row": "9"}, {"a": "b"})
    assert env.reset(seed=0)[0] == TRUTH
    assert [m.role for m in teller.asked[1]] == ["user", "assistant", "user"]
    assert env.step("turn left")[0] == TRUTH
    assert env.step("turn left")[0] == TRUTH
    assert len(teller.asked) == 6
    assert '"agent\'s row" has to be one of' in teller.asked[5][-1].content
    assert env.reader.lm.usage.fallbacks == 2


def test_what_the_model_is_not_sure_of_stays() -> None:
    env, _ = reading(TRUE, {**TRUE, "agent's row": "unsure", "agent's column": "5"})
    env.reset(seed=0)
    _, _, _, _, info = env.step("turn left")
    assert info["facts"] == {**TRUE, "agent's column": "5"}
    assert env.reader.lm.usage.fallbacks == 1


def test_a_model_that_never_answers_in_json_stops_the_run() -> None:
    env, _ = reading("I cannot see anything.")
    for seed in range(19):
        env.reset(seed=seed)
    with pytest.warns(HunchWarning, match="could not be used"):
        env.reset(seed=19)
    for seed in range(20, 49):
        env.reset(seed=seed)
    with pytest.raises(HunchError, match="JSON object"):
        env.reset(seed=49)
