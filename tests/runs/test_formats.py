"""Folders of other versions: reported, not continued; and checkpoints that belong to another run."""

import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import hunch
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.envs import Outcome, TextEnv
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import DQNConfig, DQNPriorConfig
from hunch.methods.tune.grpo import GRPOConfig
from hunch.roles.planner.skills import Trained as Skills
from hunch.runs.checkpoints import (
    CHECKPOINT,
    contents,
    read_checkpoint,
    require_identity,
    write_checkpoint,
)
from hunch.runs.earlier import current_identity
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.folder import FORMAT
from hunch.runs.loading import load_agent, load_trained
from hunch.runs.stored import finished, read_record, read_run

LAKE = "hunch/FrozenLake-v0"
EARLIER = Path(__file__).parent / "earlier"
"""Folders that version 0.1.0 wrote before there were formats: a stopped run, and a complete one."""


@pytest.fixture
def earlier(tmp_path):
    return Path(shutil.copytree(EARLIER, tmp_path / "earlier"))


def test_a_new_folder_has_a_format(tmp_path):
    hunch.train("q-learning", LAKE, 20, out=tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["format"] == FORMAT


def test_a_stopped_run_of_before_is_refused_in_one_sentence(earlier, hunch_command):
    before = {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="an earlier version of Hunch") as refused:
        hunch.train("q-learning", LAKE, 400, out=earlier / "stopped")
    assert "continue it with that version, or choose another --out" in str(refused.value)
    line = ("run", "q-learning", "--env", LAKE, "--steps", "400", "--out", str(earlier / "stopped"))
    code, _, errors = hunch_command(*line)
    assert code == 2
    assert errors.count("\n") == 1
    assert before == {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}


def test_a_complete_run_of_before_is_read_but_not_extended(earlier):
    folder = earlier / "complete"
    settings = read_run(folder)
    assert execute(settings, folder).episodes == finished(folder).episodes
    with pytest.raises(UsageError, match="can report but not continue"):
        hunch.train("q-learning", LAKE, 200, evaluation=hunch.Evaluation(every=60, episodes=2), out=folder)


def test_a_run_of_before_is_reported(earlier, hunch_command):
    code, output, errors = hunch_command(
        "report", str(earlier / "complete"), "--out", str(earlier / "r.html")
    )
    assert code == 0, errors
    assert "1 runs" in output
    with pytest.raises(UsageError, match="another version of Hunch, or of the agent, wrote it"):
        evaluate_run(Trial(run=earlier / "complete", episodes=2))  # the learner has changed since


def test_a_folder_of_a_later_version_is_refused(tmp_path):
    hunch.train("q-learning", LAKE, 20, out=tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["checksum"]
    (tmp_path / "config.json").write_text(json.dumps(config | {"format": FORMAT + 1}))
    with pytest.raises(HunchError, match="of a later version of Hunch"):
        read_record(tmp_path)
    with pytest.raises(UsageError, match="of a later version of Hunch"):
        hunch.train("q-learning", LAKE, 40, out=tmp_path)


def test_a_folder_with_an_option_of_before_is_read_and_continued(tmp_path):
    """``max_norm`` of the Q-learners was ``clip``: the run in the folder is the same one."""
    options = {"encoder": "bag-of-words", "hidden": 8, "warmup": 4, "batch_size": 4, "max_norm": 0.5}
    whole = hunch.train("dqn", LAKE, 60, out=tmp_path / "whole", **options)
    folder = tmp_path / "before"
    hunch.train("dqn", LAKE, 30, out=folder, **options)

    config = json.loads((folder / "config.json").read_text())
    del config["checksum"]
    state = read_checkpoint(folder)
    identity = state["identity"]
    for settings in config["run"]["options"], identity["run"]["options"], identity["settings"]:
        settings["clip"] = settings.pop("max_norm")
    (folder / "config.json").write_text(json.dumps(config))
    write_checkpoint(folder / CHECKPOINT, state)

    assert read_run(folder).options.max_norm == 0.5
    assert hunch.read_config(folder)["max_norm"] == 0.5
    assert hunch.load(folder).agent.config.max_norm == 0.5
    assert evaluate_run(Trial(run=folder, episodes=1)).episodes
    assert execute(read_run(folder), folder).episodes == finished(folder).episodes
    assert hunch.train("dqn", LAKE, 60, out=folder, **options).episodes == whole.episodes
    assert json.loads((folder / "config.json").read_text())["run"]["options"]["max_norm"] == 0.5
    with pytest.raises(UsageError, match=r"max_norm: 0\.5 there, 0\.1 asked"):
        hunch.train("dqn", LAKE, 60, out=folder, **{**options, "max_norm": 0.1})


def test_an_option_of_before_is_refused_with_the_new_one():
    for refused in (
        lambda: hunch.train("dqn", LAKE, 10, clip=1.0),
        lambda: DQNConfig(clip=1.0),
        lambda: DQN(clip=1.0),
    ):
        with pytest.raises(UsageError, match="clip is now max_norm"):
            refused()


OTHERS = {
    "seed": ("q-learning", LAKE, 1, {}),
    "env": ("q-learning", "hunch/CliffWalking-v0", 0, {}),
    "options": ("q-learning", LAKE, 0, {"gamma": 0.5}),
    "method": ("zero-shot", LAKE, 0, {"lm": "uniform"}),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rollout", value) for value in ("x", [1], {})),
        *(("updates", value) for value in ("many", None)),
        *(("models", value) for value in ([1], "x")),
        *(("offsets", value) for value in ([1], {"metrics.jsonl": "x"})),
        ("pending", 3),
        ("seconds", "x"),
        ("agent", [1]),
    ],
)
def test_a_whole_checkpoint_of_wrong_types_is_a_sentence(name, value, tmp_path):
    """The checksum fits, as another program may write it."""
    hunch.train("q-learning", LAKE, 20, out=tmp_path)
    file = tmp_path / "checkpoint" / "state.pt"
    state = read_checkpoint(tmp_path)
    write_checkpoint(file, {**state, name: value})
    with pytest.raises(UsageError, match="cannot be loaded: another version"):
        hunch.train("q-learning", LAKE, 40, out=tmp_path)
    write_checkpoint(file, {entry: value for entry, value in state.items() if entry != name})
    with pytest.raises(UsageError, match="cannot be loaded: another version"):
        hunch.train("q-learning", LAKE, 40, out=tmp_path)


@pytest.mark.parametrize("what", OTHERS)
def test_the_checkpoint_of_another_run_is_refused_everywhere(what, tmp_path):
    """By resuming, evaluating, loading and as skills, with the same check."""
    hunch.train("q-learning", LAKE, 20, out=tmp_path / "own")
    method, env, seed, options = OTHERS[what]
    hunch.train(method, env, 20, seed=seed, out=tmp_path / "other", **options)
    shutil.copy(tmp_path / "other" / CHECKPOINT, tmp_path / "own" / CHECKPOINT)
    name = {"options": "options.gamma"}.get(what, what)
    calls = [
        lambda: hunch.train("q-learning", LAKE, 40, out=tmp_path / "own"),
        lambda: evaluate_run(Trial(run=tmp_path / "own", episodes=1)),
        lambda: hunch.load(tmp_path / "own"),
        lambda: load_trained(tmp_path / "own"),
        lambda: load_agent(tmp_path / "own"),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="holds the checkpoint of another run") as refused:
            call()
        assert f"{name}:" in str(refused.value)


class Bell(TextEnv):
    """Ring a bell, whose name stands in a file."""

    def __init__(self, file: str = "", max_steps: int = 2) -> None:
        super().__init__(max_steps)
        self.name = Path(file).read_text()

    def _begin(self, options):
        self.task = "ring the bell"
        return Outcome(f"Here is the {self.name}.", ("ring", "wait"))

    def _move(self, action):
        return Outcome("It rang.", ("ring", "wait"), terminated=True, success=action == "ring")


def test_first_states_that_changed_are_named_in_words(tmp_path):
    file = tmp_path / "bell.txt"
    file.write_text("small bell")
    config = RunConfig(method="q-learning", env=f"{__name__}:Bell", env_options={"file": str(file)}, steps=20)
    execute(config, tmp_path / "run")
    file.write_text("large bell")
    with pytest.raises(UsageError, match="the environment begins with other states") as refused:
        execute(replace(config, steps=40), tmp_path / "run")
    assert "asked" not in str(refused.value)


def test_a_saved_agent_of_another_run_is_refused(tmp_path):
    for seed in (0, 1):
        hunch.train("q-learning", LAKE, 20, seed=seed, out=tmp_path / f"run-{seed}")
        hunch.load(tmp_path / f"run-{seed}").save(tmp_path / f"saved-{seed}")
    hunch.load(tmp_path / "saved-0")
    shutil.copy(tmp_path / "saved-1" / CHECKPOINT, tmp_path / "saved-0" / CHECKPOINT)
    with pytest.raises(UsageError, match="holds the checkpoint of another run"):
        hunch.load(tmp_path / "saved-0")


def test_a_checkpoint_of_before_in_a_new_folder_is_refused(earlier, tmp_path):
    hunch.train(
        "q-learning", LAKE, 120, evaluation=hunch.Evaluation(every=60, episodes=2), out=tmp_path / "own"
    )
    shutil.copy(earlier / "complete" / CHECKPOINT, tmp_path / "own" / CHECKPOINT)
    with pytest.raises(UsageError, match="holds the checkpoint of another run"):
        hunch.load(tmp_path / "own")


def test_an_extended_run_is_still_itself(tmp_path):
    hunch.train("q-learning", LAKE, 20, out=tmp_path)
    hunch.train("q-learning", LAKE, 40, out=tmp_path)
    assert hunch.load(tmp_path).agent is not None
    assert isinstance(load_trained(tmp_path), Skills)


def test_a_run_that_goes_on_with_other_contents_of_a_file_says_so(tmp_path, recwarn):
    """Rewards change in the middle."""
    pytest.importorskip("transformers")
    file = tmp_path / "questions.jsonl"
    file.write_text('{"prompt": "the mug is", "answer": "red"}\n')
    options = GRPOConfig(lm="scratch?width=8&layers=1&vocabulary=32", episodes=4, group=2, max_tokens=2)
    config = RunConfig(
        method="grpo", env="hunch/Prompts-v0", env_options={"file": str(file)}, options=options
    )

    def learn(steps):
        execute(replace(config, steps=steps), tmp_path / "run")

    learn(4)
    file.write_text('{"prompt": "the mug is", "answer": "blue"}\n')
    with pytest.warns(HunchWarning, match=r"another content of the file that env\.file names"):
        learn(8)
    recwarn.clear()
    learn(12)  # with what it was told of

    # A checkpoint of an earlier version does not say what was in the file.
    path = tmp_path / "run" / CHECKPOINT
    state = read_checkpoint(tmp_path / "run")
    del state["identity"]["contents"]
    write_checkpoint(path, state)
    file.write_text('{"prompt": "the mug is", "answer": "green"}\n')
    learn(16)
    assert not [str(one.message) for one in recwarn if "another content" in str(one.message)]


def test_files_that_a_run_fills_and_files_that_appear_do_not_stop_it(tmp_path, monkeypatch):
    """Finished trials are stored while a run goes on; a value of a setting may be the name of a file."""
    monkeypatch.chdir(tmp_path)
    trials = tmp_path / "trials.sqlite"
    config = RunConfig(
        method="funsearch",
        env="hunch/Heuristic-BinPacking-v0",
        env_options={"items": 10, "instances": 2, "kind": "uniform", "trials": str(trials)},
        lm="scripted:mutator",
    )
    digests = []
    for steps in (2, 4, 6):
        execute(replace(config, steps=steps), tmp_path / "run")
        digests.append(hashlib.sha256(trials.read_bytes()).hexdigest())
        (tmp_path / "funsearch").write_text(f"a log of {steps} steps")
    assert len(set(digests)) == 3


def test_only_files_that_were_there_are_compared(tmp_path):
    def identity(*options):
        return {"contents": contents({"env_options": {name: str(tmp_path / name) for name in options}})}

    (tmp_path / "first").write_text("one")
    state = {"identity": identity("first", "later")}
    (tmp_path / "later").write_text("two")
    require_identity(tmp_path, state, identity("first", "later"))
    (tmp_path / "first").unlink()  # whoever needs it says so
    require_identity(tmp_path, state, identity("first", "later"))
    (tmp_path / "first").write_text("three")
    with pytest.warns(HunchWarning, match=r"the file that env\.first names"):
        require_identity(tmp_path, state, identity("first", "later"))


def test_a_setting_that_did_not_exist_yet_has_its_default_in_a_checkpoint_of_before():
    config = asdict(DQNPriorConfig())
    run = {"method": "dqn-prior", "options": {}}
    before = {**config, "prior": {name: value for name, value in config["prior"].items() if name != "blank"}}
    stored = {"run": run, "settings": before}
    assert current_identity(stored, config)["settings"] == config
    assert current_identity(stored, {"k": config["k"]})["settings"] == before, "an agent with a part of them"
