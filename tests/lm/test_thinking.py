"""A chat model that thinks first and answers in prose works in every role, by the documented commands."""

import json
import re
import warnings

import numpy as np
import pytest
from tests.lm.test_lies import Liar
from tests.started import answering

import hunch
from hunch import lm
from hunch.cli.ask import ROLES, AnsweredError, FirstAnswer
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning, State, UsageError, World
from hunch.lm.base import Model
from hunch.lm.hearing import ANSWERS, NOT_SHOWN, PATIENCE, remedy
from hunch.lm.settings import check_prompts
from hunch.roles import Judge, PriorConfig, build_prior
from hunch_contrib.planner.plan4mc import Plan4MCConfig
from hunch_contrib.planner.skill_graph import EntryConfig

LAKE = "hunch/FrozenLake-v0"
STATE = State("At the lake.", "reach the gift", ("go left", "go right"))
THOUGHT = "Hm, let me see. " * 40
PROGRAM = """def compute_reward(pos, vel, action):
    return 0.0
"""


class Thinker(Liar):
    """Thinks for 150 tokens, then says in prose what ``decide`` makes of the prompt.

    Attributes:
        decide: Answers a prompt, without thoughts.
    """

    thinks = 150

    def __init__(self):
        super().__init__()
        self.lie = self.think
        self.decide = choose

    def think(self, reply):
        body = self.asked[-1]
        room = body.get("max_tokens") or body["max_completion_tokens"]
        message = {"role": "assistant", "content": None, "reasoning_content": THOUGHT}
        choice = {"index": 0, "finish_reason": "length", "message": message}
        if room > self.thinks:
            message["content"] = self.decide(body["messages"][-1]["content"])
            choice["finish_reason"] = "stop"
        usage = {"prompt_tokens": 50, "completion_tokens": min(room, self.thinks), "total_tokens": 50 + room}
        return reply | {"choices": [choice], "usage": usage}


def choose(prompt):
    """Say in prose the first item of the last list, or continue an example, or write a program."""
    if "```python" in prompt or "def " in prompt:
        name, arguments = re.findall(r"def (\w+)\(([^)]*)\)", prompt)[-1]
        return (
            f"Sure! This should work:\n\n```python\ndef {name}({arguments}):\n    return 0.0\n```\nGood luck!"
        )
    items = re.findall(r"(?m)^- (.*)$", prompt)
    if items:
        item = items[-2] if len(items) > 2 else items[0]
        return f"\n\nLooking at the options, I would choose **{item}**.\n\nIt helps."
    query = prompt.rstrip().splitlines()[-1]
    seen = re.findall(rf"(?m)^{re.escape(query)}$\n(.*)$", prompt)
    return f"The text goes on like this:\n\n```python\n{seen[0] if seen else 'assert done'}\n```"


@pytest.fixture
def thinker(monkeypatch, tmp_path):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    with answering(Thinker()) as server:
        yield server


def spec(server):
    return f"openai:m?base_url={server.url}&retries=2"  # a busy machine may break a connection


GYM = "hunch/RewardDesign-Gymnasium-v0"
RUNS = {
    "dqn-prior": (LAKE, "--steps", "12", "--k", "2"),
    "zero-shot": (LAKE, "--steps", "12"),
    "saycan": ("hunch/Kitchen-v0", "--steps", "6"),
    "icpi": ("hunch/Chain-v0", "--prompts", "per-episode", "--steps", "30"),
    "kwon": ("hunch/Ultimatum-v0", "--steps", "40"),
    "motif": (
        "hunch/Craft-v0",
        "--steps",
        "240",
        "--preference.collect",
        "120",
        "--preference.pairs",
        "40",
    ),
    "eureka": (GYM, "--env.base", "FrozenLake-v1", "--env.steps", "200", "--steps", "2", "--population", "2"),
}


@pytest.mark.parametrize("method", RUNS)
def test_the_documented_commands_work_with_a_model_that_thinks(method, thinker, tmp_path):
    env, *options = RUNS[method]
    command = ["run", method, "--env", env, "--lm", spec(thinker), *options, "--out", str(tmp_path / "run")]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The judge", HunchWarning)  # it says the same to everything
        main(command)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["complete"]
    assert summary["usage"]["silent"] == 0
    assert summary["usage"]["calls"] > 0
    if method != "icpi":
        assert summary["usage"]["fallbacks"] == 0
    assert len(thinker.asked) > 2
    assert all("stop" not in body for body in thinker.asked[2:]), "a right answer is not cut"


def asked(server):
    """The last body of a chat request."""
    return server.asked[-1]


def proposal(server, **options):
    model = lm.load(spec(server), cache=None)
    prior = build_prior(PriorConfig(**{"way": "text", **options}), model)
    return prior.propose([STATE], 1, np.random.default_rng(0))[0], model


def test_a_right_answer_after_blank_lines_is_read(thinker):
    thinker.decide = lambda prompt: "\n\nGo Right"
    found, model = proposal(thinker)
    assert found.indices.tolist() == [1]
    assert found.fallbacks == model.usage.fallbacks == 0


def test_options_of_the_sampling_reach_the_server(thinker):
    proposal(thinker, max_tokens=700, temperature=0.3, stop=("END",), effort="low")
    body = asked(thinker)
    assert body["max_tokens"] == 700
    assert body["temperature"] == 0.3
    assert body["stop"] == ["END"]
    assert body["reasoning_effort"] == "low"
    with pytest.raises(UsageError, match="does not support reasoning effort"):
        build_prior(PriorConfig(way="text", effort="low"), lm.load("scripted:first"))


def test_too_few_tokens_for_the_thoughts_are_an_answer_that_cannot_be_read(thinker):
    with pytest.warns(HunchWarning, match="cut an answer at max_tokens=40; the model thinks until then"):
        found, model = proposal(thinker, max_tokens=40)
    assert found.fallbacks == model.usage.fallbacks == 1
    thinker.asked.clear()
    with (
        pytest.warns(HunchWarning, match="20 answers"),
        pytest.raises(HunchError, match=r"50 answers .* in a row .* empty, so the run stops"),
    ):
        build_prior(PriorConfig(way="text", max_tokens=40), model).propose(
            [STATE], PATIENCE, np.random.default_rng(0)
        )
    assert len(thinker.asked) == PATIENCE


def test_structured_answers_are_a_choice_that_the_server_makes(thinker):
    def decide(prompt):
        schema = asked(thinker)["response_format"]["json_schema"]["schema"]
        return json.dumps({"answer": schema["properties"]["answer"]["enum"][1]})

    thinker.decide = decide
    found, _ = proposal(thinker, way="structured")
    assert found.indices.tolist() == [1]
    with pytest.raises(UsageError, match="needs answers restricted to options"):
        build_prior(PriorConfig(way="structured"), lm.load("scripted:first"))


def test_ones_own_words_are_the_whole_message(thinker, tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_text("Task: {task}\nNow: {observation}\n{actions}\nJSON like {{x}} stays. {history}Which?")
    proposal(thinker, prompt=str(file))
    (message,) = asked(thinker)["messages"]
    text = "Task: reach the gift\nNow: At the lake.\n- go left\n- go right\nJSON like {{x}} stays. Which?"
    assert message == {"role": "user", "content": text}


def test_a_wrong_or_changed_template_is_one_sentence(thinker, tmp_path):
    file = tmp_path / "prompt.txt"
    with pytest.raises(UsageError, match="cannot be read"):
        proposal(thinker, prompt=str(file))
    file.write_text("{task} {mood}")
    with pytest.raises(UsageError, match=r"has a field \{mood\}; there are \{task\}"):
        proposal(thinker, prompt=str(file))
    file.write_text("Go.")
    with pytest.raises(UsageError, match="has no field, so every question would be the same; there are"):
        proposal(thinker, prompt=str(file))
    file.write_text("{task}")
    with pytest.raises(UsageError, match="has changed"):
        proposal(thinker, prompt=f"{file}#0123456789ab")


def test_an_unknown_field_is_refused_before_the_model_is_asked_for(tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_text("{task} {skill}")
    nowhere = "openai:x?base_url=http://127.0.0.1:1/v1"
    wrong = {"prompt": str(file)}
    for method, own in (("zero-shot", {"prior": wrong}), ("spring", wrong), ("motif", {"preference": wrong})):
        with pytest.raises(UsageError, match=r"has a field \{skill\}"):
            hunch.train(method, "hunch/Craft-v0", lm=nowhere, **own)
    check_prompts(Plan4MCConfig(graph=EntryConfig(prompt=str(file))))


def test_the_digest_of_the_template_is_in_the_settings_of_a_run(tmp_path):
    file, run = tmp_path / "prompt.txt", ["run", "zero-shot", "--env", LAKE, "--lm", "scripted:frozenlake"]
    run += ["--steps", "20", "--prior.prompt", str(file), "--out", str(tmp_path / "run")]
    file.write_text("{observation}\n{actions}\n>")
    main(run)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert re.fullmatch(r".*prompt\.txt#[0-9a-f]{12}", config["run"]["options"]["prior"]["prompt"])
    hunch.load(tmp_path / "run")
    file.write_text("{observation}\n{actions}\n>>")
    with pytest.raises(SystemExit, match="2"):
        main(run)


def test_a_setting_that_is_not_used_is_not_in_the_settings_of_a_run(tmp_path):
    main(
        ["run", "zero-shot", "--env", LAKE, "--lm", "uniform", "--steps", "5", "--out", str(tmp_path / "run")]
    )
    prior = json.loads((tmp_path / "run" / "config.json").read_text())["run"]["options"]["prior"]
    assert {"max_tokens", "prompt", "effort", "patience", "structured", "read"}.isdisjoint(prior)


OWN = {
    "zero-shot": ("--prior.prompt", LAKE, "--steps", "3"),
    "kwon": ("--judge.prompt", "hunch/Ultimatum-v0", "--steps", "4"),
    "motif": ("--preference.prompt", *RUNS["motif"]),
    "ellm": ("--suggestions.prompt", "hunch/Craft-v0", "--steps", "4"),
    "spring": ("--prompt", "hunch/Craft-v0", "--steps", "2", "--ask", "direct"),
    "eureka": ("--prompt", *RUNS["eureka"]),
    "icpi": ("--prompt", *RUNS["icpi"]),
}


@pytest.mark.parametrize("method", OWN)
def test_every_role_takes_ones_own_words(method, thinker, tmp_path):
    option, env, *options = OWN[method]
    file = tmp_path / "own.txt"
    file.write_text("MINE {task}\n{history}\n{examples}{observation}\n{actions}")
    command = ["run", method, "--env", env, "--lm", spec(thinker), option, str(file), *options]
    with warnings.catch_warnings(action="ignore", category=HunchWarning):
        main([*command, "--out", str(tmp_path / "run")])
    (message,) = asked(thinker)["messages"]
    assert message["content"].startswith("MINE ")


HEURISTIC = "```python\ndef priority(el, n):\n    return 0.0\n```"
# The environment, what the prompt has in it, a right answer, and how it is read.
ASKED = {
    "prior": (LAKE, "You are allowed to take", "I would go up: Go Up", "Go Up"),
    "judge": ("hunch/MatrixGame-v0", "The objective:", "Yes, it does.", "Yes"),
    "preference": ("hunch/Craft-v0", "Which of the two shows more progress", "2", "2"),
    "goal": ("hunch/Craft-v0", "sensible and useful to do", "- collect wood", "['collect wood']"),
    "spring": ("hunch/Craft-v0", "Which of these actions is the best", "collect wood", "collect wood"),
    "world-model": ("hunch/Chain-v0", "state", "assert not done", "False"),
    "writer": ("hunch/Heuristic-BinPacking-v0", "priority", HEURISTIC, "def priority"),
    "plan4mc": ("hunch/Craft-v0", "nearby afterwards", "unknown", "unknown"),
    "rl-adapter": ("hunch/Craft-v0", "should the player try next", "collect wood", "['collect wood']"),
}


class Silent(Model):
    verbs = frozenset({"generate"})
    name, revision = "silent", "1"

    def generate(self, prompts, k=1, sampling=None, first=0):
        return [[""] * k for _ in prompts]


ROLE = {"plan4mc": "planner", "rl-adapter": "goal", "spring": "policy"}


@pytest.mark.parametrize("role", ASKED)
def test_the_command_shows_how_every_role_asks_and_how_an_answer_is_read(role, thinker, capsys):
    env, asks, right, read = ASKED[role]
    for answer in (right, "The lake is pretty."):
        thinker.decide = lambda prompt, answer=answer: answer
        with warnings.catch_warnings(action="ignore", category=HunchWarning):
            main(["lm", spec(thinker), "--ask", role, "--env", env])
        prompt, _, out = capsys.readouterr().out.partition("---- answer ----")
        assert asks in prompt
        assert answer in out
        if answer == right:
            assert f"Read as: {read}" in out
        else:
            told = f"Read as: nothing of use. An answer {ANSWERS[ROLE.get(role, role)]}; more max-tokens"
            assert told in out or role == "writer"  # any text may be a program


def test_advice_names_the_command_for_the_roles_that_it_knows():
    assert set(ANSWERS) - set(NOT_SHOWN) == set(ROLES) - {"encoder"}
    assert {role for role in ANSWERS if "hunch lm" in remedy(role)} == set(ANSWERS) - set(NOT_SHOWN)


def test_where_any_text_is_an_action_the_model_is_asked_as_policy(thinker, tmp_path, capsys):
    thinker.decide = lambda prompt: "A brook by the sea."
    env = "hunch/Constraints-v0"
    main(["lm", spec(thinker), "--ask", "policy", "--env", env])
    assert "Read as: A brook by the sea." in capsys.readouterr().out
    main(
        [
            "run",
            "zero-shot",
            "--env",
            env,
            "--lm",
            spec(thinker),
            "--steps",
            "4",
            "--out",
            str(tmp_path / "r"),
        ]
    )
    said = "".join(capsys.readouterr())
    assert " as policy: first answers: 'A brook by the sea.'" in said
    assert "as prior" not in said
    with pytest.raises(SystemExit, match="2"):
        main(["lm", spec(thinker), "--ask", "actor", "--env", env])
    assert "--ask actor is now --ask policy" in capsys.readouterr().err


def test_few_questions_are_enough_for_a_role_that_asks_much(thinker):
    thinker.decide = lambda prompt: "1"
    main(["lm", spec(thinker), "--ask", "preference", "--env", "hunch/Craft-v0"])
    assert len(thinker.asked) < 40


def test_an_answer_of_nothing_is_said_to_be_none(capsys):
    model = FirstAnswer(Silent())
    model.shows = True
    judge = Judge(model)
    judge.begin(World(), 0)
    with pytest.raises(AnsweredError, match=r"the model said nothing\. An answer has to say yes or no"):
        judge.judged(["Is it so?"])


def test_the_plain_command_shows_an_answer(thinker, capsys):
    thinker.decide = lambda prompt: "The lake is pretty."
    main(["lm", spec(thinker)])
    assert "'The lake is pretty.'" in capsys.readouterr().out


def test_roles_without_a_written_answer_show_what_the_model_gives(capsys):
    main(["lm", "pocket", "--ask", "planner", "--env", "hunch/Kitchen-v0"])
    out = capsys.readouterr().out
    assert "---- log-probabilities ----" in out
    assert "grasp the apple" in out
    main(["lm", "bag-of-words", "--ask", "encoder", "--env", LAKE])
    assert " numbers, [" in capsys.readouterr().out


def test_a_role_takes_the_options_of_its_method(thinker, tmp_path, capsys):
    (tmp_path / "own.txt").write_text("MINE {task}")
    thinker.decide = lambda prompt: "Yes"
    own = ("--judge.prompt", str(tmp_path / "own.txt"))
    main(["lm", spec(thinker), "--ask", "judge", "--env", "hunch/MatrixGame-v0", *own])
    assert "---- prompt ----\nMINE " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("--ask", "prior"), "--env is missing"),
        (("--ask", "king", "--env", LAKE), "--ask takes a role (prior, judge,"),
        (("--ask",), "--ask takes a role (prior, judge,"),
        (("--ask", "goal", "--env", "hunch/Heuristic-BinPacking-v0"), "chooses from listed actions"),
        (("--ask", "prior", "--env", LAKE, "--kk", "3"), "There is no option --kk"),
    ],
)
def test_a_wrong_question_is_one_sentence(line, says, thinker, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["lm", spec(thinker), *line])
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert says in errors


def test_a_model_that_thinks_has_no_letter_as_its_next_token(thinker):
    model = lm.load(spec(thinker), cache=None)
    assert "label" not in model.verbs
    with pytest.raises(UsageError, match="begins its answers with thoughts"):
        build_prior(PriorConfig(way="label"), model)
