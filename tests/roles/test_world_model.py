"""In-context world model and policy: what their prompts say, and what becomes of the answers."""

from functools import partial

import numpy as np
import pytest

from hunch import lm
from hunch.core import UsageError
from hunch.envs.icpi.chain import ChainTexts
from hunch.lm.base import Model
from hunch.lm.speech import estimate_tokens
from hunch.rl.world_model import Prediction
from hunch.roles.policy.in_context import InContextPolicy, LookUpPolicy
from hunch.roles.world_model.experience import Example, Experience
from hunch.roles.world_model.prompting import SPECIAL, Blank, Completer, PromptConfig, assemble, balanced
from hunch.roles.world_model.text import InContextWorldModel, LookUpWorldModel

TWO, THREE, FOUR = (f"assert state == [{n}] and state {'==' if n == 4 else '!='} [4]\n" for n in (2, 3, 4))
MOVE = Example(TWO, "right", 0.0, False, THREE)
CHAIN = ChainTexts()


class Parrot(Model):
    """Gives answers in turn, and keeps what it was asked."""

    verbs = frozenset({"generate"})

    def __init__(self, *answers):
        self.name = self.revision = "parrot"
        self.answers, self.prompts, self.samplings = list(answers), [], []

    def generate(self, prompts, k=1, sampling=lm.ONE_LINE, first=0):
        self.prompts.append(list(prompts))
        self.samplings.append((sampling, first))
        return [[self.answers.pop(0)] for _ in prompts]


def experience(*episodes):
    lived = Experience(8)
    for episode in episodes:
        lived.add(episode, True)
    return lived


def query(state=THREE, action="right", seed=0):
    return state, action, np.random.default_rng(seed)


def world(model, **options):
    return partial(InContextWorldModel, Completer(model, PromptConfig(**options)))


def predict(make, queries, lived, wording):
    return make(lived, wording).step(*zip(*queries, strict=True))


def policy_of(model, **options):
    return partial(InContextPolicy, Completer(model, PromptConfig(**options)))


def choose(make, queries, lived, wording):
    states, _, rngs = zip(*queries, strict=True)
    return make(lived, wording).choose(states, rngs)


def test_the_three_prompts_of_a_step_by_hand():
    model = Parrot("assert not done", "assert reward == 0", FOUR.rstrip())
    (found,) = predict(world(model), [query()], experience([MOVE]), CHAIN)
    shown = "assert state == [2] and state != [4]\nstate = right()\n"
    asked = "assert state == [3] and state != [4]\nstate = right()\n"
    assert model.prompts == [
        [f"{shown}assert not done\n\n{asked}"],
        [f"{shown}assert reward == 0\n\n{asked}"],
        [f"{shown}assert state == [3] and state != [4]\n\n{asked}"],
    ]
    assert found == Prediction(False, 0.0, FOUR)
    assert {s.temperature for s, _ in model.samplings} == {0.1}
    assert [s.stop for s, _ in model.samplings] == [("\n",)] * 3


def test_the_policy_prompt_by_hand():
    goal = Example(THREE, "try_goal", 1.0, True, THREE)
    model = Parrot("state = left()")
    policy = policy_of(model)
    assert choose(policy, [query(TWO)], experience([MOVE, goal]), CHAIN) == ["left"]
    reset = "\nstate, reward = reset()\n"
    first = "assert state == [2] and state != [4]\nstate = right()\nassert reward == 0.0\n"
    second = "assert state == [3] and state != [4]\nreward = try_goal(state)\nassert reward == 1.0\n"
    (prompt,) = model.prompts[0]
    assert prompt.endswith(f"{reset}assert state == [2] and state != [4]\n")
    parts = prompt.split(reset)[1:-1]
    assert sorted(parts) == sorted([first, second, first + second])


def test_hints_can_be_left_out_of_what_the_policy_is_shown():
    model = Parrot("state = left()")
    policy = policy_of(model, policy_hints=False)
    choose(policy, [query(TWO)], experience([MOVE]), CHAIN)
    (prompt,) = model.prompts[0]
    assert prompt.count("state !=") == 1
    assert prompt.endswith(TWO)


def test_reward_prompts_show_steps_that_end_as_foretold_and_balance_rewards():
    hit, miss = Example(FOUR, "try_goal", 1.0, True, FOUR), Example(TWO, "try_goal", 0.0, True, TWO)
    other = Example(THREE, "try_goal", 0.0, True, THREE)
    model = Parrot("assert done", "assert reward == 1")
    lived = experience([hit], [miss], [other], [miss], [MOVE])
    (found,) = predict(world(model), [query(FOUR, "try_goal")], lived, CHAIN)
    assert found == Prediction(True, 1.0, None)
    (prompt,) = model.prompts[1]
    assert prompt.count("assert reward == 1\n") == prompt.count("assert reward == 0\n") == 3
    assert "right" not in prompt
    assert len(model.prompts) == 2, "nothing follows the end"


def test_done_prompts_balance_and_need_not():
    last = Example(TWO, "right", 0.0, True, THREE)
    for balance, wanted in ((True, (3, 3)), (False, (1, 3))):
        model = Parrot(*["nonsense"] * 3)
        predict(world(model, balance=balance), [query()], experience([MOVE] * 3, [last]), CHAIN)
        prompt = model.prompts[0][0]
        assert (prompt.count("assert done\n"), prompt.count("assert not done\n")) == wanted


def test_without_the_action_constraint_all_steps_are_shown():
    goal = Example(FOUR, "try_goal", 1.0, True, FOUR)
    model = Parrot("assert not done", "assert reward == 0", "assert state == [5]")
    predict(world(model, action_constraint=False, balance=False), [query()], experience([MOVE, goal]), CHAIN)
    assert all("try_goal" in prompt for (prompt,) in model.prompts)


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [((1, 1), (1, 1)), ((4, 1), (4, 4)), ((5, 2, 3), (5, 5, 5)), ((4,), (4,)), ((3, 0), (3, 0))],
)
def test_groups_are_brought_to_the_same_size(sizes, counts):
    groups = [[(g, i) for i in range(size)] for g, size in enumerate(sizes)]
    brought = balanced(groups, np.random.default_rng(0))
    assert tuple(sum(g == own for own, _ in brought) for g in range(len(sizes))) == counts
    for g, size in enumerate(sizes):
        repeats = [brought.count((g, i)) for i in range(size)]
        assert not repeats or max(repeats) - min(repeats) <= 1, "cyclically"


def test_prompts_are_cut_at_the_borders_of_examples():
    examples = [f"assert state == [{i}]\n" for i in range(5)]
    size = estimate_tokens(examples[0])
    room = 3 * size + estimate_tokens("query\n")
    assert assemble(examples, "query\n", room, estimate_tokens) == ("".join(examples[2:]) + "query\n", 2)
    assert assemble(examples, "query\n", room - 1, estimate_tokens)[1] == 3
    assert assemble(examples, "query\n", 1, estimate_tokens) == ("query\n", 5)
    assert assemble(examples, "query\n", 1000, estimate_tokens) == ("".join(examples) + "query\n", 0)


def test_tokens_of_a_state():
    assert estimate_tokens("assert state == [3] and state != [4]\n") == 13


def test_cut_prompts_are_counted():
    model = Parrot(*["nonsense"] * 3)
    room = 2 * estimate_tokens(TWO + "state = right()\n" + "assert not done\n\n") + 5
    asked = world(model, context=200 + room)
    predict(asked, [query()], experience([MOVE] * 9), CHAIN)
    assert asked.args[0].counts.cut == asked.args[0].counts.prompts == 3


@pytest.mark.parametrize("answers", ["write", "choose"])
def test_a_full_context_has_room_for_special_tokens(answers):
    """Examples of one token fill a prompt to the last one, and the model puts its own token before it."""
    completer = Completer(lm.load("pocket"), PromptConfig(answers=answers))
    told = CHAIN.done(False) + CHAIN.done_stop
    assert completer.lm.count_tokens(told.strip("\n") + "\n") == 1
    many = [told.strip("\n") + "\n"] * 2 * completer.context
    for query in (TWO, 2 * TWO, "\n"):
        blank = Blank(query, [many], np.random.default_rng(0), 0, [CHAIN.done(True), CHAIN.done(False)])
        assert completer.fill([blank], CHAIN.done_stop, CHAIN.read_done) == [False]
    assert completer.counts.cut == 3


def test_answers_take_no_more_of_a_known_context_than_they_need():
    model = Parrot(*["nonsense"] * 3)
    model.context, model.count_tokens = 2000, len
    asked = world(model, max_tokens=400)
    predict(asked, [query()], experience([MOVE] * 50), CHAIN)
    example = len(TWO + "state = right()\n" + "assert not done\n\n")
    for (prompt,), (sampling, _) in zip(model.prompts, model.samplings, strict=True):
        assert 2000 - 2 * example < len(prompt) + sampling.max_tokens <= 2000
        assert 2 * len("assert not done\n") <= sampling.max_tokens + SPECIAL < 2 * example


@pytest.mark.parametrize("answers", ["write", "choose"])
def test_a_question_without_an_example_counts_as_failed(answers):
    completer = Completer(lm.load("pocket"), PromptConfig(answers=answers, resamples=1))
    options = [CHAIN.done(True) + CHAIN.done_stop, CHAIN.done(False) + CHAIN.done_stop]
    rng = np.random.default_rng(0)
    blanks = [Blank(TWO, groups, rng, 0, options) for groups in ([[options[0]]], [], [])]
    assert completer.fill(blanks, CHAIN.done_stop, CHAIN.read_done)[1:] == [None, None]
    counts = completer.counts
    assert (counts.completions, counts.failed - counts.unread, counts.bare) == (1, 2, 2)
    assert completer.metrics()["failed"] == counts.failed / 3


def test_what_cannot_be_read_is_asked_again_and_counted():
    model = Parrot("", "assert not done", "reward == x", "assert reward == 0", "?", "?", "?")
    asked = world(model)
    (found,) = predict(asked, [query()], experience([MOVE] * 5), CHAIN)
    assert found == Prediction(False, 0.0, None)
    assert [first for _, first in model.samplings] == [0, 1, 0, 1, 0, 1, 2]
    counts = asked.args[0].counts
    assert (counts.completions, counts.unread, counts.failed, counts.bare) == (7, 5, 1, 0)
    assert asked.args[0].metrics() == {"unread": 5 / 7, "failed": 1 / 3, "cut": 0.0}
    assert asked.args[0].metrics() == {}


def test_only_the_unread_are_asked_again_and_with_another_prompt():
    third = Example(FOUR, "right", 0.0, False, FOUR)
    model = Parrot("?", "assert done", "assert done", "assert reward == 0", "assert reward == 0")
    lived = experience([MOVE, third], [Example(THREE, "right", 0.0, True, FOUR)])
    predict(world(model), [query(seed=1), query(TWO, seed=2)], lived, CHAIN)
    assert [len(prompts) for prompts in model.prompts] == [2, 1, 2]
    assert model.prompts[1][0] not in model.prompts[0]


def test_nothing_is_asked_without_an_example():
    asked = world(Parrot("assert done"))
    (found,) = predict(asked, [query()], experience([MOVE]), CHAIN)
    assert found == Prediction(True, None, None), "no step to the right has ended"
    assert asked.args[0].counts.bare == 1


def test_a_policy_without_an_answer_acts_at_random():
    model = Parrot(*["fly()"] * 300)
    policy = policy_of(model)
    asked = [query(TWO, None, seed) for seed in range(60)]
    assert set(choose(policy, asked, experience([MOVE]), CHAIN)) == set(CHAIN.actions)


def test_prompts_that_last_an_episode():
    steps = [Example(f"assert state == [{i}]\n", "right", 0.0, False, THREE) for i in range(8)]
    first, second = experience(steps), experience(steps, [MOVE])
    for lived in (first, second):
        model = Parrot(*["?"] * 12)
        asked = world(model, prompts="per-episode")
        for seed in range(2):
            predict(asked, [query(TWO, seed=seed), query(THREE, seed=seed)], lived, CHAIN)
        heads = [[prompt.rpartition("\n\n")[0] for prompt in prompts] for prompts in model.prompts]
        assert heads[0][0] == heads[0][1] == heads[3][0], "one prompt for all queries of the episode"
        assert len({head for head, _ in heads}) == 3, "another one each time it is asked again"


@pytest.mark.parametrize("prompts", ["per-prediction", "per-episode"])
def test_together_as_one_by_one(prompts):
    model = lm.load("scripted:icpi?error=0.3&malformed=0.2")
    steps = [[Example(THREE, "right", 0.0, False, FOUR), Example(FOUR, a, r, d, FOUR)] for a, r, d in
             (("try_goal", 1.0, True), ("left", 0.0, False), ("right", 0.0, False))]  # fmt: skip
    lived = experience(*steps)
    kinds = [(s, a) for s in (TWO, THREE, FOUR) for a in CHAIN.actions]
    roles = world(model, prompts=prompts), policy_of(model, prompts=prompts)
    together = [query(*kind, seed=i) for i, kind in enumerate(kinds)]
    alone = [query(*kind, seed=i) for i, kind in enumerate(kinds)]
    for ask, role in zip((predict, choose), roles, strict=True):
        assert ask(role, together, lived, CHAIN) == [ask(role, [one], lived, CHAIN)[0] for one in alone]


def test_look_up_takes_the_newest_episode_and_its_last_step():
    old = Example(TWO, "right", 0.0, False, FOUR)
    early, late = Example(TWO, "right", 1.0, False, TWO), Example(TWO, "left", 0.0, True, THREE)
    lived = experience([old], [MOVE, early], [Example(FOUR, "left", 0.0, False, THREE)])
    look = predict(LookUpWorldModel, [query(TWO), query(FOUR, "left"), query(FOUR)], lived, CHAIN)
    assert look == [Prediction(False, 1.0, TWO), Prediction(False, 0.0, THREE), Prediction()]
    assert choose(LookUpPolicy, [query(TWO), query(THREE)], lived, CHAIN) == ["right", None]
    lived.add([late], False)
    assert choose(LookUpPolicy, [query(TWO)], lived, CHAIN) == ["left"]
    assert predict(LookUpWorldModel, [query(TWO, "left")], lived, CHAIN) == [Prediction(True, 0.0, None)]


def test_refusals():
    with pytest.raises(UsageError, match="needs a model with the verb 'generate'"):
        Completer(lm.load("minilm"), PromptConfig())
    with pytest.raises(UsageError, match="no room for a prompt"):
        Completer(Parrot(), PromptConfig(context=200))
    with pytest.raises(UsageError, match="at least 1"):
        Completer(Parrot(), PromptConfig(resamples=0))
