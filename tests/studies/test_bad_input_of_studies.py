"""Bad input to the commands of the studies is refused in one sentence, as elsewhere."""

import pytest
from tests.cli.test_bad_input import is_refused

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
