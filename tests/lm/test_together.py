"""Runs that ask a model together: one call for all, the answers of each alone, meters and budgets apart."""

import pytest

from hunch.core import HunchError
from hunch.lm import Budget, BudgetError, load, registry, usage
from hunch.lm.base import Model, Sampling
from hunch.lm.budget import within
from hunch.lm.registry import Backend
from hunch.lm.together import together

LINE = Sampling(8, 1.0, 1.0, ("\n",))
PROMPTS = [[f"Run {i}, step {t}. You can: go {t}, stay {i}." for t in range(2 + i)] for i in range(4)]


def ask(prompts):
    lm = load("uniform", cache=None)
    return [lm.generate([prompt], 2, LINE)[0] for prompt in prompts], lm.usage.calls


def test_each_run_gets_what_it_would_get_alone():
    alone = [ask(prompts) for prompts in PROMPTS]
    found: dict[int, object] = {}

    def run(i):
        found[i] = ask(PROMPTS[i])

    together([lambda i=i: run(i) for i in range(4)])
    assert [found[i] for i in range(4)] == alone


class Counting(Model):
    """Writes a prompt's length, and remembers how it was asked."""

    name, revision, verbs = "counting", "1", frozenset({"generate", "embed"})
    batches: list[list[str]]

    def __init__(self):
        self.batches = []

    def generate(self, prompts, k=1, sampling=LINE, first=0):
        self.batches.append(list(prompts))
        if any("fail" in prompt for prompt in prompts):
            raise HunchError("The model failed.")
        self.tokens_read += 10 * len(prompts)
        return [[str(len(prompt))] * k for prompt in prompts]


@pytest.fixture
def counting(monkeypatch):
    model = Counting()
    backend = Backend("counting", "none:load", model.verbs, "", costly=False)
    monkeypatch.setattr(registry, "build", lambda spec, options: (backend, model))
    return model


def test_all_wait_and_the_model_is_asked_once(counting):
    """Run i asks i + 1 times: nobody waits for those that have ended."""

    def run(i):
        lm = load("counting", cache=None)
        for t in range(i + 1):
            lm.generate([f"{i} {t}"], 1, LINE)

    together([lambda i=i: run(i) for i in range(3)])
    assert counting.batches == [["0 0", "1 0", "2 0"], ["1 1", "2 1"], ["2 2"]]


def test_meters_are_apart_and_the_process_counts_none_of_it(counting):
    before, meters = usage.total().snapshot(), {}

    def run(i):
        lm = load("counting", cache=None)
        lm.generate([f"{i} {t}" for t in range(i + 1)], 1, LINE)
        meters[i] = (usage.total().calls, usage.total().prompt_tokens, lm.usage.prompt_tokens)

    together([lambda i=i: run(i) for i in range(3)])
    assert meters == {0: (1, 10, 10), 1: (2, 20, 20), 2: (3, 30, 30)}
    assert usage.total().snapshot() == before


def test_budgets_are_apart(counting):
    stopped = {}

    def run(i):
        lm = load("counting", cache=None)
        try:
            with within(Budget(calls=2) if i == 0 else None, usage.total().as_dict):
                for t in range(4):
                    lm.generate([f"{i} {t}"], 1, LINE)
        except BudgetError as reached:
            stopped[i] = str(reached)

    together([lambda i=i: run(i) for i in range(2)])
    assert list(stopped) == [0]
    assert [len(batch) for batch in counting.batches] == [2, 2, 1, 1]


def test_a_failure_reaches_every_run_that_asked_with_it(counting):
    failed = []

    def run(i):
        lm = load("counting", cache=None)
        try:
            lm.generate(["fail" if i == 1 else "go"], 1, LINE)
        except HunchError:
            failed.append(i)
        lm.generate([f"again {i}"], 1, LINE)

    together([lambda i=i: run(i) for i in range(3)])
    assert sorted(failed) == [0, 1, 2]
    assert counting.batches[-1] == ["again 0", "again 1", "again 2"]


def test_nothing_is_left_behind(counting):
    together([lambda: None])
    assert not registry.builds
    assert not hasattr(load("counting", cache=None).model, "table")
