"""Bad input is refused in one sentence, before a model is loaded, and leaves nothing behind."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from hunch.extras import install
from hunch.lm import registry

RUN = ("run", "dqn-prior", "--env", "hunch/FrozenLake-v0", "--lm", "uniform")
COMPARE = ("compare", "dqn-prior", "--env", "hunch/FrozenLake-v0", "--lm", "uniform")
COLLECT = ("data", "collect", "--env", "hunch/FrozenLake-v0", "--out", "d")
SMALL = ("--steps", "40", "--hidden", "8", "--encoder", "bag-of-words", "--k", "2")


BAD = [
    ((*RUN, "--gamma", "nan"), "gamma must be a finite number"),
    ((*RUN, "--gamma", "1.5"), "gamma must be from 0 to 1"),
    ((*RUN, "--alpha", "inf"), "alpha must be a finite number"),
    ((*RUN, "--warmup", "-1"), "warmup must be at least 0"),
    ((*RUN, "--epsilon", "5", "-2", "10"), "epsilon[0] must be from 0 to 1, not 5"),
    ((*RUN, "--prior.temperature", "nan"), "prior.temperature must be a finite number"),
    ((*RUN, "--prior.temperature", "0"), "prior.temperature must be above 0"),
    ((*RUN, "--prior.kind", "mapped"), "--prior.kind is now --prior.way"),
    ((*RUN, "--prior.no-listed"), "--prior.no-listed is now --prior.way"),
    ((*RUN, "--clip", "1"), "--clip is now --max-norm"),
    ((*RUN, "--eval-every", "-1"), "eval_every must be at least 0"),
    ((*RUN, "--episodes-per-player", "0"), "episodes_per_player must be at least 1"),
    ((*RUN, "--steps", "-5"), "steps must be at least 1"),
    ((*RUN, "--seed", "-1"), "seed must be from 0 to 4294967295"),
    ((*RUN, "--seed", "9" * 30), "seed must be from 0 to 4294967295"),
    ((*RUN, "--task-seed", "-1"), "task_seed must be from 0 to 4294967295"),
    ((*RUN, "--budget.calls", "-1"), "budget of calls must be at least 0, not -1."),
    ((*RUN, "--out", ""), "--out is empty"),
    ((*RUN, "--out", "foreign"), "such as a.txt"),
    ((*RUN, "--out", "letter.txt/r"), "letter.txt"),
    (
        (*RUN[:-1], "minilm", "--prior.way", "text"),
        "a model that can generate as --lm; minilm cannot",
    ),
    ((*RUN[:-1], "minilm:3"), "should read 'minilm'"),
    ((*RUN[:-1], "org/model"), "did you mean 'hf:org/model'?"),
    ((*RUN, "--encoder", "uniform"), "needs a model that can embed as --encoder"),
    (("run", "dqn", "--env", "mine.py"), "write mine:NAME"),
    (("run", "dqn", "--env", "mine.py:lake"), "write mine:lake, a function or class in mine.py"),
    ((*RUN, "\u2013-steps", "10"), "begins with another dash than an option does: write --steps"),
    ((*RUN[:-1], "model.gguf"), "did you mean 'gguf:model.gguf'?"),
    ((*RUN[:-1], "kept"), "did you mean the folder, 'hf:kept'?"),
    ((*RUN[:-1], "gpt-4"), "A served model is named as in 'openai:gpt-4'"),
    (("compare", "dqn,ppo", "--env", "hunch/FrozenLake-v0"), "write dqn ppo, not 'dqn,ppo'"),
    (("report", "letter.txt"), "letter.txt is a file: name the folder of a run"),
    (("envs", "hunch/FrozenLake-v0", "--chek"), "There is no option --chek here"),
    (("run", "dqn", "--env", "hunch/FrozenLake-v0", "--steps", "1,000"), "a whole number, not '1,000'"),
    (("compare", "dqn", "--env", "hunch/FrozenLake-v0", "--seeds", "1-3"), "a whole number, not '1-3'"),
    (
        ("run", "dqn", "--env", "hunch/Household-Pick-v0", "--env.games", "four"),
        "option games of hunch",
    ),
    (("run", "dqn", "--env", "hunch/Household-Pick-v0", "--env.games", "-3"), "games"),
    (("run", "dqn", "--env", "CartPole-v1"), "use hunch/CartPole-v0, or wrap it in hunch.envs.TextWrapper"),
    (
        ("run", "dqn", "--env", "no_such_module:X-v0"),
        "needs the module no_such_module, which cannot be found",
    ),
    ((*COMPARE, "--workers", "0"), "workers must be at least 1"),
    ((*COMPARE, "--seeds", "0"), "seeds must be at least 1"),
    ((*COMPARE, "--out", "."), "not the current one"),
    ((*COMPARE, "--out", "run"), "run is the folder of a run"),
    ((*COMPARE, "--hidden", "0"), "hidden must be at least 1"),
    ((*COMPARE, "--budget.money", "-2"), "budget of money must be at least 0"),
    (("run", "dqn", "--env", "hunch/FrozenLake-v0", "--alhpa", "1"), "--alpha"),
    (("run", "dqn"), "--env"),
    ((*RUN, "--steps", "1e4"), "--steps takes a whole number, not '1e4'"),
    ((*RUN, "--proposals", "some"), "--proposals must be one of kept, visited, fresh, not 'some'"),
    ((*RUN, "--steps=x"), "--steps takes a whole number, not 'x'"),
    ((*RUN, "--joint", "yes"), "--joint takes true or false, or no value, not 'yes'"),
    ((*RUN, "--no-joint", "true"), "--no-joint takes no value, not 'true'"),
    ((*RUN, "--budget.calls", "x"), "--budget.calls takes None or a whole number, not 'x'"),
    ((*RUN, "--budget.call", "3"), "There is no option --budget.call; similar are --budget.calls"),
    (("compare", "dqn", *COMPARE[1:], "--dqn.hidden", "x"), "--dqn.hidden takes a whole number, not 'x'"),
    (("run", "dqn", "--env", "hunch/FrozenLake-v0", "--k", "3"), "There is no option --k"),
    (("run", "dqn", "--env"), "--env needs a value"),
    (("run", "dqn", "stray", "--env", "hunch/FrozenLake-v0"), "'stray' is one argument too many"),
    (("data", "import", "--env", "hunch/FrozenLake-v0", "--out", "d"), "The argument FILE is missing"),
    (("report", "--episodes", "x", "run"), "--episodes takes a whole number"),
    (("evaluate", "kept", "--episodes", "x"), "--episodes takes a whole number, not 'x'"),
    (
        (*RUN, "--env.history", "x"),
        "history, the number of earlier observation-action pairs, must be a whole number",
    ),
    (("data", "collect", "--env", "hunch/FrozenLake-v0", "--out", "d", "--mix", "noisy:2"), "noisy:E"),
    (("report", "run", "--episodes", "-3"), "--episodes must not be negative"),
    (("report", "run", "--out", "missing/page.html"), "There is no folder missing"),
    (("report", "missing"), "There is no folder missing"),
    (("play", "--run", "missing"), "missing holds no run"),
    (("play", "hunch/Chain-v0", "--step", "5"), "--step and --checkpoint name the agent of a run"),
    (("play", "hunch/Chain-v0", "--run", "run"), "hunch/FrozenLake-v0, not hunch/Chain-v0"),
    (("evaluate", "missing"), "missing holds no run"),
    (("evaluate", "run", "--seed", "-1"), "seed must be from 0"),
    (("data", "collect", "--env", "hunch/FrozenLake-v0", "--out", "foreign"), "needs a new folder"),
    (("data", "collect", "--env", "hunch/FrozenLake-v0", "--out", "letter.txt"), "needs a new folder"),
    ((*RUN, "--threads", "100000"), "threads must be from 1 to 1024"),
    ((*RUN, "--envs", "100000000", "--dry-run"), "envs must be from 1 to 10000"),
    ((*RUN, "--k", "all"), "--k takes None or a whole number, not 'all'"),
    ((*RUN, "--epsilon", "1", "0", "x"), "takes 3 values (a number, a number, a whole number), not '1 0 x'"),
    ((*RUN, "--data", ""), "--data is empty"),
    ((*RUN, "--lm="), "--lm is empty"),
    ((*RUN, "--data", "letter.txt"), "Line 1 of letter.txt is not an episode"),
    ((*RUN, "--out", "kept/inside"), "kept/inside is inside the folder of a run, kept"),
    ((*RUN, "--lm", "pocket?corpus=web"), "there are examples, walks"),
    (("run", "nothing-like-it"), "'hunch methods' lists them"),
    (
        ("run", "dqn", "--env", "broken:X-v0"),
        "broken, which should register X-v0, cannot be imported: ValueError",
    ),
    (("run", "dqn", "--env", "json:JSONDecoder"), "json:JSONDecoder is not an environment: it must inherit"),
    (
        ("run", "dqn", "--env", "json:X-v0"),
        "json has no class or function 'X-v0' and registers no such environment",
    ),
    (
        ("run", "funsearch", "--env", "hunch/FrozenLake-v0", "--lm", "scripted:mutator"),
        "funsearch writes programs",
    ),
    (("run", "dqn", "--env", "hunch/Heuristic-BinPacking-v0"), "dqn chooses from listed actions"),
    (
        ("run", "icpi", "--env", "hunch/Kitchen-v0"),
        "icpi reads how states and actions are written in prompts",
    ),
    (
        ("compare", "motif", "--env", "hunch/Taxi-v0", "--lm", "scripted:first"),
        "motif reads events (what happened, in words)",
    ),
    (
        ("run", "worldcoder", "--env", "hunch/Household-Pick-v0", "--lm", "scripted:modeller"),
        "worldcoder reads raw states",
    ),
    (
        ("run", "motif", "--env", "hunch/Craft-v0"),
        "motif needs a language model: name one with --lm, such as",
    ),
    (
        ("run", "kwon", "--env", "hunch/FrozenLake-v0", "--dqn.hidden", "8"),
        "--dqn.hidden belongs to the learner dqn",
    ),
    (("run", "kwon", "--learner", "ppo", "--table.gamma=1"), "the learner is ppo: add --learner table"),
    (("run", "rewarded", "--env", "hunch/FrozenLake-v0"), "--reward must name a class, as module:Class"),
    (
        ("run", "rewarded", "--env", "hunch/FrozenLake-v0", "--reward", "nope:X"),
        "The reward source nope:X cannot be imported",
    ),
    (
        (
            "run",
            "rewarded",
            *RUN[2:],
            "--lm",
            "minilm",
            "--reward",
            "hunch.methods.reward.count_bonus:Counts",
        ),
        "takes no language model; leave --lm out",
    ),
    (
        ("run", "rewarded", "--env", "hunch/FrozenLake-v0", "--reward", "hunch.core:World"),
        "hunch.core:World is not a reward source",
    ),
    (
        ("run", "nowhere:METHOD", "--env", "hunch/FrozenLake-v0"),
        "The method nowhere:METHOD cannot be imported",
    ),
    (
        ("run", "hunch.core:State", "--env", "hunch/FrozenLake-v0"),
        "hunch.core:State must be a new hunch.methods.Method",
    ),
    (
        (*COMPARE[:2], "--env", "hunch/Heuristic-BinPacking-v0"),
        "dqn-prior chooses from listed actions, and hunch/Heuristic-BinPacking-v0 takes programs.",
    ),
    (
        ("run", "ppo-text", "--env", "hunch/FrozenLake-v0"),
        "takes listed actions: add --env.written true",
    ),
    (
        ("run", "dqn", "--env", "openenv:127.0.0.1:9", "--steps", "9"),
        "No OpenEnv server answers at http://127.0.0.1:9: ",
    ),
    (("audition", "--lm", "uniform", "--worth", "5"), "worth must be from 0 to 1, not 5"),
    (("audition", "--lm", "uniform", "--out", "letter.txt"), "letter.txt is not a folder"),
    ((*COMPARE, "--out", "letter.txt"), "letter.txt is not a folder"),
    (("evaluate", "letter.txt"), "letter.txt holds no run"),
    (("report", ""), "An argument is empty"),
    (
        ("data", "collect", "--env", "hunch/FrozenLake-v0", "--out", "d", "--seed", "-1"),
        "seed must be from 0",
    ),
    (
        ("data", "collect", "--env", "hunch/Chain-v0", "--out", "d", "--mix", "agent:run"),
        "not in hunch/Chain-v0",
    ),
    (("data", "import", "run", "--env", "hunch/FrozenLake-v0", "--out", "d"), "run cannot be read"),
    (("data", "import", "numbers.jsonl", "--env", "hunch/FrozenLake-v0", "--out", "d"), "must be texts"),
    (("run", "hunch/FrozenLake-v0", "--env", "dqn"), "is an environment, and a method comes first: dqn"),
    ((*RUN[:-1], "ollama:llama3"), "write 'openai:llama3?base_url=http://localhost:11434/v1'"),
    ((*RUN[:-1], "http://localhost:8000/v1"), "write 'openai:MODEL?base_url=http://localhost:8000/v1'"),
    ((*RUN[:-1], "hf:letter.txt"), "'letter.txt' is a file: hf: takes a folder"),
    ((*RUN[:-1], "gguf:letter.txt"), "is not a GGUF file"),
    ((*RUN[:-1], "gguf:foreign"), "is a folder: gguf: takes the path of a GGUF file"),
    (("run", "--config", "empty.json"), "The settings file empty.json is empty."),
    (("run", "dqn", "--env", "broken"), "broken is a file: write broken:NAME"),
    (("evaluate", "several"), "several holds several runs: name one of them, such as several/dqn/seed-0."),
    ((*RUN[:-1], "replay:foreign"), "There is no file of recorded answers at 'foreign'"),
    ((*RUN[:-1], "uniform,minilm"), "did you mean 'uniform' or 'minilm'"),
    ((*RUN[:-1], "\u6a21\u578b"), "A served model is named as in 'openai:"),
    ((*RUN[:-1], "openai:m?base_url=localhost:9"), "must be an address such as http://localhost:8000/v1"),
    ((*RUN[:-1], "smollm2?threads=many"), "threads must be a whole number"),
    ((*RUN[:-1], "smollm2?context=10"), "context must be a whole number of at least 64"),
    ((*RUN, "--prior.prompt", "foreign"), "cannot be read: name a file of text"),
    ((*RUN, "--board", "wandb"), "A board is wandb:PROJECT"),
    ((*RUN, "--keep-every", "0"), "keep_every must be at least 1"),
    ((*RUN, "--data", "foreign"), "There is no data set in foreign"),
    ((*RUN, "--processes", "5"), "processes must be from 0 to the number of environments"),
    ((*RUN, "--env.size", "big"), "has no option 'size'; there are"),
    (("run", "dpo", *RUN[2:4]), "it is a loss: hunch run offline-rlhf --loss dpo"),
    (("run", "dqn prior", *RUN[2:4]), "did you mean 'dqn-prior'"),
    (("run", "DQN", *RUN[2:4]), "did you mean 'dqn'"),
    (("run", "dqn", "--env", "hunch/frozenlake-v0"), "did you mean 'hunch/FrozenLake-v0'"),
    (("run", "dqn", "--env", "FrozenLake-v0"), "'hunch/FrozenLake-v0'"),
    (("run", "--config", "open.yaml"), "found '<stream end>' at line 2, column 1."),
    (("run", "--config", "wide.yaml"), "is written in UTF-16: save it in UTF-8.\n"),
    (("run", "--config", "typo.yaml"), "There is no setting stepz; did you mean 'steps'?"),
    (("run", "--config", "words.yaml"), "must hold settings by name"),
    (("evaluate", "run", "--step", "-5"), "step must be at least 1, not -5"),
    (("evaluate", "run", "--episodes", "0"), "episodes must be at least 1"),
    (("models", "serve", "smollm2?threads=1"), "such as ?threads=1, are options of the command here"),
    (("models", "serve", "nothing"), "There is no model or GGUF file 'nothing'; there are smollm2"),
    (("models", "get", "smollm3"), "did you mean 'smollm2'"),
    (("models", "export", "letter.txt", "--out", "x"), "letter.txt holds no run"),
    (("audition", "--lm", "uniform", "--roles", "pilot"), "There is no role 'pilot'"),
    (("audition", "--lm", "uniform", "--questions", "0"), "questions must be at least 1"),
    (("compare", "dqn", "dqn", *RUN[2:4]), "can be named only once"),
    (("compare", *RUN[2:4]), "Name the methods to compare"),
    (("serve", "hunch/FrozenLake-v0", "--port", "99999999"), "port must be from 0 to 65535"),
    (("envs", "frozen lake"), "There is no environment 'frozen lake'; did you mean"),
    (("envs", "my/Desk-v0"), "If a module of yours registers it, name the module, too: MODULE:my/Desk-v0."),
    (("train", "dqn"), "There is no command called 'train'; did you mean 'hunch run METHOD'?"),
    (("eval", "runs/x"), "There is no command called 'eval'; did you mean 'hunch evaluate'?"),
    (("plot", "runs/x"), "There is no command called 'plot'; did you mean 'hunch report'?"),
    (("runn", "dqn"), "There is no command called 'runn'; did you mean 'run'?"),
]
ONE = (("letter.txt/r",), ("compare", "letter.txt"), ("audition", "letter.txt"))
"""Parts of the commands that fail at what the disk holds: exit code 1."""


@pytest.fixture
def loads_nothing(monkeypatch):
    """Fail if a model is built."""
    for backend in ("uniform", "minilm", "bag-of-words"):
        broken = replace(registry.backend_of(backend), loader=f"{__name__}:built")
        monkeypatch.setattr(registry.OURS[backend].replace(":", "."), broken)


def built(*given, **options):
    raise AssertionError("a model is built")


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(asked) for asked, _ in BAD])
def test_bad_input(hunch, tmp_path, monkeypatch, loads_nothing, arguments, sentence):
    is_refused(hunch, tmp_path, monkeypatch, arguments, sentence)


def is_refused(hunch, tmp_path, monkeypatch, arguments, sentence):
    """Check that a command says one sentence and changes none of the files in its folder."""
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "a.txt").write_text("mine")
    (tmp_path / "letter.txt").write_text("mine")
    (tmp_path / "empty.json").touch()
    (tmp_path / "several" / "dqn" / "seed-0").mkdir(parents=True)
    (tmp_path / "several" / "dqn" / "seed-0" / "config.json").write_text("{}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(json.dumps(KEPT))
    shutil.copytree(tmp_path / "run", tmp_path / "kept")
    (tmp_path / "kept" / "checkpoint").mkdir()
    (tmp_path / "numbers.jsonl").write_text(json.dumps(NUMBERS))
    (tmp_path / "open.yaml").write_text("{\n")
    (tmp_path / "wide.yaml").write_bytes("steps: 5\n".encode("utf-16"))
    (tmp_path / "typo.yaml").write_text("method: dqn\nenv: hunch/FrozenLake-v0\nstepz: 5\n")
    (tmp_path / "words.yaml").write_text("just words")
    (tmp_path / "broken.py").write_text("raise ValueError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = sorted(tmp_path.rglob("*"))
    code, _, errors = hunch(*arguments)
    assert sentence in errors
    assert (code, errors.count("\n")) == (1 if any(set(part) <= set(arguments) for part in ONE) else 2, 1)
    assert errors.startswith("hunch: ")
    assert sorted(tmp_path.rglob("*")) == before


KEPT = {
    "run": {
        **{"env": "hunch/FrozenLake-v0", "method": "zero-shot", "lm": "uniform", "data": "", "online": False},
        **{"steps": 10, "envs": 1, "processes": 0, "task_seed": None, "eval_every": 0, "eval_episodes": 20},
        **{"episodes_per_player": None, "threads": 1, "seed": 0, "env_options": {}, "options": None},
    }
}


NUMBERS = {"observations": [1, 2], "admissible": [["x"], ["x"]], "actions": ["x"], "rewards": [1.0]}
NUMBERS |= {"terminated": True, "truncated": False}


def test_too_little_memory_is_a_sentence(hunch):
    code, _, errors = hunch(*RUN, *SMALL, "--hidden", "999999999")
    assert (code, errors) == (1, "hunch: There is not enough memory for this.\n")


def test_a_missing_extra_is_named(tmp_path):
    # A process of its own: modules of ours that are loaded already would not import torch again.
    without = "import sys; sys.modules['torch'] = None; from hunch.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", without, *RUN, *SMALL, "--out", "r"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (1, f"hunch: This needs torch: {install('torch')}.\n")
    assert not (tmp_path / "r").exists()


def test_a_file_of_somebody_elses_is_no_cache(hunch, monkeypatch, tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Sir")
    monkeypatch.setenv("HUNCH_CACHE", str(letter))
    code, _, errors = hunch(*RUN, *SMALL)
    assert code == 2
    assert "not a file of answers" in errors
    assert letter.read_text() == "Dear Sir"


def test_shared_options_of_a_comparison_reach_every_method(hunch, tmp_path):
    asked = (
        "compare",
        "dqn",
        "dqn-prior",
        *RUN[2:],
        *SMALL,
        "--dqn.hidden",
        "4",
        "--no-joint",
        "--seeds",
        "1",
    )
    assert hunch(*asked, "--no-control", "--out", "c")[0] == 0
    for method, hidden in (("dqn", 4), ("dqn-prior", 8)):
        config = json.loads((tmp_path / "c" / method / "seed-0" / "config.json").read_text())
        assert config["run"]["options"]["hidden"] == hidden
        assert config["run"]["options"]["encoder"] == "bag-of-words"


def test_steps_may_grow(hunch):
    for steps in ("40", "80"):
        code, out, _ = hunch(*RUN, *SMALL[2:], "--steps", steps, "--out", "r")
        assert code == 0
        assert f"quarter of {steps} steps" in out
    code, _, errors = hunch(*RUN, *SMALL[2:], "--steps", "60", "--out", "r")
    assert code == 2
    assert "steps: 80 there, 60 asked" in errors


def test_a_short_run_with_an_uninformed_model_just_works(hunch):
    assert hunch(*RUN, "--steps", "60", "--encoder", "bag-of-words")[0] == 0
