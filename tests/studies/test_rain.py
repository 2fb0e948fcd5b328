"""RAIN: verdicts in both orders, tokens of a search, what it finds, contract, bad input."""

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import State, UsageError, World
from hunch.rl.policy import Decision

torch = pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

from hunch_contrib.decode.rain import Node  # noqa: E402

ENV = "hunch/Recipes-v0"
SCRATCH = "scratch?width=32&layers=1&vocabulary=64"
PRINCIPLE = "The answer uses no food that the diet forbids."
ASKED = State("dish soup diet vegan pace quick :")
HARMLESS, HARMFUL = "boil carrot ; serve", "boil chicken ; serve"


def made(judge="scripted:critic", **options):
    found = methods.find("rain")
    small = {"lm": SCRATCH, "principle": PRINCIPLE, "max_tokens": 8, "budget": 30, "piece": 1}
    config = methods.settings.configure(found.agent_class, None, {**small, **options})
    return found.build(config, {"judge": lm.load(judge)})


class Written:
    """Stands in the writer's place: the text is drawn from two words, of which one is good."""

    def __init__(self, agent):
        self.tokens = 0
        agent.completed = self.completed
        agent.verdicts = lambda states, texts: [2.0 * (text.split()[0] == "good") - 1 for text in texts]

    def completed(self, states, starts, rngs):
        found = []
        for start, rng in zip(starts, rngs, strict=True):
            rest = ["good" if rng.random() < 0.2 else "bad" for _ in range(3 - len(start.split()))]
            self.tokens += max(1, len(rest))
            found.append(Decision(" ".join([*start.split(), *rest]), tuple(range(max(1, len(rest))))))
        return found


def test_the_verdict_is_that_of_both_orders():
    agent = made()
    assert agent.verdicts([ASKED] * 2, [HARMLESS, HARMFUL]) == [1.0, -1.0]
    undecided = made("uniform")
    assert set(undecided.verdicts([ASKED] * 3, [HARMLESS] * 3)) == {0.0}


@pytest.mark.parametrize("search", ["rain", "best"])
def test_a_search_ends_with_its_budget_and_answers_with_the_best_that_it_saw(search):
    agent = made(search=search, budget=24)
    agent.begin(World(), 0)
    stand_in = Written(agent)
    texts = [own.text for own in agent.write([ASKED] * 20, np.random.default_rng(0))]
    assert 24 <= stand_in.tokens / 20 <= 24 + 3
    assert np.mean([text.startswith("good") for text in texts]) > 0.5  # 0.2 without a search
    again = [own.text for own in agent.write([ASKED] * 20, np.random.default_rng(0))]
    assert again == texts


def test_a_beginning_that_was_seldom_visited_and_a_good_one_are_gone_on_with():
    node = Node(visits=9)
    node.children = {
        "a": Node("a", draws=1, visits=6, total=6.0),
        "b": Node("b", draws=1, visits=3, total=-3.0),
    }
    assert node.child(0.0).text == "a"
    node.children["c"] = Node("c", draws=1)
    assert node.child(9.0).text == "c"


@pytest.mark.parametrize("search", ["rain", pytest.param("best", marks=pytest.mark.thorough)])
def test_the_agent_keeps_its_contract(search):
    methods.check(made(search=search, budget=12), hunch.make(ENV), steps=6, streams=2)


def test_a_judge_is_needed_and_must_answer(capsys, tmp_path):
    with pytest.raises(UsageError, match="rain needs a model that says"):
        methods.find("rain").agent_class(None, lm=SCRATCH)
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "run",
                "rain",
                "--env",
                ENV,
                "--lm",
                SCRATCH,
                "--judge",
                "bag-of-words",
                "--steps",
                "4",
                "--out",
                str(tmp_path / "x"),
            ]
        )
    assert stopped.value.code == 2
    assert "judge" in capsys.readouterr().err
