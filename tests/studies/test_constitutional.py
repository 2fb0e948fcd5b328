"""Constitutional AI: revisions by principles, what is learnt from them, mixed labels, resume, bad input."""

from contextlib import nullcontext

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning, State, Transition, UsageError
from hunch.lm.answers.cache import Cached
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.backends.scripted import ScriptedWriter

torch = pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

from hunch.roles.reward.preferences import Gold, Judged, Mixed  # noqa: E402
from hunch_contrib.tune.constitutional import question, revision  # noqa: E402
from hunch_studies.rules.critic import harms  # noqa: E402

ENV = "hunch/Recipes-v0"
SCRATCH = "scratch?width=32&layers=1&vocabulary=64"
PRINCIPLE = "The answer uses no food that the diet forbids."
ASKED = State("dish soup diet vegan pace quick :")
BAD = "boil chicken ; boil carrot ; serve"


@pytest.fixture
def principles(tmp_path):
    file = tmp_path / "principles.txt"
    file.write_text(f"{PRINCIPLE}\n")
    return str(file)


def made(principles, judge="scripted:critic", **options):
    found = methods.find("constitutional")
    small = {"lm": SCRATCH, "drafts": 4, "pairs": 2, "demonstrations": 2, "episodes": 4, "max_tokens": 4}
    config = methods.settings.configure(
        found.agent_class, None, {**small, "principles": principles, **options}
    )
    return found.build(config, {"judge": lm.load(judge)})


def improved(agent, text=BAD, state=ASKED):
    agent.rng = np.random.default_rng(0)
    return agent.improved([state] * 8, [text] * 8)


def test_a_revision_keeps_the_principle_and_leaves_the_rest(principles):
    [text, *_] = improved(made(principles))
    assert harms(ASKED.observation, BAD)
    assert not harms(ASKED.observation, text)
    assert text.split(" ; ")[1:] == BAD.split(" ; ")[1:]
    assert text.startswith("boil ")
    harmless = "boil carrot ; serve"
    assert set(improved(made(principles), harmless)) == {harmless}  # the critique finds nothing


def test_a_principle_about_something_else_and_no_critique_change_a_clause_by_chance(tmp_path, principles):
    other = tmp_path / "other.txt"
    other.write_text("The answer sounds like the sea.\n")
    texts = [
        f"wash onion ; boil chicken ; boil carrot ; add {spice} ; serve"
        for spice in ("salt", "cumin", "basil", "thyme")
    ]
    for agent in (made(str(other)), made(principles, critique=False)):
        found = [improved(agent, text)[0] for text in texts]
        assert any(harms(ASKED.observation, text) for text in found)
        assert any(new != old for new, old in zip(found, texts, strict=True))


def test_the_model_learns_to_write_like_the_revisions(principles):
    agent = made(principles, drafts=32, demonstrations=150, compare=False, max_tokens=12)
    agent.begin(hunch.core.World(streams=32, steps=32), 0)
    agent.agent.lm.take([f"{ASKED.observation} {BAD} onion noodle"])
    t = Transition(ASKED, BAD, 0.0, ASKED, True, False)
    agent.observe([t] * 32)
    told = agent.learn()
    assert told["revised"] == 1
    texts = agent.player(0).act([ASKED] * 20)
    assert np.mean([bool(harms(ASKED.observation, text)) for text in texts]) < 0.2
    assert agent.records()[0]["draft"] == BAD
    assert agent.learn() == {}  # without comparisons that is all


@pytest.mark.parametrize(("words", "revised"), [(3, 1.0), (600, 0.0)])
def test_a_revision_that_the_model_cannot_read_leaves_its_draft(principles, words, revised):
    agent = made(principles, drafts=4, compare=False, critique=False, max_tokens=4, lm="pocket?corpus=walks")
    long_winded = ScriptedWriter("long-winded", lambda prompt, rng: "Revision: " + "serve " * words)
    agent.asking = Asking(long_winded, AskConfig(), tokens=2_000, stop=())
    agent.begin(hunch.core.World(streams=4, steps=4), 0)
    agent.observe([Transition(ASKED, BAD, 0.0, ASKED, True, False)] * 4)
    too_long = pytest.warns(HunchWarning, match="4 of 4 revisions do not fit into what pocket")
    with too_long if words == 600 else nullcontext():
        assert agent.learn()["revised"] == revised
    assert (agent.records()[0]["text"] == BAD) == (revised == 0)


def test_mixed_labels_come_from_both():
    mixed = Mixed(Gold(0.0), lm.load("scripted:critic"), (PRINCIPLE,))
    harmful = Transition(ASKED, BAD, 9.0, ASKED, True, False)
    harmless = Transition(ASKED, "boil carrot ; serve", 1.0, ASKED, True, False)
    shares = mixed.compare([(harmful, harmless)] * 40, np.random.default_rng(0))
    assert sorted(set(shares)) == [0.0, 1.0]
    assert sum(shares) == 20  # gold prefers the first, the judge the second
    assert mixed.evidence == "L0"


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"compare": False}, marks=pytest.mark.thorough),
        pytest.param({"labels": "gold", "revisions": 2}, marks=pytest.mark.thorough),
    ],
)
def test_the_agent_keeps_its_contract(principles, options):
    methods.check(made(principles, **options), hunch.make(ENV), steps=24, streams=2)


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", ["scripted:critic?refusal=1", "scripted:critic?malformed=1"])
def test_a_critic_that_refuses_or_writes_prose_is_refused_in_a_sentence(principles, judge):
    with pytest.raises(UsageError, match="wrote no revision in 8 answers, such as"):
        improved(made(principles, judge))
    assert revision("Sure!\nRevision: boil carrot ; serve\nEnjoy.") == "boil carrot ; serve"
    assert revision("boil carrot ; serve") is None
    assert PRINCIPLE in question(ASKED, BAD, PRINCIPLE)


def test_what_a_silent_critic_and_a_silent_judge_should_have_written_is_said(principles):
    agent = made(principles, critique=False)
    silent = Cached(ScriptedWriter("silent", lambda prompt, rng: ""))
    agent.asking.lm = silent
    agent.rng = np.random.default_rng(0)
    needed = "has to hold the whole revised answer"
    with pytest.warns(HunchWarning, match=needed), pytest.raises(HunchError, match=needed):
        agent.improved([ASKED] * 60, [BAD] * 60)
    assert list(silent.first_answers.answers) == ["reviser"]

    silent = Cached(ScriptedWriter("silent", lambda prompt, rng: ""))
    one, other = (Transition(ASKED, text, 0.0, ASKED, True, False) for text in (BAD, "serve"))
    needed = "has to be 1, 2 or none; 'hunch lm SPEC --ask preference"
    with pytest.warns(HunchWarning, match=needed), pytest.raises(HunchError, match=needed):
        Judged(silent).compare([(one, other)] * 60, np.random.default_rng(0))
    assert list(silent.first_answers.ways) == ["preference"]


def test_a_dry_run_estimates_the_judge_without_asking_it(tmp_path, principles, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["run", "constitutional", "--env", ENV, "--lm", SCRATCH, "--judge", "scripted:critic"]
    main(
        [*command, "--principles", principles, "--drafts", "8", "--pairs", "8", "--steps", "100", "--dry-run"]
    )
    assert "no model was asked" in capsys.readouterr().out


def test_the_command_refuses_an_empty_file_and_a_run_that_is_too_short(tmp_path, principles, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    command = ["run", "constitutional", "--env", ENV, "--lm", SCRATCH, "--judge", "scripted:critic"]
    for file, steps, told in (
        (str(empty), 9_000, "holds no principle"),
        (principles, 600, "Drafts and pairs need"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--principles", file, "--steps", str(steps), "--out", str(tmp_path / "x")])
        assert stopped.value.code == 2
        assert told in capsys.readouterr().err
