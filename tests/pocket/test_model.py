"""The pocket model: its recipe repeats and resumes, its decoder agrees with transformers'."""

from dataclasses import replace

import numpy as np
import pytest

from hunch.core import HunchError, UsageError
from hunch.lm import load
from hunch.lm.speech import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hunch.lm.backends.huggingface import CausalModel  # noqa: E402
from hunch.lm.backends.weights import CARD, trained_on  # noqa: E402
from hunch.pocket import model  # noqa: E402
from hunch.pocket.decoder import logprobs_of  # noqa: E402
from hunch_pocket import EXAMPLES  # noqa: E402
from hunch_studies.laboratory import corpus, pretrain, tokenizer  # noqa: E402

SMALL = pretrain.PretrainConfig(
    tokens=4096, width=64, layers=2, context=256, stages=((0.5, 64), (1.0, 128)), batch_tokens=512, warmup=4
)
LINE = Sampling(12, 0.1, 1.0, ("\n",))
PROMPTS = [corpus.text(corpus.document(f"prompt-{i}", 200 + 30 * i)) for i in range(5)]


@pytest.fixture(scope="module")
def fitted():
    return tokenizer.train(documents=200)


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    training = pretrain.Pretraining(SMALL, fitted)
    for _ in range(4):
        training.advance()
    return pretrain.save(training, tmp_path_factory.mktemp("pocket") / "model")


def test_the_tokenizer_is_lossless_and_numbers_are_whole(fitted):
    text = "assert a == P(2, -13) and b == 4.07\nreward = a.paddle()\n\n"
    ids = fitted(text)["input_ids"]
    assert fitted.decode(ids[1:]) == text
    pieces = [fitted.decode([i]) for i in ids[1:]]
    assert {"2", "-13", "4", "07", "\n"} <= set(pieces)


def test_the_form_of_a_line_is_few_tokens(fitted):
    ids = fitted("assert state == [4] and state != [12]\n", add_special_tokens=False)["input_ids"]
    assert fitted.convert_ids_to_tokens(ids) == ["assert state == [", "4", "] and state != [", "12", "]\n"]


def test_a_document_is_the_tokens_of_its_pieces(fitted):
    """A model is trained on the pieces and asked for the text."""
    for i in range(60):
        document = corpus.document(f"pieces-{i}", 600)
        parts = fitted([piece.text for piece in document], add_special_tokens=False)["input_ids"]
        text = corpus.text(document)
        assert [i for part in parts for i in part] == fitted(text, add_special_tokens=False)["input_ids"]
        assert fitted.decode([i for part in parts for i in part]) == text


def test_training_lowers_the_loss(fitted):
    training = pretrain.Pretraining(replace(SMALL, tokens=20_000), fitted)
    losses = [training.advance() for _ in range(16)]
    assert losses[-1] < losses[0] - 0.5


def test_stopped_training_goes_on_as_if_it_had_not_been(fitted, tmp_path):
    whole, part = (pretrain.Pretraining(SMALL, fitted) for _ in range(2))
    for _ in range(6):
        whole.advance()
    for _ in range(3):
        part.advance()
    pretrain.checkpoint(part, tmp_path / "checkpoint.pt")
    fitted.save_pretrained(str(tmp_path / "tokenizer"))
    resumed = pretrain._take_up(replace(SMALL, save_every=1.0), tmp_path)
    for _ in range(3):
        resumed.advance()
    for a, b in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(a, b)


def test_other_settings_are_refused(fitted, tmp_path):
    pretrain.checkpoint(pretrain.Pretraining(SMALL, fitted), tmp_path / "checkpoint.pt")
    with pytest.raises(UsageError, match="other settings"):
        pretrain.pretrain(replace(SMALL, layers=3), tmp_path, print)
    with pytest.raises(UsageError, match="multiple of 32"):
        replace(SMALL, width=50)
    with pytest.raises(UsageError, match=r"reach 1\.0"):
        replace(SMALL, stages=((1.0, 512),))


def test_training_begins_with_given_weights(fitted, folder, tmp_path):
    training = pretrain.Pretraining(replace(SMALL, start=str(folder)), fitted)
    given = CausalModel("hf:given", folder).network.state_dict()
    for name, weight in training.network.state_dict().items():
        assert torch.equal(weight, given[name])
    before = CausalModel("hf:given", folder).trained_on
    assert [line["corpus"] for line in before] == ["examples"]
    assert trained_on(pretrain.save(training, tmp_path / "model"))[:-1] == before
    (tmp_path / CARD).write_text("none")
    with pytest.raises(HunchError, match="one line of JSON per training"):
        trained_on(tmp_path)


def test_a_token_that_given_weights_lack_begins_as_the_mean_of_its_parts(folder, fitted):
    other = tokenizer.load(folder)
    other.add_tokens(["3, 4"])
    training = pretrain.Pretraining(replace(SMALL, start=str(folder)), other)
    given = CausalModel("hf:given", folder).network.state_dict()["model.embed_tokens.weight"]
    found = training.network.state_dict()["model.embed_tokens.weight"]
    parts = fitted("3, 4", add_special_tokens=False)["input_ids"]
    assert torch.equal(found[-1], given[parts].mean(0))
    known = fitted("assert state", add_special_tokens=False)["input_ids"]
    assert torch.equal(found[known], given[known])


def test_two_routes_to_one_distribution(folder):
    """Ours in numpy, and transformers'."""
    pocket, other = model.load(folder=str(folder)), CausalModel("hf:other", folder)
    for prompt in PROMPTS:
        ids = other._tokens(prompt)[: SMALL.context]
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


def test_a_line_that_was_written_before_costs_nothing(folder, fitted):
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
    with pytest.raises(UsageError, match="reads at most 256"):
        model.load(folder=str(folder)).generate(["now a = 1\n" * 200], 1, LINE)


def test_the_shipped_model_answers_from_examples():
    """A line of nine places that turns at its ends, which no document shows in these words."""
    pocket = load("pocket", cache=None)
    assert pocket.evidence == "L1"
    assert pocket.verbs >= {"generate", "score", "embed"}
    moves = [3, 5, 2, 7, 4, 6, 3, 5, 2, 4]
    shown = "".join(f"assert spot == [{x}]\nspot = hop()\nassert spot == [{x + 1}]\n\n" for x in moves)
    (answer,) = pocket.generate([f"{shown}assert spot == [5]\nspot = hop()\n"], 1, Sampling(20, 0.0))[0]
    assert answer == "assert spot == [6]"


def test_the_shipped_tokenizer_is_that_of_the_recipe():
    shipped = tokenizer.load(EXAMPLES)
    assert shipped.get_vocab().keys() == tokenizer.train().get_vocab().keys()
