"""The band of best of n, and the programs that improved on all before them."""

from types import SimpleNamespace

import numpy as np
import pytest

from hunch.report.kept import FEWEST_DRAWS, best_of_n, chance, improvements
from hunch.roles.writer.programs import Attempt


def test_best_of_n_is_the_distribution_of_the_maximum():
    """Against a simulation: the quantiles of the largest of m draws."""
    rng = np.random.default_rng(0)
    draws = [*map(float, rng.normal(size=40).round(3)), None, None, None]
    band = best_of_n(draws, 12)
    one = np.array([-np.inf if each is None else each for each in draws])
    for m in (1, 3, 12):
        best = rng.choice(one, size=(200_000, m)).max(axis=1)
        for name, q in (("low", 0.025), ("middle", 0.5), ("high", 0.975)):
            value = np.nan_to_num(band[name][m - 1], nan=-np.inf)
            assert np.mean(best <= value) >= q - 0.005, "the value is reached with probability q"
            assert np.mean(best < value) <= q + 0.005, "and no smaller one is"


def test_best_of_one_may_fail_and_best_of_many_hardly_does():
    band = best_of_n([1.0, *[None] * 9], 40)
    assert np.isnan(band["middle"][0])
    assert band["middle"][-1] == 1.0
    assert np.isnan(band["low"][:30]).all()


@pytest.mark.parametrize("draws", [[], [1.0] * (FEWEST_DRAWS - 1), [None] * 20])
def test_too_few_programs_have_no_band(draws):
    assert best_of_n(draws, 5) is None


def test_improvements_are_better_than_all_before_them():
    fitness = [None, 1.0, 1.0, 0.5, 2.0, None, 1.5, 3.0]
    programs = [{"number": i, "fitness": each} for i, each in enumerate(fitness)]
    assert [line["number"] for line in improvements(programs)] == [1, 4, 7]


@pytest.mark.parametrize("feedback", ["own", "fresh"])
def test_the_program_of_the_problem_is_no_draw(feedback):
    start = Attempt(0, "start", 5.0, group=-1)
    written = [Attempt(n, str(n), 1.0) for n in range(1, 2 * FEWEST_DRAWS + 1)]
    revised = Attempt(len(written) + 1, "revised", 9.0, parents=(1,))
    records = [attempt.line() for attempt in (start, *written, revised)]
    options = SimpleNamespace(feedback=feedback)
    run = SimpleNamespace(records=records, config=SimpleNamespace(options=options, lm="gguf:a"))
    band = chance(run, [run])
    assert band["draws"] == len(written)
    assert set(band["high"]) == {1}


def test_programs_of_another_model_are_no_draws():
    def run(lm, feedback, fitness):
        records = [Attempt(n, str(n), fitness).line() for n in range(2 * FEWEST_DRAWS)]
        return SimpleNamespace(
            records=records, config=SimpleNamespace(options=SimpleNamespace(feedback=feedback), lm=lm)
        )

    searching, fresh, fresh_of_another = (
        run("gguf:a", "own", 1.0),
        run("gguf:a", "fresh", 2.0),
        run("gguf:b", "fresh", 3.0),
    )
    band = chance(searching, [searching, fresh, fresh_of_another])
    assert band["draws"] == 2 * FEWEST_DRAWS
    assert set(band["high"]) == {2}
    assert not band["own"]
    band = chance(searching, [searching, fresh_of_another])
    assert set(band["high"]) == {1}
    assert band["own"]
