"""RAIN: verdicts in both orders, tokens of a search, what it finds, contract, bad input."""

import numpy as np
import pytest
from tests.lm.decider import deciding

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import State, UsageError, World
from hunch.lm import trainable
from hunch.lm.prompts import Message
from hunch.lm.speech import text_of
from hunch.rl.policy import Decision

torch = pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

from hunch_contrib.decode.rain import Node, cut, going_on  # noqa: E402

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
    """Stands in the writer's place: texts of three clauses, each good with some probability, else bad."""

    def __init__(self, agent, verdict=None, chance=0.2):
        self.tokens = 0
        self.chance = chance
        self.judged = []
        self.agent = agent
        self.verdict = verdict or (lambda text: 2.0 * text.startswith("good") - 1)
        agent.continued = self.continued
        agent.verdicts = self.verdicts

    def continued(self, states, starts, rngs, whole):
        found = []
        for start, rng in zip(starts, rngs, strict=True):
            clauses = [
                "good ;" if rng.random() < self.chance else "bad ;" for _ in range(3 - start.count(";"))
            ]
            self.tokens += 2 * len(clauses)
            text = " ".join([start, *clauses]).strip()
            found.append(Decision(text, (0,) * (2 * len(clauses)), (0.0,) * (2 * len(clauses)), True))
        return found

    def verdicts(self, states, texts):
        self.judged += texts
        return [self.verdict(text) for text in texts]


def test_the_verdict_is_that_of_both_orders():
    agent = made()
    assert agent.verdicts([ASKED] * 2, [HARMLESS, HARMFUL]) == [1.0, -1.0]
    undecided = made("uniform")
    assert set(undecided.verdicts([ASKED] * 3, [HARMLESS] * 3)) == {0.0}


def test_a_decision_model_judges_by_its_probability_in_both_orders():
    def rule(state, _, options):
        assert PRINCIPLE in state
        keeps = "chicken" not in state
        return {option: 0.9 if (option == "Yes") == keeps else 0.1 for option in options}

    with deciding(rule) as (url, requests):
        agent = made(f"systemone:m?base_url={url}&evidence=L3")
        assert agent.verdicts([ASKED] * 2, [HARMLESS, HARMFUL]) == [1.0, -1.0]
    assert len(requests) == 2  # both orders of a text are questions of one request


@pytest.mark.parametrize("search", ["rain", "best"])
def test_a_search_finds_what_the_judge_likes_with_about_its_budget(search):
    agent = made(search=search, budget=40, piece=2)
    agent.begin(World(), 0)
    stand_in = Written(agent)
    texts = [own.text for own in agent.write([ASKED] * 20, np.random.default_rng(0))]
    assert stand_in.tokens / 20 <= 40 + 12, "the last request, and the rest of the answer"
    assert all(text.count(";") == 3 for text in texts), "answers are whole"
    assert np.mean([text.startswith("good") for text in texts]) > 0.5  # 0.2 without a search
    again = [own.text for own in agent.write([ASKED] * 20, np.random.default_rng(0))]
    assert again == texts


def test_verdicts_are_on_texts_up_to_a_punctuation_mark():
    """A piece is one of three clauses: the judge sees those on the way, the new one, and no more."""
    agent = made(budget=120, piece=2)
    agent.begin(World(), 0)
    stand_in = Written(agent)
    agent.write([ASKED] * 5, np.random.default_rng(0))
    assert {text.count(";") for text in stand_in.judged} == {1, 2, 3}
    assert all(text.endswith(";") for text in stand_in.judged)
    assert cut(" boil carrot ; add salt ; serve", 1) == (" boil", " boil carrot ;")
    assert cut(" boil carrot ; add salt ; serve", 3) == (" boil carrot ;", " boil carrot ;")
    assert cut(" boil carrot ; add salt ; serve", 4) == (" boil carrot ; add", " boil carrot ; add salt ;")
    assert cut(" serve", 4) == (" serve", " serve")
    assert cut("", 4) == ("", "")


def test_the_answer_is_the_most_visited_path_and_not_the_best_text_that_was_seen():
    """One lucky verdict decides nothing: the rare clause is liked once, the others by turns."""
    agent = made(budget=80, piece=2, explore=2.0, visits=1_000)
    agent.begin(World(), 0)
    lucky = iter([1.0])
    verdict = lambda text: next(lucky, -1.0) if text.startswith("good") else 0.0  # noqa: E731
    stand_in = Written(agent, verdict, chance=0.5)
    [answer] = agent.write([ASKED], np.random.default_rng(3))
    assert any(text.startswith("good") for text in stand_in.judged)
    assert next(lucky, None) is None, "the best verdict was of a text that begins with good"
    assert answer.text.startswith("bad")


def test_a_beginning_that_was_seldom_visited_and_a_good_one_are_gone_on_with():
    node = Node(visits=9)
    node.children = {
        "a": Node("a", draws=1, visits=6, total=6.0),
        "b": Node("b", draws=1, visits=3, total=-3.0),
    }
    assert node.child(0.0).text == "a"
    node.children["c"] = Node("c", draws=1)
    assert node.child(9.0).text == "c"


def test_q_counts_on_a_scale_from_0_to_1_as_released():
    """A lead of 0.5 counts as 0.25, whatever the verdicts of the tree so far."""
    node = Node(visits=16)
    node.children = {
        "better": Node("better", draws=1, visits=10, total=5.0),
        "rarer": Node("rarer", draws=1, visits=2, total=0.0),
    }
    # c p sqrt(16) (1 / 3 - 1 / 11) = 0.48 c: below 0.25 or above.
    assert node.child(0.5).text == "better"
    assert node.child(0.6).text == "rarer"


def test_of_equally_visited_pieces_the_better_one_is_the_answer():
    node = Node(visits=4)
    node.children = {
        "bad": Node("bad", draws=1, visits=1, total=-1.0),
        "good": Node("good", draws=1, visits=1, total=1.0),
        "fair": Node("fair", draws=1, visits=1, total=0.0),
    }
    assert node.most_visited.text == "good"


def test_an_answer_that_ends_at_once_has_no_space_at_its_end():
    agent = made(max_tokens=2)
    agent.begin(World(), 0)
    rngs = [np.random.default_rng(i) for i in range(300)]
    written = agent.continued([ASKED] * 300, ["boil carrot"] * 300, rngs, True)
    assert any(decision.text == "boil carrot" for decision in written)
    assert all(decision.text == decision.text.strip() for decision in written)


def test_a_chat_model_goes_on_in_its_own_turn(tmp_path):
    folder = tmp_path / "chatty"
    trainable("pocket?corpus=walks").save(folder)
    template = "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}"
    template += "{% if add_generation_prompt %}<assistant>{% endif %}"
    (folder / "chat_template.jinja").write_text(template)
    agent = made(lm=f"hf:{folder}?chat=true", max_tokens=2)
    agent.begin(World(), 0)
    prompts = []
    write = agent.lm.write

    def seen(asked, *args, **options):
        prompts.extend(asked)
        return write(asked, *args, **options)

    agent.lm.write = seen
    rngs = [np.random.default_rng(i) for i in range(2)]
    agent.continued([State("Say it.")] * 2, ["", "It is"], rngs, True)
    assert prompts == ["Say it.", (Message("user", "Say it."), Message("assistant", "It is"))]
    assert going_on("Say it.", "It is", chats=False) == "Say it. It is"
    asked = (Message("user", "Say it."),)
    assert text_of(going_on(asked, "It is", chats=False)) == f"{text_of(asked)} It is", (
        "no speakers are added"
    )
    begun = (Message("user", "Say it."), Message("assistant", "Well,"))
    assert going_on(begun, "it is", chats=False)[-1] == Message("assistant", "Well, it is")


@pytest.mark.parametrize("search", ["rain", pytest.param("best", marks=pytest.mark.thorough)])
def test_the_agent_keeps_its_contract(search):
    methods.check(made(search=search, budget=12), hunch.make(ENV), steps=6, streams=2)


def test_a_judge_is_needed_and_must_answer(capsys, tmp_path):
    with pytest.raises(UsageError, match="rain needs a model that says"):
        methods.find("rain").agent_class(None, lm=trainable(SCRATCH))
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


def test_an_evaluation_reports_the_verdict_and_no_divergence():
    agent = made()
    agent.begin(World(steps=10, streams=1), 0)
    player = agent.player(0)
    player.act([ASKED])
    figures = player.figures()
    assert set(figures) == {"length", "distinct", "verdict"}
    assert agent.text_metrics([ASKED] * 4, [Decision(text) for text in [HARMLESS] * 3 + [HARMFUL]])[
        "verdict"
    ] == pytest.approx(0.5)


@pytest.mark.parametrize("search", ["rain", "best"])
def test_the_length_is_that_of_whole_answers(search):
    """A search writes an answer in several stretches, of which the last decision knows one."""
    agent = made(lm="pocket?corpus=walks", search=search, budget=60, visits=1, principle="It is short.")
    agent.begin(World(steps=10, streams=1), 0)
    player = agent.player(0)
    [text] = player.act([State("You see a red ball")])
    tokens = len(agent.lm.as_written(["You see a red ball"], [text])[0].tokens)
    assert tokens - 1 <= player.figures()["length"] <= tokens
    assert search == "best" or tokens > 8, "more than one stretch of max_tokens"
