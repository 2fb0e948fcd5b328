"""``hunch pretrain pocket``: from given weights to a model that answers, and refusals."""

import json

import pytest

from hunch.cli.main import main
from hunch.lm import load

pytest.importorskip("transformers")

from hunch_studies.laboratory import pretrain, tokenizer

SMALL = ["--tokens", "2048", "--width", "32", "--layers", "1", "--context", "128", "--batch-tokens", "512"]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    config = pretrain.PretrainConfig(width=32, layers=1, context=128, stages=((1.0, 128),))
    training = pretrain.Pretraining(config, tokenizer.train(documents=100))
    return pretrain.save(training, tmp_path_factory.mktemp("start"))


def command(start, out, *more):
    return [
        "pretrain",
        "pocket",
        *SMALL,
        "--stages",
        "1.0",
        "128",
        "--start",
        str(start),
        "--out",
        str(out),
        *more,
    ]


def test_a_model_is_made_and_the_command_does_not_begin_again(start, tmp_path, capsys):
    main(command(start, tmp_path))
    assert f"pocket?folder={tmp_path / 'model'}" in capsys.readouterr().out
    model = load("pocket", folder=str(tmp_path / "model"), cache=None)
    assert model.evidence == "L1"
    assert isinstance(model.generate(["now a = 1\n"])[0][0], str)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["tokens"] == 2048
    main(command(start, tmp_path))
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == lines


def test_other_settings_are_refused(start, tmp_path, capsys):
    main(command(start, tmp_path))
    with pytest.raises(SystemExit) as caught:
        main(command(start, tmp_path, "--seed", "7"))
    assert caught.value.code == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"), [([], "hunch pretrain pocket"), (["gpt"], "hunch pretrain pocket")]
)
def test_what_to_train_must_be_said(words, says, capsys):
    with pytest.raises(SystemExit):
        main(["pretrain", *words])
    assert says in capsys.readouterr().err


def test_a_folder_without_a_model(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["lm", f"pocket?folder={tmp_path}"])
    assert "no pocket model" in capsys.readouterr().err
