"""The recipe for Optuna in the guide runs, prunes, and leaves folders of runs."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "tuning.md"


@pytest.mark.slow
def test_the_recipe_searches_and_prunes(tmp_path, monkeypatch):
    optuna = pytest.importorskip("optuna")
    (code,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "tune.py").write_text(code.replace("steps=2_000", "steps=400").replace("=500", "=100"))
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("tune", tmp_path / "tune.py")
    tune = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tune)
    study = tune.search(trials=8)
    assert set(study.best_params) == {"learning_rate", "gamma"}
    assert 0 <= study.best_value <= 1
    for trial in study.trials:
        summary = json.loads((tmp_path / "runs" / "tune" / str(trial.number) / "summary.json").read_text())
        assert trial.intermediate_values
        assert (summary["steps"] < 400) <= (trial.state is optuna.trial.TrialState.PRUNED)

    class Always(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return True

    pruned = optuna.create_study(direction="maximize", pruner=Always())
    monkeypatch.chdir(tmp_path / "runs")
    pruned.optimize(tune.objective, n_trials=1)
    assert pruned.trials[0].state is optuna.trial.TrialState.PRUNED
    assert (
        json.loads((tmp_path / "runs" / "runs" / "tune" / "0" / "summary.json").read_text())["steps"] == 100
    )
