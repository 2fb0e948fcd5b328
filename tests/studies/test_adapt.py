"""Recorded decompositions of TextCraft: read, carried out again, and judged."""

import gzip
import json

import pytest

from hunch.cli.main import main
from hunch.core import UsageError
from hunch_studies.adapt import markdown
from hunch_studies.adapt_records import Hand, again, agreement, flaw, named, recorded, understood
from hunch_studies.worlds.textcraft import Book

COMMANDS = """Crafting commands:
craft 4 oak planks using 1 oak logs
craft 4 stick using 2 planks
craft 1 ladder using 7 stick
craft 1 white wool using 4 string
craft 1 painting using 8 stick, 1 wool

"""
PLANS = [
    "craft ladder. at depth 1, success: False",
    "['fetch 7 stick', 'craft ladder using 7 stick'] at depth 2 and logic AND",
    "fetch 7 stick at depth 2, success: False",
    "['fetch 4 planks', 'craft 4 stick using 2 planks', 'craft 4 stick using 2 planks'] at depth 3 "
    "and logic AND",
    "fetch 4 planks at depth 3, success: False",
    "['fetch 1 oak log', 'craft 4 oak planks using 1 oak log'] at depth 4 and logic AND",
    "fetch 1 oak log at depth 4, success: True",
    "craft 4 oak planks using 1 oak log at depth 4, success: False",
]
TRACE = """ think: I should look.
OK.
> inventory
Inventory: [oak logs] (2)\x20
> get 1 stick
Could not find stick
> craft 4 oak planks using 1 oak logs
Crafted 4 minecraft:oak_planks
> craft 4 oak planks using 3 oak logs
Could not find a valid recipe
>
"""
AT_ONCE = {"plans": ["craft ladder. at depth 1, success: True"], "reward": 0}
EPISODE = {"problem": "craft ladder.", "commands": COMMANDS, "trace": TRACE, "plans": PLANS, "reward": 0}
BOOK = Book.read(COMMANDS.partition(":")[2])


def written(folder, data, packed=False, name="ADaPT_maxd3_textcraft_some-model.json"):
    (folder / "results").mkdir()
    text = data if isinstance(data, str) else json.dumps(data)
    path = folder / "results" / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return folder


def episodes(folder, *entries):
    data = {f"env_{i}": {**EPISODE, **entry} for i, entry in enumerate(entries)}
    (read,) = recorded(written(folder, {**data, "overall": {"rate": 0.5}})).values()
    return read


@pytest.mark.parametrize("packed", [False, True])
def test_a_tree_is_read_as_it_was_tried(tmp_path, packed):
    found = recorded(written(tmp_path, {"env_0": EPISODE}, packed))
    ((model, (episode,)),) = found.items()
    assert model == "some-model"
    assert (episode.goal, episode.success, len(episode.book.recipes)) == ("ladder", False, 5)
    root = episode.root
    assert [part.task for part in root.parts] == ["fetch 7 stick", "craft ladder using 7 stick"]
    assert len(root.tried) == 1  # the model never came to the last step
    logs, planks = root.tried[0].tried[0].tried
    assert (logs.said, planks.said) == (True, False)


def test_recorded_steps_are_carried_out_to_the_letter_or_further(tmp_path):
    (episode,) = episodes(tmp_path, {})
    assert [again(episode, 0, levels) for levels in range(4)] == [False, False, False, True]
    assert [again(episode, 1, levels) for levels in range(4)] == [False, False, True, True]
    assert [again(episode, 9, levels) for levels in range(4)] == [True] * 4


def test_a_step_that_is_not_enough_fails(tmp_path):
    short = [line.replace(", 'craft 4 stick using 2 planks']", "]") for line in PLANS]
    (episode,) = episodes(tmp_path, {"plans": short})
    assert not again(episode, 0, 3)  # four sticks are no seven


@pytest.mark.parametrize(
    ("task", "steps", "wrong"),
    [
        ("fetch 7 stick", ["fetch 4 planks", *["craft 4 stick using 2 planks"] * 2], ""),
        ("fetch 7 stick", ["fetch 2 planks", *["craft 4 stick using 2 planks"] * 2], "too little is fetched"),
        ("fetch 7 stick", ["fetch 2 planks", "craft 4 stick using 2 planks"], "too little is made"),
        ("fetch 1 stick", ["fetch 1 planks", "craft 1 stick using 1 planks"], "there is no such recipe"),
        ("fetch 1 stick", ["look around"], "a step is not understood"),
        ("fetch 4 planks", ["fetch 1 oak log", "craft 4 oak planks using 1 oak log"], ""),
        ("craft 1 painting", ["fetch 8 stick", "fetch 1 wool", "craft painting using 8 stick, 1 wool"], ""),
    ],
)
def test_a_decomposition_is_judged_by_the_recipes(task, steps, wrong):
    assert flaw(BOOK, task, steps) == wrong


def test_steps_are_understood_in_the_names_of_the_recipes():
    assert named(BOOK, "oak log") == "oak logs"
    assert named(BOOK, "unicorn") == "unicorn"
    assert understood(BOOK, "craft 2 ladder using 7 sticks.").inputs == (("stick", 7),)
    assert understood(BOOK, "craft ladder.").inputs == ()
    assert understood(BOOK, "craft ladder using sticks") is None
    assert understood(BOOK, "dance") is None


def test_a_hand_works_out_as_many_recipes_as_it_reaches():
    step = "fetch 7 stick"
    assert Hand(BOOK, 0).do(step, {}) is None
    assert Hand(BOOK, 1).do(step, {}) is None
    assert Hand(BOOK, 1).do(step, {"oak planks": 4})["stick"] == 8
    assert Hand(BOOK, 2).do(step, {})["stick"] == 8
    assert Hand(BOOK, 0).do(step, {"stick": 7}) == {"stick": 7}


def test_our_world_answers_as_the_recorded_one(tmp_path):
    (episode,) = episodes(tmp_path, {})
    assert agreement(episode) == [True, True, True]
    other = TRACE.replace("Could not find stick", "Got 1 stick")
    (tmp_path / "other").mkdir()
    (episode,) = episodes(tmp_path / "other", {"trace": other})
    assert agreement(episode) == [False, True, True]


def test_the_page_counts_failures_of_plan_and_of_execution_apart(tmp_path):
    wrong = [
        line.replace("fetch 4 planks', 'craft 4 stick using 2 planks', ", "fetch 2 planks', ")
        for line in PLANS
    ]
    wrong = [line.replace("fetch 4 planks", "fetch 2 planks") for line in wrong]
    page = markdown("some-model", episodes(tmp_path, {}, {"plans": wrong}, AT_ONCE))
    assert "execution: without errors the recorded plan reaches the goal | 1 " in page
    assert "plan: a decomposition is wrong | 1 " in page
    assert "plan: the next necessary step was never decomposed | 1 " in page
    assert "of these 1 were not" in page


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", "is damaged"),
        ("[]", "has no episodes"),
        ({"overall": {}}, "has no episodes"),
        ({"env_0": {}}, "the episode env_0 cannot be read: 'problem'"),
        ({"env_0": {**EPISODE, "plans": []}}, "the episode env_0 cannot be read"),
        ({"env_0": {**EPISODE, "plans": PLANS[2:]}}, "is not a step of level 1"),
        ({"env_0": {**EPISODE, "plans": [*PLANS, "more"]}}, "the episode env_0 cannot be read"),
        ({"env_0": {**EPISODE, "commands": "no commands"}}, "not a crafting command"),
        ({"env_0": 7}, "the episode env_0 cannot be read"),
    ],
)
def test_files_of_another_form_are_refused_in_one_sentence(tmp_path, data, problem):
    with pytest.raises(UsageError, match=problem) as caught:
        recorded(written(tmp_path, data))
    assert "\n" not in str(caught.value)


def test_damaged_and_missing_files_are_named(tmp_path):
    with pytest.raises(UsageError, match="There is no folder"):
        recorded(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"a clone of github\.com/archiki/ADaPT"):
        recorded(tmp_path)
    path = tmp_path / "ADaPT_maxd3_textcraft_m.json.gz"
    path.write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(UsageError, match="is damaged"):
        recorded(tmp_path)


def test_the_study_by_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = written(tmp_path, {"env_0": EPISODE})
    main(["study", "adapt", "--data", str(data)])
    page = (tmp_path / "runs" / "study-adapt" / "page.md").read_text()
    assert "Recorded model `some-model`, 1 episodes, evidence L2." in page
    with pytest.raises(SystemExit):
        main(["study", "adapt"])
    assert "--data" in capsys.readouterr().err
