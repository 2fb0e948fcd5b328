"""One path from settings to a result: the command and ``hunch.train`` leave the same folder."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hunch
from hunch import methods
from hunch.core import HunchError, UsageError
from hunch.methods.settings import configure
from hunch.rl.comparison import difference
from hunch.runs.checkpoints import CHECKPOINT, read_checkpoint, write_checkpoint
from hunch.runs.config import RunConfig
from hunch.runs.differences import decisive
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import execute
from hunch.runs.files import read_json, write_json
from hunch.runs.folder import FORMAT, held
from hunch.runs.loading import load_agent
from hunch.runs.resolve import resolve
from hunch.runs.stored import finished

LAKE = "hunch/FrozenLake-v0"
SMALL = {"encoder": "bag-of-words", "hidden": 16}


def settings(**changes):
    method = methods.find("dqn")
    options = configure(method.agent_class, method.config_class(), SMALL)
    return RunConfig(
        method="dqn", options=options, env=LAKE, steps=60, eval_every=30, eval_episodes=2, **changes
    )


def test_settings_and_python_give_the_same_folder(tmp_path):
    execute(settings(), tmp_path / "settings")
    hunch.train(
        "dqn", LAKE, 60, evaluation=hunch.Evaluation(every=30, episodes=2), out=tmp_path / "python", **SMALL
    )
    for name in ("config.json", "episodes.jsonl"):
        one, other = ((tmp_path / who / name).read_text() for who in ("settings", "python"))
        assert one == other
    one, other = (read_checkpoint(tmp_path / who) for who in ("settings", "python"))
    for part in ("agent", "rollout", "identity", "pending"):
        assert difference(one[part], other[part]) is None


def test_as_many_processes_as_a_group_has_environments():
    options = methods.find("grpo").config_class(group=4, episodes=4)
    config = RunConfig(method="grpo", env="hunch/Prompts-v0", lm="scratch", options=options)
    assert resolve(replace(config, processes=4)).config.streams == 4
    with pytest.raises(UsageError, match="processes must be from 0 to the number of environments"):
        resolve(replace(config, processes=5))


def test_a_finished_run_is_read_and_not_made_again(tmp_path):
    first = execute(settings(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert execute(settings(), tmp_path).episodes == first.episodes
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_finished_run_without_its_checkpoint_keeps_its_results(tmp_path):
    execute(settings(), tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    assert execute(settings(), tmp_path).complete
    assert (
        hunch.train(
            "dqn", LAKE, 60, evaluation=hunch.Evaluation(every=30, episodes=2), out=tmp_path, **SMALL
        ).agent
        is None
    )
    for longer in (
        lambda: execute(replace(settings(), steps=90), tmp_path),
        lambda: hunch.train(
            "dqn", LAKE, 90, evaluation=hunch.Evaluation(every=30, episodes=2), out=tmp_path, **SMALL
        ),
    ):
        with pytest.raises(UsageError, match="checkpoint is gone"):
            longer()
    assert finished(tmp_path).steps == 60


def test_a_run_of_another_version_is_named_as_such(tmp_path):
    execute(settings(), tmp_path)
    config = read_json(tmp_path / "config.json")
    del config["run"]["threads"]
    write_json(tmp_path / "config.json", config)
    with pytest.raises(UsageError, match="another version of Hunch, without threads"):
        execute(settings(), tmp_path)


@pytest.mark.parametrize(
    ("there", "asked", "told"),
    [
        ({}, {"keep_every": 20}, "keep_every: null there, 20 asked"),
        ({"lifetime": 2}, {}, "lifetime: 2 there, 1 asked"),
        ({}, {"options": {"kl_aim": 2.0}}, "options.kl_aim: 0.0 there, 2.0 asked"),
        ({"options": {"listed": False}}, {}, "options.listed: false there, true asked"),
    ],
)
def test_a_setting_that_came_later_is_no_sign_of_another_version(there, asked, told, tmp_path):
    config_class = methods.find("grpo").config_class
    first, second = (
        RunConfig(
            method="grpo", env=LAKE, **{**changes, "options": config_class(**changes.get("options", {}))}
        )
        for changes in (there, asked)
    )
    write_json(tmp_path / "config.json", {"format": FORMAT, "run": first.settings()})
    write_json(tmp_path / "summary.json", {"steps": 60})
    with pytest.raises(UsageError, match=re.escape(f"holds another run ({told})")):
        held(tmp_path, second.settings())


def test_a_run_goes_on_with_other_passes_which_change_memory_alone(tmp_path):
    """So does the evaluation of a run that was stopped before the next checkpoint."""
    config_class = methods.find("ppo").config_class

    def asked(steps, **options):
        options = config_class(**{"horizon": 10, "hidden": 8, **options})
        return RunConfig(method="ppo", env=LAKE, options=options, steps=steps)

    execute(asked(20), tmp_path)
    execute(asked(40, micro=4), tmp_path)
    assert read_json(tmp_path / "config.json")["run"]["options"]["micro"] == 4
    assert held(tmp_path, asked(40).settings())["options"]["micro"] == 4
    record = read_json(tmp_path / "config.json")
    record["run"]["options"]["micro"] = 2  # as if the process had been killed before its first checkpoint
    write_json(tmp_path / "config.json", record)
    assert load_agent(tmp_path)[1].options.micro == 2
    with pytest.raises(UsageError, match=re.escape("(options.horizon: 10 there, 20 asked)")):
        held(
            tmp_path,
            RunConfig(
                method="ppo", env=LAKE, options=config_class(horizon=20, hidden=8), steps=40
            ).settings(),
        )


def test_passes_of_a_wrapped_agent_may_change_and_options_of_an_environment_of_that_name_may_not():
    run = {"method": "rlhf", "env_options": {"micro": 1}, "options": {"micro": 64, "kl": 0.2}}
    identity = {"settings": {"agent": {"micro": 64, "kl": 0.2}, "source": {}}, "run": run}
    assert decisive(identity, run) == {
        "settings": {"agent": {"kl": 0.2}, "source": {}},
        "run": {"method": "rlhf", "env_options": {"micro": 1}, "options": {"kl": 0.2}},
    }
    unknown = {**run, "method": "mine"}
    assert decisive(unknown, unknown) == unknown


def test_an_agent_of_another_version_is_named_as_such(tmp_path):
    execute(settings(), tmp_path)
    state = read_checkpoint(tmp_path)
    write_checkpoint(tmp_path / CHECKPOINT, {**state, "agent": {"weights": 1}})
    with pytest.raises(HunchError, match="another version of Hunch"):
        load_agent(tmp_path)
    with pytest.raises(HunchError, match="another version of Hunch"):
        execute(replace(settings(), steps=90), tmp_path)


def test_evaluations_of_a_run_keep_its_task_and_lifetime(tmp_path):
    """With a fixed task, the commands of an evaluation come from one task only, as in the training."""
    env = "hunch/Household-Pick-v0"
    config = RunConfig(method="zero-shot", lm="uniform", env=env, steps=20, task_seed=7)
    execute(config, tmp_path)
    seen = []

    class Noted(hunch.core.Player):
        def act(self, states):
            seen.extend(state.task for state in states)
            return [state.options[0] for state in states]

        def observe(self, transitions):
            pass

    agent_class = type(load_agent(tmp_path)[0])
    original, agent_class.player = agent_class.player, lambda self, seed: Noted()
    try:
        evaluate_run(Trial(run=tmp_path, episodes=6))
    finally:
        agent_class.player = original
    assert len(set(seen)) == 1


def test_an_environment_of_ones_own_is_found_again(tmp_path, monkeypatch):
    """By the installed command in its folder; and from a run made in Python, also of an object."""
    (tmp_path / "my_bell.py").write_text(BELL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    hunch.train("q-learning", hunch.make("my_bell:Bell-v0"), 20, out="python")
    assert json.loads(Path("python/config.json").read_text())["run"]["env"] == "my_bell:Bell-v0"
    monkeypatch.undo()
    command = [str(Path(sys.executable).with_name("hunch"))]
    told = "run q-learning --env my_bell:Bell-v0 --steps 20 --out command"
    for words in (told, "evaluate python --episodes 2 --module my_bell"):
        done = subprocess.run([*command, *words.split()], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


BELL = """
import gymnasium


class Bell(gymnasium.Env):
    offers = ()
    rung = True

    def told(self):
        return {"actions": ("ring", "wait"), "success": self.rung, "task": "ring the bell"}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rung = False
        return "A bell.", self.told()

    def step(self, action):
        assert not self.rung
        self.rung = action in ("ring", 0)
        return "A bell.", float(self.rung), self.rung, False, self.told()


gymnasium.register("Bell-v0", Bell)
"""
