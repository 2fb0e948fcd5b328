"""EvoTune: pairs of answers, training that raises the scores of what is written, resume, bad input."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

import hunch  # noqa: E402
from hunch.core import HunchWarning, State, UsageError, World  # noqa: E402
from hunch.envs import DesignProblem  # noqa: E402
from hunch.lm import trainable  # noqa: E402
from hunch.lm.training import Written  # noqa: E402
from hunch.lm.training.learner import Learner  # noqa: E402
from hunch.methods.program.funsearch import FunSearch  # noqa: E402
from hunch_contrib.program.evotune import Answer, EvoTune, EvoTuneConfig, above, preference_pairs  # noqa: E402

START = "def f(x):\n    return 0"
OPTIONS = {"max_tokens": 16, "feedback": "fresh", "search": "single", "give_up": 0}
"""Every request is the same, so that a small model can know it."""

TEXTS = [f"def f(x): return {digit}" for digit in range(10)]


def value(program):
    """Fitness: the number that a program returns, which these tests wrote."""
    names = {}
    exec(program, names)
    return float(names["f"](1.0))


def problem():
    return DesignProblem(
        value, task="Return a large number.", function="f", parameters=("x",), start=START, target=100.0
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model that writes programs which return a digit, each as often as any other."""
    lm = trainable("scratch?width=32&layers=1&heads=2&vocabulary=128")
    prompt = FunSearch.prompt(problem().problem, (), "")
    lm.take([prompt, *TEXTS])
    learner = Learner.adam(lm.parameters())
    for _ in range(120):
        written = lm.evaluate([prompt] * 10, lm.as_written([prompt] * 10, TEXTS))
        learner.update(-(written.logprobs * written.mask).sum() / written.mask.sum(), 1e-2)
    return lm.save(tmp_path_factory.mktemp("writer") / "model")


def answer(text, fitness, prompt="x"):
    return Answer(prompt, text, fitness, ())


def test_halves_are_paired_by_rank_and_failures_with_what_runs():
    a, b, c, d = (answer(name, fitness) for name, fitness in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True))
    failed = [answer(name, None) for name in "efghi"]
    other = [answer("j", 9.0, "y"), answer("k", None, "z")]  # prompts with one answer
    pairs = preference_pairs([d, *failed, a, c, b, a, *other], samples=20)
    assert pairs[:2] == [(a, c), (b, d)]
    assert pairs[2:] == list(zip([a, b, c, d, a], failed, strict=True))


def test_equal_scores_are_not_compared():
    assert preference_pairs([answer("a", 1.0), answer("b", 1.0)], samples=4) == []
    # Of three scores the upper half is one.
    best, *rest = (answer(name, fitness) for name, fitness in zip("abc", (3.0, 2.0, 1.0), strict=True))
    assert preference_pairs([*rest, best], samples=4) == [(best, rest[0])]


def test_a_prompt_that_comes_again_has_other_answers():
    a, b = answer("a", 2.0), answer("b", 1.0)
    assert preference_pairs([a, b, a, b], samples=2) == [(a, b), (a, b)]
    assert preference_pairs([a, a, b, b], samples=2) == []


def test_pairs_of_low_scores_are_left_out():
    pairs = [(answer("a", float(score)), answer("b", None)) for score in range(11)]
    assert above(pairs, 0.3) == pairs[3:]
    assert above(pairs, 0.0) == pairs
    assert above([], 0.3) == []


def expected_digit(agent):
    """The mean of the digits, weighted by the writer's probabilities of the ten programs."""
    prompts = [FunSearch.prompt(problem().problem, (), "")] * 10
    with torch.no_grad():
        written = agent.lm.evaluate(prompts, agent.lm.as_written(prompts, TEXTS))
    weights = torch.softmax(written.logprobs.sum(1), 0)  # (10,)
    return float(weights @ torch.arange(10.0))


def trained(folder, **options):
    """An agent whose writer was trained five times on the answers of one search, and the last metrics."""
    options = {"train_every": 1_000, "batch_size": 8, "learning_rate": 5e-4, **OPTIONS, **options}
    agent = EvoTune(lm=trainable(f"hf:{folder}"), **options)
    hunch.train(agent, [problem() for _ in range(4)], steps=120, seed=3)
    return agent, [agent.train() for _ in range(5)][-1]


@pytest.mark.parametrize("divergence", ["forward", "reverse"])
def test_training_makes_better_programs_likelier(folder, divergence):
    agent, metrics = trained(folder, divergence=divergence)
    assert metrics["ordered"] > 0.9
    assert metrics["better"] > 0 > metrics["worse"]
    control, shuffled = trained(folder, divergence=divergence, shuffle=True)
    assert shuffled["ordered"] < metrics["ordered"]
    assert expected_digit(agent) > expected_digit(control) + 0.15


def test_the_writer_is_trained_after_so_many_programs(folder):
    agent = EvoTune(lm=trainable(f"hf:{folder}"), **{"train_every": 20, "learning_rate": 1e-4, **OPTIONS})
    before = {name: weight.clone() for name, weight in agent.lm.state_dict().items()}
    hunch.train(agent, [problem() for _ in range(4)], steps=16, seed=3)
    assert agent.last_training == 0
    assert all(torch.equal(weight, before[name]) for name, weight in agent.lm.state_dict().items())
    hunch.train(agent, [problem() for _ in range(4)], steps=48, seed=3)
    assert agent.last_training == 40
    assert not any(torch.equal(weight, before[name]) for name, weight in agent.lm.state_dict().items())


def test_a_search_without_a_training_says_so(folder):
    agent = EvoTune(lm=trainable(f"hf:{folder}"), **OPTIONS)
    said = []
    hunch.train(agent, [problem() for _ in range(4)], steps=8, watch=hunch.Watch(say=said.append))
    assert any("step 400 (--train-every), and the run ends at step 8" in text for text in said)


def test_a_resumed_search_goes_on_with_the_trained_writer(folder):
    def fresh():
        options = {"train_every": 8, "batch_size": 4, "learning_rate": 1e-3, **OPTIONS}
        return EvoTune(lm=trainable(f"hf:{folder}"), **options)

    whole, part = fresh(), fresh()
    hunch.train(whole, [problem() for _ in range(4)], steps=32, seed=3)
    hunch.train(part, [problem() for _ in range(4)], steps=16, seed=3)
    other = fresh()
    other.begin(World(steps=32, streams=4, problem=problem().problem), 3)
    other.load_state_dict(part.state_dict())
    for name, weight in part.lm.state_dict().items():
        assert torch.equal(other.lm.state_dict()[name], weight)
    states = [State("", "", stream=stream) for stream in range(4)]
    expected = [attempt.program for attempt in whole.attempts[16:20]]
    assert other.act(states) == expected


@pytest.mark.parametrize(("limit", "ends"), [(16, True), (8, False)])
def test_what_is_learnt_are_the_tokens_that_were_drawn(folder, limit, ends):
    agent = EvoTune(lm=trainable(f"hf:{folder}"), **{**OPTIONS, "max_tokens": limit})
    hunch.train(agent, [problem() for _ in range(4)], steps=8, seed=3)
    assert len(agent.answers) == 7
    for answer in agent.answers:
        assert (answer.tokens[-1] in agent.lm.ends) == ends
        of_text = answer.tokens[:-1] if ends else answer.tokens
        assert len(of_text) == 8
        assert answer.text == agent.lm.model.decode([0], of_text)


@pytest.mark.parametrize("spec", ["?context=8", ""])
def test_a_prompt_that_was_cut_is_learnt_as_it_was_read(folder, spec):
    """The log-probabilities with which answers were drawn are those that training computes."""
    agent = EvoTune(lm=trainable(f"hf:{folder}{spec}"), **OPTIONS)
    agent.begin(World(steps=8, streams=4, problem=problem().problem), 0)
    request = FunSearch.prompt(problem().problem, (), "")
    prompt = request if spec else request * 100  # longer than the model reads
    agent.writer._answers([prompt], 4, 0)
    prompts, texts = zip(*agent.writer.latest, strict=True)
    with torch.no_grad():
        evaluated = agent.lm.evaluate(prompts, texts)
    drawn = torch.tensor([sum(text.logprobs) for text in texts])
    torch.testing.assert_close(evaluated.logprobs.sum(1), drawn, atol=1e-4, rtol=0)


def test_each_answer_is_kept_also_where_several_hold_no_program(folder):
    agent = EvoTune(lm=trainable(f"hf:{folder}"), **OPTIONS)
    hunch.train(agent, [problem() for _ in range(4)], steps=16, seed=3)
    texts = ["Sorry.", "No.", "def f(x): return 3"]
    sorry, no, three = (("p", Written(text, (), (), True)) for text in texts)
    agent.asked = {"": [sorry, no], texts[2]: [three]}
    written = [replace(agent.attempts[-1], program=program, fitness=None) for program in ("", "")]
    for attempt in [*written, replace(agent.attempts[-1], program="def f(x): return 3", fitness=3.0)]:
        agent._tell(attempt)
    assert [each.text for each in agent.answers[-3:]] == texts
    assert [worse.text for _, worse in preference_pairs(agent.answers[-3:], 4)] == ["Sorry.", "No."]


def test_without_pairs_the_writer_stays_as_it_was(folder):
    agent = EvoTune(lm=trainable(f"hf:{folder}"), **OPTIONS)
    agent.begin(World(steps=8, streams=4, problem=problem().problem), 0)
    before = {name: weight.clone() for name, weight in agent.lm.state_dict().items()}
    with pytest.warns(HunchWarning, match="not trained"):
        assert agent.train() == {"pairs": 0.0}
    assert all(torch.equal(weight, before[name]) for name, weight in agent.lm.state_dict().items())


def test_a_model_is_needed_and_several_answers_to_a_prompt():
    with pytest.raises(UsageError, match="name one with --lm"):
        EvoTune()
    with pytest.raises(UsageError, match="at least 2"):
        EvoTune.check(replace(EvoTuneConfig(), lm="hf:folder", samples=1), {})
    with pytest.raises(UsageError, match="no weights to train"):
        EvoTune.check(EvoTuneConfig(lm="openai:model"), {})
    with pytest.raises(UsageError, match="end=TEXT"):
        EvoTune.check(EvoTuneConfig(lm="hf:folder", stop=("\n",)), {})


def test_a_new_model_is_refused_as_it_has_no_words():
    """All of its answers were empty, so no pair could come of them, and nothing was learnt."""
    with pytest.raises(UsageError, match="a new model without a word"):
        EvoTune.check(EvoTuneConfig(lm="scratch?width=32"), {})
    with pytest.raises(UsageError, match="a new model without a word"):
        EvoTune(lm=trainable("scratch?width=32&layers=1&heads=2&vocabulary=128"))
