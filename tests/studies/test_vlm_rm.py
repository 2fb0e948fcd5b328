"""The likeness of a picture to a sentence as the reward, with our small model with eyes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.cli.main import main
from hunch.core import State, Transition, UsageError
from hunch.lm import Message, picture
from hunch_contrib.reward.vlm_rm import VLMRM, Likeness

pytest.importorskip("minigrid")
pytest.importorskip("hunch_pocket")

BED = "hunch/BabyAI-GoToRedBallNoDists-v0"
GOAL, BASE = "The agent is 1 step from the red ball.", "The agent is 8 steps from the red ball."
EYES = "pocket?corpus=clip"


@pytest.fixture(scope="module")
def eyes() -> Any:
    return lm.load(EYES, cache=None)


@pytest.fixture(scope="module")
def steps() -> list[Transition]:
    env, found = hunch.make(BED, picture=True), []
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        before = State.read(observation, info)
        for action in ("go forward", "turn left", "go forward"):
            observation, reward, over, cut, info = env.step(action)
            after = State.read(observation, info)
            found.append(Transition(before, action, reward, after, over, cut))
            before = after
            if over:
                break
    return found


def vectors(eyes: Any, steps: list[Transition]) -> np.ndarray:
    seen = [(Message("user", "", (picture(t.next_state.pictures[0].data),)),) for t in steps]
    return eyes.embed(seen).astype(float)


def test_without_a_baseline_it_is_the_cosine(eyes: Any, steps: list[Transition]) -> None:
    x, g = vectors(eyes, steps), eyes.embed([GOAL])[0]
    for likeness in (Likeness(eyes, GOAL), Likeness(eyes, GOAL, BASE, 0.0)):
        assert np.allclose(likeness.rewards(steps), x @ g, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_the_baseline_leaves_out_what_is_shared(eyes: Any, steps: list[Transition], alpha: float) -> None:
    x, (g, b) = vectors(eyes, steps), eyes.embed([GOAL, BASE]).astype(float)
    d = g - b
    within = alpha * np.outer(d, d) / (d @ d) + (1 - alpha) * np.eye(len(d))
    wanted = 1 - np.linalg.norm((x - g) @ within, axis=1) ** 2 / 2
    assert np.allclose(Likeness(eyes, GOAL, BASE, alpha).rewards(steps), wanted, atol=1e-5)


def test_without_the_constant_no_step_pays_and_the_order_stays(eyes: Any, steps: list[Transition]) -> None:
    usual = np.array(Likeness(eyes, GOAL, BASE).rewards(steps))
    agent = VLMRM(eyes, goal=GOAL, baseline=BASE, constant=0.0)
    assert agent.source.settings["constant"] == 0.0
    found = np.array(agent.source.rewards(steps))
    assert (found <= 0).all()
    assert np.allclose(found, usual - 1)


def test_states_with_one_text_and_other_pictures_are_told_apart(eyes: Any, steps: list[Transition]) -> None:
    one, other = steps[0], steps[-1]
    alike = replace(other, next_state=replace(other.next_state, observation=one.next_state.observation))
    first, second = Likeness(eyes, GOAL).rewards([one, alike])
    assert first != second


def test_bad_input_is_refused(eyes: Any, steps: list[Transition]) -> None:
    blind = replace(steps[0], next_state=replace(steps[0].next_state, pictures=()))
    with pytest.raises(UsageError, match=r"add --env.picture"):
        Likeness(eyes, GOAL).rewards([blind])
    with pytest.raises(UsageError, match="does not know the word 'tiger'"):
        Likeness(eyes, "The agent is a tiger.").rewards(steps[:1])
    with pytest.raises(UsageError, match="have equal embeddings"):
        Likeness(eyes, GOAL, GOAL).rewards(steps[:1])
    silent = replace(steps[0], state=replace(steps[0].state, task=""))
    with pytest.raises(UsageError, match="name one with --goal"):
        Likeness(eyes).rewards([silent])
    with pytest.raises(UsageError, match="the verb 'see'"):
        VLMRM(lm.load("bag-of-words"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--env", BED), "vlm-rm reads pictures (--env.picture)"),
        (("--env", "hunch/Craft-v0", "--env.picture"), "draws no pictures"),
        (
            ("--env", BED, "--env.picture", "--goal", "a ball", "--baseline", "a ball"),
            "The goal is the baseline",
        ),
    ],
)
def test_the_command_refuses(arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "vlm-rm", "--lm", EYES, *arguments, "--steps", "9", "--out", str(tmp_path / "a")])
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_run_counts_the_model_and_is_its_level(tmp_path: Path) -> None:
    agent = VLMRM(lm.load(EYES, cache=None), goal=GOAL, baseline=BASE)
    result = hunch.train(agent, hunch.make(BED, picture=True), 60)
    assert result.evidence == "L1"
    assert 0 < result.usage["calls"] <= 62, "each picture once, and two sentences"
