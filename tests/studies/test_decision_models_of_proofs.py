"""A decision model guides proofs."""

from tests.roles.test_decision_models import runs_with_a_decision_model

OPTIONS = (
    "--env hunch/Proof-v0 --env.whole true --env.theorems 5 --guide lm --budget 10 "
    "--formaliser scripted:formaliser"
)


def test_a_run_with_a_decision_model(tmp_path, monkeypatch):
    runs_with_a_decision_model("alpha-proof", OPTIONS, tmp_path, monkeypatch)
