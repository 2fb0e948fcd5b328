"""SPRING: questions are asked in order, each knows its parents' answers alone, the last is the action."""

import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import State, UsageError, World
from hunch.lm.base import Model
from hunch.rl.episodes import evaluate
from hunch_contrib.planner.spring import DIRECT, GRAPH, SPRING, Question, ordered

RULE = "scripted:player"


class Echo(Model):
    """Answers with the number of its calls, and keeps what it was asked."""

    verbs = frozenset({"generate"})
    name, revision = "echo", "1"

    def __init__(self):
        self.prompts = []

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.prompts += prompts
        return [[f"answer {len(self.prompts)}"] for _ in prompts]


def craft(target, **options):
    return hunch.make(
        "hunch/Craft-v0", **{"target": target, "difficulty": "hard", "most": 9, "max_steps": 80, **options}
    )


def played(agent, target, seed=0):
    env = craft(target, world_seed=seed)
    agent.begin(World(manual=env.unwrapped.manual), seed)
    player = agent.player(seed)
    (episode,) = evaluate(lambda _: player, [env], 1, seed)
    return episode, player.records()


# ---- the graph --------------------------------------------------------------------------------------------


def test_the_graph_has_nine_questions_and_each_comes_after_its_parents():
    order = ordered(GRAPH)
    assert len(order) == 9
    assert order[-1] == "choice"
    for name, question in GRAPH.items():
        assert all(order.index(parent) < order.index(name) for parent in question.after)
    assert ordered(DIRECT) == ["choice"]


@pytest.mark.parametrize(
    ("questions", "problem"),
    [
        ({"a": Question("?", ("b",)), "b": Question("?", ("a",))}, "depend on each other: "),
        ({"a": Question("?", ("a",))}, "depend on each other: a -> a"),
        ({"a": Question("?", ("b",))}, "'a' depends on 'b', which does not exist"),
        ({}, "at least one question"),
    ],
)
def test_what_is_no_graph_of_questions_is_refused(questions, problem):
    with pytest.raises(UsageError, match=problem):
        ordered(questions)


def test_the_last_question_comes_last_though_nothing_leads_to_it():
    assert ordered({"a": Question("?"), "c": Question("?"), "b": Question("?")})[-1] == "b"


# ---- prompts ----------------------------------------------------------------------------------------------


def test_a_prompt_holds_the_answers_of_its_parents_and_no_others():
    model = Echo()
    agent = begun(SPRING(model))
    agent.begin(World(manual="The manual."), 0)
    agent.act([State("You are here.", "sing", ("sing", "dance"))])
    asked = dict(zip(agent.order, model.prompts, strict=True))
    answers = {name: f"answer {i}" for i, name in enumerate(agent.order, start=1)}
    for name, prompt in asked.items():
        assert prompt.startswith("The manual.\n\nYour task is to: sing\n\nYou are here.")
        assert prompt.endswith(f"Question: {GRAPH[name].text}\nAnswer:")
        known = {other for other, text in answers.items() if f"Answer: {text}\n" in prompt}
        assert known == set(GRAPH[name].after)
        assert ("- dance" in prompt) == GRAPH[name].listed


def test_the_window_holds_the_last_observations_of_an_episode():
    env = craft("make table")
    for window in (1, 3, 4):
        model = Echo()
        agent = begun(SPRING(model, questions={"choice": DIRECT["choice"]}, window=window))
        agent.begin(World(), 0)
        evaluate(lambda _, agent=agent: agent, [env], 1, 0)
        assert [p.count("You are in the") for p in model.prompts[:4]] == [
            min(window, n) for n in (1, 2, 3, 4)
        ]
        assert model.prompts[3].count("> ") == window - 1
        assert not agent.seen[0]


def test_an_answer_that_names_no_action_is_counted_and_drawn():
    agent = begun(SPRING(Echo()))
    agent.begin(World(), 0)
    states = [State("", "", ("sing", "dance"), stream=i) for i in range(40)]
    assert set(agent.act(states)) == {"sing", "dance"}
    assert agent.learn() == {"fallback_rate": 1.0}
    assert agent.learn() == {}
    assert not any(line["named"] for line in agent.records())


def test_a_model_that_cannot_write_is_refused():
    with pytest.raises(UsageError, match="SPRING needs a model with the verb 'generate'"):
        begun(SPRING(lm.load("bag-of-words")))


# ---- playing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["graph", "direct"])
@pytest.mark.parametrize("target", ["make stone pickaxe", "make iron sword"])
def test_a_rule_without_error_reaches_its_target_by_the_manual(ask, target):
    episode, lines = played(begun(SPRING(lm.load(RULE), ask=ask)), target, seed=1)
    assert episode.success
    assert all(line["named"] for line in lines)
    assert len(lines[0]["answers"]) == (9 if ask == "graph" else 1)


def test_without_the_manual_the_rule_knows_nothing():
    agent = begun(SPRING(lm.load(RULE)))
    env = craft("make table", max_steps=30)
    assert not any(e.success for e in evaluate(agent.player, [env], 2, 0))


def test_more_errors_more_wrong_actions():
    clean, _ = played(begun(SPRING(lm.load(RULE))), "make wooden sword")
    rough, _ = played(begun(SPRING(lm.load(f"{RULE}?error=0.3"), temperature=1.0)), "make wooden sword")
    assert clean.length < rough.length
    hard, _ = played(
        begun(SPRING(lm.load(f"{RULE}?error=0.3&compound=9"), ask="direct", temperature=1.0)),
        "make wooden sword",
    )
    assert not hard.success
    with pytest.raises(UsageError, match="compound"):
        lm.load(f"{RULE}?compound=0")


def test_the_contract_holds_in_the_craft_world():
    agent = begun(SPRING(lm.load(f"{RULE}?error=0.3"), temperature=1.0))
    methods.check(agent, craft("make stone pickaxe"), steps=12)
