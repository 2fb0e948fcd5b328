"""Bad input to the commands of the studies is refused in one sentence, as elsewhere."""

import sys
from pathlib import Path

import pytest
from tests.cli.test_bad_input import is_refused

from hunch.runs.files import read_lines
from hunch_studies.recorded_rows import print_table

BAD = [
    (("study", "priors-k", "--workers", "0"), "workers must be at least 1"),
    (("study", "planbench", "--data", "missing"), "There is no folder 'missing'"),
    (("pretrain", "pocket", "--out", "p", "--learning-rate", "nan"), "learning_rate must be a finite number"),
    (("pretrain", "pocket", "--out", "p", "--device", "tpu"), "device must be cpu, cuda"),
    (("pretrain", "pocket", "--out", "p", "--start", "run"), "There is no pocket model in 'run'"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(asked) for asked, _ in BAD])
def test_bad_input(hunch_command, tmp_path, monkeypatch, arguments, sentence):
    is_refused(hunch_command, tmp_path, monkeypatch, arguments, sentence)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (("missing.jsonl",), "there is no file 'missing.jsonl'"),
        (("damaged.jsonl",), "Line 1 of damaged.jsonl is damaged"),
        (("others.jsonl",), "others.jsonl: these are not the rows of this study (KeyError"),
        (("damaged.jsonl", "damaged.jsonl"), "at most 1 of these files"),
        ((), "required: rows"),
    ],
)
def test_recorded_rows_that_cannot_be_read_are_named(files, why, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("damaged.jsonl").write_text("{\n")
    Path("others.jsonl").write_text('{"size": 1}\n')
    monkeypatch.setattr(sys, "argv", ["rows", *files])
    with pytest.raises(SystemExit):
        print_table(lambda file: str(read_lines(file)[0]["key"]), "Rows.")
    assert why in capsys.readouterr().err
