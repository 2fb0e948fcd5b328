"""The command, as a user types it: results, errors in one sentence, exit codes."""

import json

import gymnasium
import pytest
from rich.console import Console

from hunch import envs
from hunch.cli.environment import literal, split_environment
from hunch.cli.play import play_episode

LAKE = ("--env", "hunch/FrozenLake-v0")
SMALL = ("--steps", "200", "--hidden", "16", "--warmup", "50")
CHAIN = ("--env", "hunch/Chain-v0", "--env.hints", "false")


def test_run_and_its_folder(hunch, tmp_path):
    code, out, _ = hunch("run", "dqn-prior", *LAKE, *SMALL, "--k", "2", "--out", "r")
    assert code == 0
    assert "evidence level L3" in out
    assert {p.name for p in (tmp_path / "r").iterdir()} >= {
        *("config.json", "metrics.jsonl", "episodes.jsonl", "summary.json", "checkpoint"),
    }
    assert json.loads((tmp_path / "r" / "config.json").read_text())["run"]["options"]["k"] == 2


def test_default_folder_is_the_same_for_the_same_command(hunch, tmp_path):
    for _ in range(2):
        assert hunch("run", "zero-shot", *LAKE, "--lm", "uniform", "--steps", "50")[0] == 0
    assert hunch("run", "zero-shot", *LAKE, "--lm", "uniform", "--steps", "60")[0] == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rnu",), "did you mean 'run'"),
        (("run",), "Name a method"),
        (("run", "dqn-proir", *LAKE), "did you mean 'dqn-prior'"),
        (("run", "dqn", "--env", "hunch/FrozenLak-v0"), "FrozenLake-v0"),
        (("run", "dqn", *LAKE, "--env.slipery", "1"), "slipery"),
        (("run", "dqn", *LAKE, "--env.max_steps"), "needs a value"),
        (("run", "dqn", *LAKE, "--env.max_steps", "--seed", "1"), "needs a value"),
        (("run", "dqn", *LAKE, "--env.id", "other"), "given with --env"),
        (("run", "dqn-prior", *LAKE, "--lm", "minilmm"), "minilm"),
        (("run", "dqn-prior", *LAKE, "--lm", "minilm", "--prior.way", "text"), "generate"),
        (("run", "dqn-prior", *LAKE, "--k", "0"), "k must be at least 1"),
        (("run", "dqn", *LAKE, "--steps", "0"), "steps must be at least 1"),
        (("run", "dqn", *LAKE, "--envs", "0"), "envs must be from 1 to"),
        (("run", "dqn", *LAKE, "--processes", "2"), "processes must be from 0"),
        (("run", "dqn", *LAKE, "--lm", "uniform"), "leave --lm out"),
        (("run", "bc-lm", *LAKE, "--data", "d", "--lm", "minilm"), "no data set in d"),
        (("compare", "dqn", *LAKE, "--lm", "uniform"), "leave --lm out"),
        (("run", "dqn", *LAKE, "--gamma", "nan"), "gamma must be a finite number"),
        (("run", "dqn", *LAKE, "--alpha", "0"), "alpha must be above 0"),
        (("run", "dqn", *LAKE, "--batch-size", "0"), "batch_size must be at least 1"),
        (("compare", *LAKE), "Name the methods"),
        (("compare", "dqn", "dqn", *LAKE), "once"),
        (("play",), "Name an environment"),
        (("lm", "gpt"), "no model"),
        (("methods", "dqn", "bc"), "Name one method"),
        (("envs", "hunch/FrozenLak-v0"), "hunch/FrozenLake-v0"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(hunch, arguments, sentence):
    code, _, errors = hunch(*arguments)
    assert code == 2
    assert sentence in errors
    assert errors.startswith("hunch: ")
    assert len(errors.strip().splitlines()) == 1
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", ["run", "compare"])
def test_help_without_a_method(hunch, command):
    code, out, _ = hunch(command, "--help")
    assert code == 0
    assert "dqn-prior" in out


def test_unknown_option_is_wrong_use(hunch):
    code, _, errors = hunch("run", "dqn", *LAKE, "--alhpa", "1")
    assert code == 2
    assert "--alpha" in errors


def test_a_failed_run_is_exit_code_1(hunch, tmp_path):
    (tmp_path / "r").write_text("a file where the folder should be")
    code, _, errors = hunch("run", "dqn", *LAKE, *SMALL, "--out", "r")
    assert code == 1
    assert "Cannot write" in errors


def test_a_wrong_start_does_not_claim_its_folder(hunch):
    assert hunch("run", "dqn-prior", *LAKE, *SMALL, "--prior.temperature", "-1", "--out", "r")[0] == 2
    assert hunch("run", "dqn-prior", *LAKE, *SMALL, "--k", "2", "--out", "r")[0] == 0


def test_compare_adds_the_control_and_draws(hunch, tmp_path):
    command = [
        *("compare", "dqn", "dqn-prior", *LAKE, "--steps", "30"),
        *["--seeds", "2", "--encoder", "bag-of-words", "--hidden", "16", "--dqn-prior.k", "2"],
        *["--out", "c"],
    ]
    code, out, errors = hunch(*command)
    assert code == 0, errors
    rows = json.loads((tmp_path / "c" / "table.json").read_text())
    assert [row["label"] for row in rows] == ["dqn", "dqn-prior", "dqn-prior, random k", "dqn-prior, words"]
    assert [row["evidence"] for row in rows] == ["-", "L3", "L0", "L0"]
    said = "Verdict: none from 2 seeds in common, 3 are needed (--seeds 3). Success, best first: "
    assert said in out.replace("\n", " ")
    assert (tmp_path / "c" / "verdict.txt").read_text().startswith(said.removeprefix("Verdict: "))
    assert all(row["seeds"] == 2 for row in rows)
    assert (tmp_path / "c" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "curves.png" in out
    # Other settings do not touch it.
    code, _, errors = hunch(*command, "--dqn.hidden", "8")
    assert code == 2
    assert "options.hidden: 16 there, 8 asked" in errors
    # A second time nothing is left to do, and a failed run is named.
    (tmp_path / "c" / "dqn" / "seed-1" / "checkpoint" / "state.pt").write_bytes(b"garbage")
    (tmp_path / "c" / "dqn" / "seed-1" / "summary.json").unlink()
    code, out, _ = hunch(*command)
    assert code == 1
    assert "failed: dqn, seed 1" in out
    assert "damaged" in out


def test_compare_takes_several_models(hunch, tmp_path):
    """An option of the prior reaches the methods that have a prior, and the baseline is run once."""
    command = [
        "compare",
        "dqn",
        "zero-shot",
        *LAKE,
        "--lm",
        "uniform",
        "scripted:frozenlake",
        "--steps",
        "50",
    ]
    mute = (
        "--prior.way",
        "text-unlisted",
        "--prior.patience",
        "None",
    )  # the rule needs a list
    code, _, errors = hunch(*command, *mute, "--encoder", "bag-of-words", "--out", "two")
    assert code == 0, errors
    rows = json.loads((tmp_path / "two" / "table.json").read_text())
    assert [(row["label"], row["model"]) for row in rows] == [
        ("dqn", "none"),
        ("zero-shot", "uniform"),
        ("zero-shot, scripted:frozenlake", "scripted:frozenlake"),
    ]
    config = json.loads((tmp_path / "two" / "zero-shot" / "seed-0" / "config.json").read_text())
    assert config["run"]["options"]["prior"]["way"] == "text-unlisted"


def test_play_by_hand(hunch, monkeypatch):
    answers = iter(["9", "sideways", "3", "Go Down", "q"])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    code, out, _ = hunch("play", "hunch/FrozenLake-v0")
    assert code == 0
    assert "not an admissible action" in out
    assert "(2, 0)" in out


def test_play_takes_beginnings_and_takes_moves_back(hunch, monkeypatch):
    answers = iter(["u", "go", "go d", "u", "Go R", "q"])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    _, out, _ = hunch("play", "hunch/FrozenLake-v0")
    assert "nothing to undo" in out
    assert "could be Go Left, Go Right, Go Up, Go Down" in out
    maps = [line for line in out.splitlines() if line.startswith(("@FFF", "SFFF", "S@FF"))]
    assert maps == ["@FFF", "@FFF", "SFFF", "@FFF", "S@FF"]


@pytest.mark.parametrize(("base", "shown"), [("MountainCar-v0", "[-0."), ("FrozenLake-v1", "FHFH")])
def test_play_draws_what_a_wrapped_environment_draws(base, shown, hunch, monkeypatch, tmp_path):
    """MountainCar draws no text, and Gymnasium raises an error where it is asked for."""
    made = f"""
import gymnasium
from hunch.envs import TextWrapper

def made(*, render_mode: str | None = None):
    env = gymnasium.make("{base}", render_mode=render_mode)
    return TextWrapper(env, str, [f"a{{i}}" for i in range(env.action_space.n)])
"""
    (tmp_path / f"{base[:4].lower()}_in_words.py").write_text(made, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    answers = iter(["a1", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(answers))
    code, out, _ = hunch("play", f"{base[:4].lower()}_in_words:made")
    assert code == 0
    assert shown in out


def test_play_takes_back_where_nothing_can_be_copied(monkeypatch, capsys):
    class Rigid(gymnasium.Wrapper):
        def __deepcopy__(self, memo):
            raise TypeError("there is only one of me")

    answers = iter(["u", "Go Down", "Go Down", "u", "q"])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    play_episode(Rigid(envs.make("hunch/FrozenLake-v0")), None, 0, Console())
    out = capsys.readouterr().out
    assert "nothing to undo" in out
    assert "position (1, 0)" in out.partition("position (2, 0), which")[2]


def test_play_beside_a_trained_agent(hunch, monkeypatch):
    assert hunch("run", "dqn-prior", *LAKE, *SMALL, "--k", "2", "--out", "r")[0] == 0
    monkeypatch.setattr("builtins.input", lambda *_: "")
    code, out, _ = hunch("play", "--run", "r")
    assert code == 0
    assert "posterior" in out
    assert "return" in out


def test_play_lets_the_agent_play(hunch):
    assert hunch("run", "dqn-prior", *LAKE, *SMALL, "--lm", "uniform", "--k", "2", "--out", "r")[0] == 0
    code, out, _ = hunch("play", "--run", "r", "--auto", "--pause", "0")
    assert code == 0
    assert "olved; " in out
    assert out.count("\n> Go ") == int(out.rpartition("olved; ")[2].split()[0])
    menu = [line.split() for line in out.splitlines() if "Go " in line and "█" in line]
    posteriors = [float(line[5]) for line in menu[:2]]
    assert posteriors == sorted(posteriors, reverse=True)
    assert hunch("play", "hunch/FrozenLake-v0", "--auto")[0] == 2


def test_an_agent_of_recorded_data_plays_where_they_were_recorded(hunch, monkeypatch, tmp_path):
    assert hunch("data", "collect", *CHAIN, "--mix", "random", "--steps", "200", "--out", "data")[0] == 0
    settings = (*CHAIN[:2], "--data", "data", "--steps", "20", "--eval-every", "20", "--eval-episodes", "2")
    assert hunch("run", "cql", *settings, "--out", "r")[0] == 0
    monkeypatch.setattr("builtins.input", lambda *_: "q")
    assert "state !=" not in hunch("play", "--run", "r")[1]
    assert "state !=" in hunch("play", "--run", "r", "--env.hints", "true")[1]
    assert "Page: " in hunch("report", "r", "--plain", "--out", "page.html")[1]
    assert "state !=" not in (tmp_path / "page.html").read_text()


def test_play_keeps_the_options_of_the_run_that_are_not_changed(hunch, monkeypatch):
    assert hunch("run", "q-learning", *CHAIN, "--steps", "20", "--out", "r")[0] == 0
    monkeypatch.setattr("builtins.input", lambda *_: "q")
    assert "state !=" not in hunch("play", "--run", "r", "--env.max_steps", "4")[1]


def test_play_has_commands(hunch, monkeypatch):
    answers = iter(["help", "auto", "undo", "quit"])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    code, out, _ = hunch("play", "hunch/FrozenLake-v0")
    assert code == 0
    for said in ("undo the last action", "There is no agent here", "nothing to undo"):
        assert said in out


def test_ctrl_c_says_what_is_true(hunch, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    code, _, errors = hunch("play", "hunch/FrozenLake-v0")
    assert code == 130
    assert "left the episode" in errors
    monkeypatch.setattr("hunch.rl.rollout.Rollout.step", interrupted)
    code, _, errors = hunch("run", "zero-shot", *LAKE, "--lm", "uniform", "--steps", "50", "--out", "r")
    assert code == 130
    assert "the same command goes on from the last checkpoint in r, or from the beginning" in errors


def test_lists(hunch):
    assert "dqn-prior" in hunch("methods")[1]
    assert "hunch/FrozenLake-v0" in hunch("envs")[1]
    assert "384" in hunch("lm", "minilm")[1]
    assert "hunch compare" in hunch("--help")[1]


def test_environment_options():
    typed = ["--env", "X", "--env.games", "-4", "--env.no-hints", "--env.split=unseen", "--k", "2"]
    rest, options = split_environment(typed)
    assert rest == ["--env", "X", "--k", "2"]
    assert options == {"games": -4, "hints": False, "split": "unseen"}
    assert [literal(text) for text in ("true", "None", "0.5", "a b", "...")] == [
        True,
        None,
        0.5,
        "a b",
        "...",
    ]
    of_a_server = ["mcp:x", "--env.task", "7", "--env.answer=4_2", "--env.max_steps", "7"]
    assert split_environment(of_a_server)[1] == {"task": "7", "answer": "4_2", "max_steps": 7}
    assert split_environment(["--seed", "3", "mcp:x", "--env.task", "7"])[1] == {"task": "7"}
    assert split_environment(["--lm", "mcp:x", "--env.task", "7"])[1] == {"task": 7}
    before_the_id = ["--env.no-hints", "--env.picture", "hunch/FrozenLake-v0", "--env.map", "{[]: 1}"]
    rest, options = split_environment(before_the_id)
    assert rest == ["hunch/FrozenLake-v0"]
    assert options == {"hints": False, "picture": True, "map": "{[]: 1}"}


def test_evaluate_a_run(hunch, tmp_path):
    assert hunch("run", "dqn-prior", *LAKE, *SMALL, "--lm", "uniform", "--k", "2", "--out", "r")[0] == 0
    asked = ("evaluate", "r", "--lm", "scripted:frozenlake", "--k", "1", "--episodes", "4", "--out", "score")
    code, out, errors = hunch(*asked)
    assert code == 0
    assert errors.startswith("scripted:frozenlake as prior: auto chose the way text")
    assert len(errors.splitlines()) == 1
    assert "success 1.00 [0.51, 1.00] on 4 episodes of seen tasks" in out
    assert "model calls" in out
    assert "evidence level L0" in out
    record = json.loads((tmp_path / "score" / "evaluation.json").read_text())
    assert record["success"]["value"] == 1.0
    assert record["evaluation"]["with"]["options"]["k"] == 1
    assert "of unseen tasks" in hunch("evaluate", "r", "--env.max_steps", "2", "--episodes", "2")[1]
    assert hunch(*asked[:-1], "r")[0] == 2
    for arguments, sentence in (
        ((), "Name the folder of a run first"),
        (("nowhere",), "nowhere holds no run"),
        (("r", "--encoder", "hf:x"), "encoder affected what was learnt"),
        (("r", "--prior.knd", "x"), "dqn-prior has no prior.knd"),
        (("r", "--k", "0"), "k must be at least 1"),
        (("r", "s"), "too many"),
    ):
        code, out, errors = hunch("evaluate", *arguments)
        assert (code, out) == (2, "")
        assert sentence in errors
        assert len(errors.splitlines()) == 1
    assert "--prior.way" in hunch("evaluate", "r", "--help")[1]
    assert "hunch evaluate RUN --help" in hunch("evaluate", "--help")[1]


def test_evaluate_changes_what_the_method_lets_it(hunch, tmp_path):
    kitchen = ("--env", "hunch/Kitchen-v0", "--env.max_steps", "20")
    assert hunch("run", "saycan", *kitchen, "--lm", "uniform", "--steps", "60", "--out", "r")[0] == 0
    code, _, errors = hunch("evaluate", "r", "--score", "can", "--episodes", "2", "--out", "score")
    assert (code, errors) == (0, "")
    record = json.loads((tmp_path / "score" / "evaluation.json").read_text())
    assert record["evaluation"]["with"]["options"]["score"] == "can"
    assert "--affordance" in hunch("evaluate", "r", "--help")[1]
