"""Settings from a file: a run repeats from its own config.json, and what is wrong is said at once."""

import json
import tomllib

import pytest

import hunch as library
from hunch.cli.options import parse
from hunch.core import UsageError
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.runs import models
from hunch.runs.settings_file import read_config

LAKE = "hunch/FrozenLake-v0"
YAML = f"""
method: dqn-prior
env: {LAKE}
lm: uniform
steps: 60
eval_every: 30
eval_episodes: 2
env_options: {{max_steps: 20}}
options:
  k: 2
  hidden: 8
  learning_rate: 1e-3
  epsilon: [1.0, 0.1, 100]
  encoder: bag-of-words
  prior: {{temperature: 2}}
"""
LINE = (
    *("run", "dqn-prior", "--env", LAKE, "--lm", "uniform", "--steps", "60", "--eval-every", "30"),
    *("--eval-episodes", "2", "--env.max_steps", "20", "--k", "2", "--hidden", "8"),
    *("--learning-rate", "1e-3", "--epsilon", "1.0", "0.1", "100", "--encoder", "bag-of-words"),
    *("--prior.temperature", "2", "--out", "line"),
)


def settings(folder):
    return json.loads((folder / "config.json").read_text())["run"]


@pytest.fixture
def yaml(hunch, tmp_path):
    """The folder that the file stands in."""
    (tmp_path / "run.yaml").write_text(YAML)
    return tmp_path


def test_a_file_says_what_a_command_line_says(hunch, yaml):
    assert hunch(*LINE)[0] == 0
    assert hunch("run", "--config", "run.yaml", "--out", "file")[0] == 0
    assert settings(yaml / "line") == settings(yaml / "file")
    one, other = ((yaml / name / "episodes.jsonl").read_bytes() for name in ("line", "file"))
    assert one == other


def test_a_run_repeats_from_its_own_config(hunch, yaml):
    hunch("run", "--config", "run.yaml", "--out", "first")
    for source, out in (("first/config.json", "again"), ("first", "folder")):
        assert hunch("run", "--config", source, "--out", out)[0] == 0
        for name in ("config.json", "episodes.jsonl"):
            assert (yaml / "first" / name).read_bytes() == (yaml / out / name).read_bytes()
    library.train(**read_config(yaml / "first") | {"out": yaml / "python"})
    for name in ("config.json", "episodes.jsonl"):
        assert (yaml / "first" / name).read_bytes() == (yaml / "python" / name).read_bytes()


@pytest.mark.parametrize("method", ["ppo", "glam", "saycan", "kwon", "rewarded", "q-learning", "bc"])
def test_every_method_can_read_what_it_wrote(method, tmp_path):
    """Fixed settings and those of other learners stand in config.json too."""
    from hunch import methods
    from hunch.cli.options import _again, options_of
    from hunch.methods.settings import configure
    from hunch.runs.config import RunConfig

    one = methods.find(method)
    options = configure(one.agent_class, one.config_class(), {})
    written = RunConfig(method=method, env=LAKE, options=options).settings()["options"]
    assert _again(one.config_class, options_of(one, (), written)()) == options


def test_the_command_line_comes_first(hunch, yaml):
    hunch("run", "--config", "run.yaml", "--out", "out", "--k", "3", "--env.max_steps", "10", "--no-listed")
    assert hunch(
        *("run", "--out", "out", "--k", "3", "--prior.way", "novelty", "--env.max_steps", "10"),
        *("--steps", "70", "--config=run.yaml"),
    )[0] == 0  # fmt: skip
    kept = settings(yaml / "out")
    assert (kept["steps"], kept["options"]["k"], kept["env_options"]) == (70, 3, {"max_steps": 10})
    assert kept["options"]["prior"] | {"temperature": 2, "way": "novelty"} == kept["options"]["prior"]


def test_a_comparison_reads_shared_options_and_those_of_one_method(hunch, tmp_path):
    text = f'method = ["dqn", "dqn-prior"]\nenv = "{LAKE}"\nlm = "uniform"\nsteps = 40\nseeds = 1\n'
    text += '[options]\nhidden = 8\nencoder = "bag-of-words"\n[options.dqn-prior]\nk = 2\n'
    (tmp_path / "both.toml").write_text(text)
    assert tomllib.loads(text)
    assert hunch("compare", "--config", "both.toml", "--out", "both", "--workers", "1")[0] == 0
    one, other = (settings(tmp_path / "both" / name / "seed-0") for name in ("dqn", "dqn-prior"))
    assert one["options"]["hidden"] == other["options"]["hidden"] == 8
    assert other["options"]["k"] == 2
    run = tmp_path / "both" / "dqn-prior" / "seed-0"
    assert hunch("compare", "--config", str(run), "--dry-run", "--out", "more")[0] == 0


WRONG = [
    ("steps: 60", "stepz: 60", "There is no setting stepz; did you mean 'steps'"),
    ("steps: 60", 'steps: "60"', "steps must be a whole number, not '60'."),
    ("steps: 60", "steps: 0", "steps must be at least 1"),
    ("  k: 2", "  kk: 2", "dqn-prior has no option kk"),
    ("  k: 2", "  k: two", "k must be a whole number or none, not 'two'"),
    ("temperature: 2", "temper: 2", "dqn-prior has no option prior.temper; did you mean 'temperature'?"),
    ("\noptions:", "\nbudget: {call: 3}\noptions:", "There is no setting budget.call"),
    ("\noptions:", "\nbudget: {calls: x}\noptions:", "budget.calls must be"),
    ("\noptions:", "\napi_key: sk-1234567\noptions:", "There is no setting api_key"),
    ("method: dqn-prior", "method: dqn-priro", "There is no method called 'dqn-priro'"),
    ("lm: uniform", "lm: [a]", "lm must be text"),
    ("steps: 60", "steps: 60: 7", "The settings in run.yaml cannot be read: mapping values"),
    (YAML, "- a", "run.yaml must hold settings by name"),
    ("env_options: {max_steps: 20}", "env_options: 3", "run.yaml must hold settings by name"),
    (f"env: {LAKE}", "", "--env is missing"),
]


@pytest.mark.parametrize(("before", "after", "says"), WRONG, ids=[after[:20] for _, after, _ in WRONG])
def test_what_is_wrong_is_one_sentence_and_no_model_is_loaded(hunch, yaml, monkeypatch, before, after, says):
    def load(*arguments):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(models, "build", load)
    assert before in YAML
    (yaml / "run.yaml").write_text(YAML.replace(before, after))
    code, out, errors = hunch("run", "--config", "run.yaml", "--out", "new")
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert says in errors
    assert "sk-1234567" not in errors
    assert not (yaml / "new").exists()


def test_a_missing_file_is_one_sentence(hunch):
    for name in ("none.yaml", "none", "none.json"):
        code, _, errors = hunch("run", "--config", name)
        assert code == 2
        assert errors == f"hunch: The settings in {name} cannot be read: No such file or directory.\n"


def test_a_run_of_objects_cannot_be_repeated_from_a_file(hunch, tmp_path):
    library.train("q-learning", library.make(LAKE), 20, out=tmp_path / "run")
    assert read_config(tmp_path / "run")["agent"] == "q-learning"
    kept = settings(tmp_path / "run") | {"objects": ["env"]}
    (tmp_path / "own.json").write_text(json.dumps(kept))
    with pytest.raises(UsageError, match="made in Python with its own env"):
        read_config(tmp_path / "own.json")


def test_options_of_an_environment_are_those_of_an_id(tmp_path):
    library.train(
        "q-learning", LAKE, 20, streams=library.Streams(options={"max_steps": 9}), out=tmp_path / "a"
    )
    assert settings(tmp_path / "a")["env_options"] == {"max_steps": 9}
    with pytest.raises(UsageError, match="need an id"):
        library.train("q-learning", library.make(LAKE), 20, streams=library.Streams(options={"max_steps": 9}))


def test_a_run_on_recorded_data_repeats_too(hunch, tmp_path):
    assert hunch("data", "collect", "--env", LAKE, "--out", "data", "--steps", "60")[0] == 0
    line = ("--env", LAKE, "--data", "data", "--steps", "20", "--encoder", "bag-of-words")
    assert hunch("run", "bc", *line, "--out", "first")[0] == 0
    assert hunch("run", "--config", "first", "--out", "again")[0] == 0
    library.train(**read_config("first") | {"out": "python"})
    first, *others = (
        (tmp_path / out / "episodes.jsonl").read_bytes() for out in ("first", "again", "python")
    )
    assert others == [first, first]


def test_a_run_of_before_is_repeated_without_settings_that_its_method_only_fixed(tmp_path):
    """They are dropped from the config.json of an older format; in a file of one's own they are refused."""
    settings = {"method": "grpo", "env": "hunch/Prompts-v0", "steps": 8}
    settings["options"] = {"group": 4, "horizon": 128, "advantage": "group"}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"run": settings}))
    assert read_config(file) == {"agent": "grpo", "env": "hunch/Prompts-v0", "steps": 8, "group": 4}
    file.write_text(json.dumps(settings))
    with pytest.raises(UsageError, match="horizon"):
        library.train(**read_config(file))


@pytest.mark.parametrize(
    ("words", "blank"),
    [
        ((), False),
        (("--prior.blank",), True),
        (("--prior.no-blank",), False),
        (("--prior.blank", "true"), True),
        (("--prior.blank=True",), True),
        (("--prior.blank", "--prior.blank", "false"), False),
        (("--prior.blank", "--prior.blank=FALSE", "--joint", "true"), False),
    ],
)
def test_switches_take_true_and_false(words, blank):
    read = parse("run dqn-prior", "", {"method_": DQNPriorConfig}, [*words, "--k", "3"])
    assert read.method_.prior.blank is blank
    assert read.method_.joint is ("--joint" in words)
    assert read.method_.k == 3


def test_switches_with_a_value_are_shared_by_the_methods_of_a_comparison(hunch, tmp_path):
    options = ["--lm", "uniform", "--encoder", "bag-of-words", "--steps", "20", "--seeds", "1", "--out", "c"]
    methods = ["compare", "dqn", "dqn-prior", "--no-control", "--env", "hunch/FrozenLake-v0"]
    code, _, err = hunch(*methods, *options, "--joint", "true", "--dqn.joint", "false")
    assert code == 0, err
    joint = {name: settings(tmp_path / "c" / name / "seed-0")["options"]["joint"] for name in methods[1:3]}
    assert joint == {"dqn": False, "dqn-prior": True}
