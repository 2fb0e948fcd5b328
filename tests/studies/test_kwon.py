"""The importer of recorded verdicts, on files of the same form that are made here."""

import os
import pickle

import pytest

from hunch.core import UsageError
from hunch_studies.kwon import copied_by_hand, markdown, recorded
from hunch_studies.kwon_reader import options_named


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


READ = {
    "Option B is not Pareto-optimal.": "",
    "Option B is not Pareto-optimal because A is better for both.": "",
    "B is dominated by A, so only A is Pareto-optimal.": "A",
    "Options A and D are not dominated by any other option.": "AD",
    "Neither B nor C is Pareto-optimal. A and D are.": "AD",
    "None of the options result in equality of rewards.": "",
    "Both A and D, but not B, are Rawlsian fair.": "AD",
    "A, B and C are not Pareto-optimal.": "",
    "A is Pareto-optimal, B is not, C is not, and D is Pareto-optimal.": "AD",
    "Options A and D result in the greatest total welfare, while B and C do not.": "AD",
    "At first sight B is fair. But B is not fair, because P1 gets 0. The fair outcome is A.": "A",
    "All options except D are Pareto-optimal.": "ABC",
    "The only option that is not Pareto-optimal is D.": "ABC",
    "Option A could be fair, but option D is fair.": "D",
    "Option A might be fair.": None,
    "A Pareto-optimal outcome is one that nobody can improve. C and D are equal.": "CD",
    "A. P1 gets 2 and P2 gets 1. This is not equal.\nB. Both get 0. This is equal.\nC. Not equal.": "B",
    "A: there is no other outcome that is better for both. Therefore, A is Pareto-optimal.\n"
    "B: A is better for both. Therefore, B is not Pareto-optimal.\nSo C is Pareto-optimal.": "AC",
    "The total welfare of A is 3, that of B is 0. Therefore, the greatest total welfare is in A.": "A",
    "A and D.": "AD",
    "All but B are Pareto-optimal.": "ACD",
    "Every option but D is Pareto-optimal.": "ABC",
    "Apart from C, every outcome is Pareto-optimal.": "ABD",
    "Nothing but A is Pareto-optimal.": "A",
    "None of them but B is Pareto-optimal.": "B",
    "No option other than D has the greatest total welfare.": "D",
    "There is no Pareto-optimal option besides A.": "A",
    "There are no fair options.": "",
    "The answer is none of the options.": "",
    "There is no option better than B for both, so B is Pareto-optimal.": "B",
    "Option C fails to be Pareto-optimal.": "",
    "Option B is hardly fair.": "",
    "Both B and D are far from equal.": "",
    "It is false that B is fair.": "",
    "B is not only fair but also equal.": "B",
    "Not A, but B is the Pareto-optimal option.": "B",
    "The fair outcome is neither A nor B, but D.": "D",
}


@pytest.mark.parametrize("answer", READ)
def test_the_last_verdict_on_each_option_counts(answer):
    named = options_named(answer)
    assert (None if named is None else "".join("ABCD"[i] for i in sorted(named))) == READ[answer]


def test_the_reader_is_compared_with_what_the_authors_copied_by_hand(tmp_path):
    for game, answer in {"stag": "A is fair.", "battle": "A and D are fair."}.items():
        write(tmp_path / f"matrix/zs_lm_responses/regular/rawlsian_{game}.pkl", [("prompt", answer)])
    code = "class Matrix:\n    def __init__(self):\n        gpt3_rewards = {}\n"
    labels = {("stag", "rawlsian"): [0, 2], ("battle", "rawlsian"): [3, 0]}
    (tmp_path / "matrix/matrix.py").write_text(code.format(labels) + "raise SystemExit\n")
    assert copied_by_hand(tmp_path)["battle", "rawlsian"] == {0, 3}
    assert "1 of 2 answers are read as the authors read them" in markdown(recorded(tmp_path))


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
