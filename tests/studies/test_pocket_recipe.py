"""The pocket model's recipe repeats and resumes, and its tokenizer is that of its corpus."""

from dataclasses import replace

import pytest

from hunch.core import HunchError, UsageError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hunch.lm.backends.huggingface import CausalModel  # noqa: E402
from hunch.lm.backends.weights import CARD, trained_on  # noqa: E402
from hunch_pocket import EXAMPLES  # noqa: E402
from hunch_studies.laboratory import corpus, pretrain, tokenizer  # noqa: E402

SMALL = pretrain.PretrainConfig(
    tokens=4096, width=64, layers=2, context=256, stages=((0.5, 64), (1.0, 128)), batch_tokens=512, warmup=4
)


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


def test_the_shipped_tokenizer_is_that_of_the_recipe():
    shipped = tokenizer.load(EXAMPLES)
    assert shipped.get_vocab().keys() == tokenizer.train().get_vocab().keys()
