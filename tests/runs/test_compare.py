"""Runs side by side: the control, paired seeds, and a comparison that is killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.kills import children

from hunch import lm, methods
from hunch.cli.arms import JobBars
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.lm.budget import Budget
from hunch.methods.prior.dqn_prior import DQNConfig, DQNPriorConfig
from hunch.report.gather import collect
from hunch.roles import PriorConfig
from hunch.runs.callbacks import Callback, Watch
from hunch.runs.compare import PRELOADED, Arm, arms, attempt, compare, jobs, missing, outcome
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines

LAKE = "hunch/FrozenLake-v0"
COMMAND = [
    *(sys.executable, "-m", "hunch", "compare", "zero-shot", "--env", LAKE, "--lm", "scripted:frozenlake"),
    *("--steps", "3000", "--seeds", "2", "--out"),
]


FROM_STDIN = """
import sys
from multiprocessing import forkserver
from hunch.cli.main import main
main(sys.argv[1:])
print("server", forkserver._forkserver._forkserver_pid)
"""


def test_a_program_from_standard_input_compares_and_a_finished_comparison_starts_nothing(tmp_path):
    words = f"compare zero-shot --env {LAKE} --lm uniform --steps 20 --seeds 1 --workers 1 --out {tmp_path}"
    for begun in (True, False):
        command = [sys.executable, "-", *words.split()]
        done = subprocess.run(command, input=FROM_STDIN, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (done.stdout.split()[-1] == "None") is not begun


def test_the_control_differs_in_the_model_alone():
    config = RunConfig(method="dqn-prior", env=LAKE, options=DQNPriorConfig(k=3))
    informed, *controls = arms([config])
    for control in controls:
        assert {**vars(control.config), "lm": ""} == vars(informed.config)
    assert [arm.model for arm in (informed, *controls)] == ["minilm", "uniform", "words"]
    assert [arm.label for arm in controls] == ["dqn-prior, random k", "dqn-prior, words"]
    assert arms([config], control=False)[0].config == config


def test_the_lexical_control_stands_beside_models_that_are_asked():
    """A rule that writes its answers, or a control itself, has none; a similarity that is asked for has."""
    mapped = RunConfig(method="dqn-prior", env=LAKE, lm="scripted:frozenlake", options=DQNPriorConfig())
    novelty = DQNPriorConfig(prior=PriorConfig(way="novelty"))
    own = [replace(mapped, lm="words"), replace(mapped, lm="bag-of-words")]
    for config in (mapped, replace(mapped, lm="minilm", options=novelty), *own):
        assert [arm.model for arm in arms([config])] == [config.lm, "uniform"]
    asked = replace(mapped, lm="hf:there", options=DQNPriorConfig(prior=PriorConfig(way="similarity")))
    assert arms([asked])[-1].model == "words"


def test_words_stand_beside_a_model_that_writes_in_their_own_way():
    prior = PriorConfig(way="structured", samples=8, temperature=0.5, recent=0)
    config = RunConfig(method="dqn-prior", env=LAKE, lm="smollm2", options=DQNPriorConfig(k=3, prior=prior))
    words = arms([config])[-1]
    assert (words.label, words.model) == ("dqn-prior, words", "words")
    compared = PriorConfig(way="similarity", recent=0)
    assert words.config.options == DQNPriorConfig(k=3, prior=compared)


def test_the_blank_prompt_is_a_control_of_each_model_on_request():
    config = RunConfig(method="dqn-prior", env=LAKE, lm="smollm2", options=DQNPriorConfig())
    dqn = RunConfig(method="dqn", env=LAKE, options=DQNConfig())
    listed = arms([dqn, config, replace(config, lm="minilm")], control=False, blank=True)
    assert [arm.label for arm in listed] == [
        *("dqn", "dqn-prior", "dqn-prior, minilm"),
        *("dqn-prior, blank prompt", "dqn-prior, minilm, blank prompt"),
    ]
    for usual, blank in zip(listed[1:3], listed[3:], strict=True):
        assert not usual.config.options.prior.blank
        assert blank.config == replace(usual.config, options=DQNPriorConfig(prior=PriorConfig(blank=True)))
    planner = methods.find("saycan").config_class()
    saycan = RunConfig(method="saycan", env=LAKE, lm="minilm", options=planner)
    assert arms([saycan], control=False, blank=True)[1].config.options == replace(planner, blank=True)
    rule = replace(config, lm="scripted:frozenlake")
    novelty = replace(config, options=DQNPriorConfig(prior=PriorConfig(way="novelty")))
    for unread in (
        dqn,
        rule,
        novelty,
        listed[3].config,
        replace(saycan, options=replace(planner, blank=True)),
    ):
        with pytest.raises(UsageError, match="leave --blank-control out"):
            arms([unread], blank=True)


def test_runs_begin_seed_by_seed_and_the_longest_first(tmp_path):
    """They end at about the same time then."""
    config = RunConfig(method="dqn-prior", env=LAKE, lm="minilm", options=DQNPriorConfig())
    dqn, pocket = replace(config, method="dqn", lm=""), replace(config, lm="pocket?corpus=households")
    todo = jobs(arms([dqn, config, pocket]), 2, tmp_path)
    order = missing(todo)
    assert sorted(order, key=todo.index) == todo
    assert [job.seed for job in order] == [job.seed for job in todo]
    assert [job.arm.model for job in order if job.seed] == [pocket.lm, "none", "minilm", "uniform", "words"]


def test_what_models_import_exists():
    """A module that is not there would be left out in silence."""
    found = [module for backend in lm.kinds().values() for module in backend.imports]
    assert found
    assert all(map(find_spec, [*found, *PRELOADED]))


def test_a_baseline_and_an_uninformed_method_need_no_control():
    dqn = RunConfig(method="dqn", env=LAKE, options=DQNConfig())
    uninformed = RunConfig(method="dqn-prior", env=LAKE, lm="uniform", options=DQNPriorConfig())
    assert len(arms([dqn, uninformed])) == 2


def test_a_method_is_compared_once():
    config = RunConfig(method="dqn", env=LAKE, options=DQNConfig())
    with pytest.raises(UsageError, match="once"):
        arms([config, config])


def test_several_models_share_a_baseline_and_its_controls():
    dqn = RunConfig(method="dqn", env=LAKE, options=DQNConfig())
    own = [replace(dqn, method="dqn-prior", lm=lm) for lm in ("minilm", "pocket?corpus=households")]
    listed = arms([dqn, *own])
    assert [arm.label for arm in listed] == [
        "dqn",
        "dqn-prior",
        "dqn-prior, pocket?corpus=households",
        "dqn-prior, random k",
        "dqn-prior, words",
    ]
    assert len({arm.folder for arm in listed}) == 5
    assert [arm.label for arm in arms([own[0], replace(own[0], lm="words")])] == [
        *("dqn-prior", "dqn-prior, words", "dqn-prior, random k"),
    ]
    with pytest.raises(UsageError, match="once"):
        arms([own[0], own[0]])


def test_seeds_are_paired(tmp_path):
    listed = arms([RunConfig(method="dqn-prior", env=LAKE, options=DQNPriorConfig())])
    todo = jobs(listed, 3, tmp_path)
    assert [job.seed for job in todo] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len({job.folder for job in todo}) == 9


def test_the_bars_say_what_each_arm_is_doing(tmp_path):
    todo = jobs(arms([RunConfig(method="dqn-prior", env=LAKE, options=DQNPriorConfig())]), 1, tmp_path)
    bars = JobBars(todo)
    bars.follow({todo[0]: {"step": 7, "success": 0.5, "usage": {"calls": 3}}, todo[1]: {}})
    notes = [task.fields["note"] for task in bars.progress.tasks if task.visible]
    assert notes == ["success 0.50, 3 calls", "loading models, first steps", "waiting for a processor"]


def test_games_can_vary_with_the_seed(tmp_path):
    options = {"games": 8, "pool_seed": "seed"}
    pick = RunConfig(method="dqn", env="hunch/Household-Pick-v0", env_options=options)
    todo = jobs(arms([pick]), 3, tmp_path)
    assert [(job.config.seed, job.config.env_options) for job in todo] == [
        (seed, {"games": 8, "pool_seed": seed}) for seed in range(3)
    ]


def episodes(out: Path) -> dict[str, list]:
    return {str(path.relative_to(out)): read_lines(path) for path in sorted(out.rglob("episodes.jsonl"))}


def lives(pid: int) -> bool:
    """Whether a process is there and has not ended (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The comparison that is left alone."""
    out = tmp_path_factory.mktemp("whole")
    main([*COMMAND[3:], str(out)])
    return out


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_a_killed_comparison_goes_on(whole, tmp_path, blow):
    """Nothing is doubled, nothing is missing, and no worker outlives the comparison."""
    killed = tmp_path / "killed"
    process = subprocess.Popen([*COMMAND, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not any(len(lines) > 5 for lines in episodes(killed).values()):
        assert process.poll() is None
        time.sleep(0.05)
    workers = [pid for child in children(process.pid) for pid in children(child)]
    os.kill(process.pid, blow)
    assert process.wait() == (130 if blow != signal.SIGKILL else -signal.SIGKILL)
    while any(map(lives, workers)):
        time.sleep(0.05)
    main([*COMMAND[3:], str(killed)])
    assert episodes(killed) == episodes(whole)


def test_more_steps_extend_a_comparison(tmp_path):
    """A finished shorter run is no result of the longer one that is asked for."""
    played = {}
    for folder, lengths in (("extended", (300, 900)), ("whole", (900,))):
        for steps in lengths:
            config = RunConfig(method="zero-shot", env=LAKE, lm="scripted:frozenlake?error=0.5", steps=steps)
            (found,) = compare(jobs(arms([config], control=False), 1, tmp_path / folder))
            assert found.result is not None
            assert found.result.steps >= steps
        played[folder] = found.result.episodes
    assert played["extended"] == played["whole"]


def test_a_killed_run_is_not_one_that_an_earlier_budget_stopped(tmp_path):
    config = RunConfig(method="zero-shot", env="hunch/FrozenLake-v0", lm="scripted:frozenlake", steps=60)
    (job,) = jobs([Arm("zero-shot", config)], 1, tmp_path)
    execute(job.config, job.folder, budget=Budget(calls=1))
    assert outcome(job).stopped
    killed = outcome(job, exitcode=-9)
    assert (killed.stopped, killed.reason) == (False, "its process was killed by SIGKILL")


class Failing(Callback):
    """Fails after ten steps."""

    def on_step(self, run, transitions):
        if run.steps >= 10:
            raise RuntimeError("the disk was taken away")


def test_a_run_that_failed_and_went_on_alone_has_not_failed(tmp_path):
    config = RunConfig(method="q-learning", env="hunch/Chain-v0", steps=20)
    (job,) = jobs([Arm("q-learning", config)], 1, tmp_path)
    attempt(job, job.folder, job.folder, watch=Watch(callbacks=[Failing()]))
    assert "the disk was taken away" in outcome(job).reason
    execute(job.config, job.folder)  # as hunch run does
    assert outcome(job).result is not None
    assert [run.name for c in collect([tmp_path])[0] for runs in c.arms.values() for run in runs] == [
        "seed-0"
    ]


def test_labels_that_would_share_a_folder_are_refused(tmp_path):
    config = RunConfig(method="dqn", env="hunch/FrozenLake-v0", steps=8)
    with pytest.raises(UsageError, match="would share the folder lr-0-5"):
        jobs([Arm("lr 0.5", config), Arm("lr 0-5", config)], 1, tmp_path)
