"""The importer of recorded verdicts, on files of the same form that are made here."""

import os
import pickle

import pytest

from hunch.core import UsageError
from hunch.studies.kwon import markdown, options_named, recorded


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value))


def test_labels_are_recomputed_by_our_rules(tmp_path):
    write(
        tmp_path / "matrix/zs_lm_responses/regular/welfare_stag.pkl",
        [("prompt", " the sum. A has 4, B -2.\n\nTherefore, the greatest total welfare is in A.")],
    )
    write(
        tmp_path / "matrix/zs_lm_responses/regular/pareto_chicken.pkl",
        [("prompt", " no one gains. So the Pareto-optimal options are A and D.")],
    )
    prompts = ["P1 proposes $7.50 for P1 and $2.50 for P2.", "P1 proposes $5.0 for P1 and $5.0 for P2."]
    answers = ["Yes", "\nYes"]
    write(
        tmp_path / "ultimatum/lm_responses/low_high_percentage_0.3.pkl",
        [(f"Examples $1 $9\n{p}", a) for p, a in zip(prompts, answers, strict=True)],
    )
    found = {v.name: v for v in recorded(tmp_path)}
    assert found["stag, welfare"].right == (True,) * 4
    assert found["chicken, pareto"].right == (True, False, False, False)
    assert found["Ultimatum, low_high_percentage_0.3"].right == (True, False)
    assert "| chicken, pareto | 4 | 0.25" in markdown(list(found.values()))


def test_an_answer_without_an_option_is_unread(tmp_path):
    assert options_named("It depends.") is None
    write(tmp_path / "matrix/zs_lm_responses/regular/welfare_stag.pkl", [("prompt", "It depends.")])
    (found,) = recorded(tmp_path)
    assert (found.unread, any(found.right)) == (1, False)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


@pytest.mark.parametrize("value", [[("prompt", Bomb())], [("prompt", 3)], [("a", "b", "c")], 5])
def test_a_file_of_another_kind_is_refused_and_runs_nothing(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "matrix/zs_lm_responses/regular/welfare_stag.pkl", value)
    with pytest.raises(UsageError, match="holds no prompts"):
        recorded(tmp_path)
    assert not (tmp_path / "pwned").exists()


def test_a_folder_of_something_else(tmp_path):
    with pytest.raises(UsageError, match="not a clone"):
        recorded(tmp_path)
