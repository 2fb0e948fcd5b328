"""A prompt for each snippet of a film review."""

import numpy as np
import pytest

from hunch.rl import dataset
from hunch.runs.execute import RunConfig
from hunch_studies.film_choices import (
    CHANCE,
    ENV,
    NO_EDITS,
    ORACLE,
    STUDIES,
    by_snippet,
    choices_of,
    results_of,
    table,
)
from hunch_studies.film_prompts import BY_HAND
from hunch_studies.prompting import ANY, FIXED, editors
from hunch_studies.study import Scale, conduct
from hunch_studies.worlds.prompting import Prompting

SMALL = Scale(seeds=2, share=0.05, lms=("pocket",), parts=("Choices",))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    pytest.importorskip("hunch_pocket")
    out = tmp_path_factory.mktemp("films")
    page = conduct(
        STUDIES["film-choices"], out, SMALL, workers=1, watch=lambda part, todo: lambda lines: None
    )
    return out, page.read_text()


def test_the_page_has_every_arm_and_what_there_is_to_choose(study):
    _, page = study
    lines = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    assert {FIXED, ANY, ORACLE, CHANCE, "Prompt-OIRL, bag of words"} <= set(lines)
    mean = {label: float(lines[label].split(" | ")[2].split()[0]) for label in (FIXED, ANY, ORACLE)}
    results = results_of("pocket")
    assert mean[ORACLE] == pytest.approx(results.max(1).mean(), abs=1e-3)
    assert mean[ORACLE] >= max(mean[FIXED], mean[ANY])


def test_the_best_of_the_records_is_one_prompt_for_all_and_seeds_have_their_own_records(study):
    out, _ = study
    [folder] = (path for path in out.iterdir() if path.name.startswith("choices"))
    places = {run.name: choices_of(run) for run in folder.glob("best-fixed-prompt/seed-*")}
    assert len(places) == 2
    assert all(len(chosen) == 300 and len(set(chosen)) == 1 for chosen in places.values())
    for seed in range(2):
        [file] = (out / "data").rglob(f"results-{seed}")
        steps = [step for episode in dataset.as_episodes(dataset.load(file)) for step in episode]
        rewards = {p: [step.reward for step in steps if step.action == p] for p in BY_HAND}
        best = max(BY_HAND, key=lambda p: np.mean(rewards[p]) if rewards[p] else -1)
        assert BY_HAND[places[f"seed-{seed}"][0]] == best
    random = choices_of(folder / "random-prompt" / "seed-0")
    assert set(random) == set(range(len(BY_HAND)))
    records = sorted((out / "data").rglob("results-*"))
    assert len(records) == 2
    first, second = (
        [path.read_bytes() for path in sorted(of_seed.rglob("*")) if path.is_file()] for of_seed in records
    )
    assert first != second


def test_results_are_those_of_the_environment():
    pytest.importorskip("hunch_pocket")
    env = Prompting(**by_snippet("pocket", "choose") | {"split": "held out"})
    assert env.prompts_given == BY_HAND
    env.asked = env.questions[:30]
    results = results_of("pocket")
    assert results.shape == (300, len(BY_HAND))
    np.testing.assert_array_equal(results[:30, 3], env.scores(BY_HAND[3])[1])


def test_leads_are_over_what_reads_no_snippet():
    rows = [
        {"key": [arm, seed], "accuracy": score}
        for arm, scores in {"TEMPERA": (0.6, 0.8), NO_EDITS: (0.5, 0.6)}.items()
        for seed, score in enumerate(scores)
    ]
    [line] = [line for line in table(rows).splitlines() if line.startswith("| TEMPERA")]
    assert "0.700 [0.600, 0.800]" in line
    assert "0.15 [-0.49, 0.79]" in line


def test_editors_differ_in_who_edits_alone():
    run = RunConfig(method="tempera", env=ENV, env_options=by_snippet("pocket", "edit"))
    listed = editors(run, 100)
    assert [arm.config.options.edits for arm in listed] == ["policy", "random", "none"]
    assert len({str(arm.config.env_options) for arm in listed}) == 1
