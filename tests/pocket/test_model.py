"""The pocket model: its decoder agrees with transformers', and answers depend on nothing else."""

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.lm import load
from hunch.lm.speech import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoTokenizer  # noqa: E402

from hunch.lm.backends.huggingface import CausalModel  # noqa: E402
from hunch.pocket import model  # noqa: E402
from hunch.pocket.decoder import logprobs_of  # noqa: E402
from hunch_pocket import EXAMPLES  # noqa: E402

LINE = Sampling(12, 0.1, 1.0, ("\n",))
MOVES = (3, 5, 2, 7, 4, 6, 3, 5, 2, 4)


def shown(times):
    """Return so many moves of a place that goes up by one, and the beginning of another."""
    lines = [f"assert spot == [{x}]\nspot = hop()\nassert spot == [{x + 1}]\n\n" for x in MOVES[:times]]
    return "".join(lines) + f"assert spot == [{times % 5}]\nspot = hop()\n"


PROMPTS = [shown(times) for times in (2, 4, 5, 7, 9)]


@pytest.fixture(scope="module")
def folder():
    return EXAMPLES


def test_two_routes_to_one_distribution(folder):
    """Ours in numpy, and transformers'."""
    pocket, other = model.load(folder=str(folder)), CausalModel("hf:other", folder)
    for prompt in PROMPTS:
        ids = other._tokens(prompt)
        with torch.inference_mode():
            expected = torch.log_softmax(other.network(torch.tensor([ids])).logits[0, -1].double(), -1)
        _, logits = pocket.decoder.begin(ids, pocket.decoder.way(ids, 0), 1, 0)
        np.testing.assert_allclose(logprobs_of(logits[None])[0], expected.numpy(), atol=2e-5)


def test_answers_depend_neither_on_company_nor_on_the_past(folder):
    together = model.load(folder=str(folder)).generate(PROMPTS, 2, LINE)
    used = model.load(folder=str(folder))
    used.generate(PROMPTS[::-1], 1, LINE)
    alone = [used.generate([prompt], 2, LINE)[0] for prompt in PROMPTS]
    assert together == alone
    second = model.load(folder=str(folder)).generate(PROMPTS[:1], 1, LINE, first=1)
    assert second == [[together[0][1]]]


def test_the_distribution_is_the_same_to_the_last_bit(folder):
    """Whatever was read before, however many blocks are read together, and whatever else is written."""
    first, second, third = (model.load(folder=str(folder)).decoder for _ in range(3))
    third.blocks = 1
    ids = [model.load(folder=str(folder))._tokens(prompt)[:200] for prompt in PROMPTS]
    way = first.way(ids[0], 8)
    begun = [first.begin(prompt, way, 3, 8) for prompt in ids]
    texts = [(5 + i, 6 + i % 2) for i in range(3)]
    for length in (1, 2):
        for group, _ in begun:
            group.follow([text[:length] for text in texts])
        together = first.advance([group for group, _ in begun])
    for i, prompt in enumerate(ids):
        second.begin([*prompt[:100], 5, 6, 7], way, 1, 8)  # knows a part of it
        for other in (second, third):
            group, row = other.begin(prompt, way, 1, 8)
            assert np.array_equal(row, begun[i][1])
            for text, wanted in zip(texts, together[3 * i : 3 * i + 3], strict=True):
                for length in (1, 2):
                    group.follow([text[:length]])
                    (found,) = other.advance([group])
                assert np.array_equal(found, wanted)


def test_a_line_that_was_written_before_costs_nothing(folder):
    fitted = AutoTokenizer.from_pretrained(str(folder))
    pocket = model.load(folder=str(folder))
    first = pocket.generate(PROMPTS[:1], 400, LINE)[0]
    before = pocket.tokens_read, pocket._writer.computed, pocket.tokens_written
    again = pocket.generate(PROMPTS[:1], 400, LINE)[0]
    assert again == first
    assert (pocket.tokens_read, pocket._writer.computed) == before[:2]
    assert pocket.tokens_written == 2 * before[2], "the meter counts what is written, computed or not"
    written = [tuple(fitted(text, add_special_tokens=False)["input_ids"]) for text in first]
    beginnings = {ids[:n] for ids in written for n in range(1, len(ids) + 1)}
    assert pocket._writer.computed <= len(beginnings) < before[2], "samples that agree so far are one text"


def test_a_known_beginning_is_not_computed_again(folder):
    pocket = model.load(folder=str(folder))
    pocket.generate([PROMPTS[4] + "a"], 1, LINE)
    before = pocket.tokens_read
    pocket.generate([PROMPTS[4] + "b"], 1, LINE)
    assert pocket.tokens_read - before < 40
    assert pocket.tokens_saved > 0


def test_more_prompts_than_rows(folder):
    prompts = [f"now a = {i}\n" for i in range(60)]
    pocket = model.load(folder=str(folder))
    assert pocket.generate(prompts, 1, LINE) == [pocket.generate([prompt], 1, LINE)[0] for prompt in prompts]


def test_too_long_a_prompt_is_refused(folder):
    with pytest.raises(UsageError, match="reads at most 1024"):
        model.load(folder=str(folder)).generate(["now a = 1\n" * 400], 1, LINE)


def test_the_shipped_model_answers_from_examples():
    """A line of nine places that turns at its ends, which no document shows in these words."""
    pocket = load("pocket", cache=None)
    assert pocket.evidence == "L1"
    assert pocket.verbs >= {"generate", "score", "embed"}
    (answer,) = pocket.generate([shown(10)], 1, Sampling(20, 0.0))[0]
    assert answer == "assert spot == [1]"
