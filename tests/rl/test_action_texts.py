"""Actions as people type them, and actions that cannot be told apart."""

import unicodedata

import gymnasium
import pytest

from hunch.cli.play import matches
from hunch.core import UsageError
from hunch.envs import check
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.checker import ContractError
from hunch.envs.wrappers import Written
from hunch.rl.rollout import Rollout

DECOMPOSED = unicodedata.normalize("NFD", "ouvre la fenêtre")
ACTIONS = ("go ", "open  the door", DECOMPOSED, 'say "hello"', "it’s fine", "Take Ⅳ", "ÉTEINDRE", "7")


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        *((text, "go ") for text in ("go", " go ", "GO", "go\u00a0", "g\u200bo", '"go"', "'go '")),
        *(
            (text, "open  the door")
            for text in ("open the door", "Open The Door", " open   the door", "open")
        ),
        *(
            (text, DECOMPOSED)
            for text in ("ouvre la fenêtre", "Ouvre la fenetre", "“ouvre la fenêtre”", "ouv")
        ),
        *((text, 'say "hello"') for text in ("say “hello”", "say «hello»", "SAY")),
        *((text, "it’s fine") for text in ("it's fine", "It´s fine", "it")),
        *((text, "Take Ⅳ") for text in ("take iv", "take")),
        *((text, "ÉTEINDRE") for text in ("éteindre", "eteindre", "étein")),
        *((text, "7") for text in ("7", " 7 ")),
        *((text, "open  the door") for text in ("1", "1 ")),
    ],
)
def test_a_typed_action(answer, action):
    assert matches(answer, ACTIONS) == [action]


def test_what_may_mean_several_actions_is_not_guessed():
    assert matches("go", ("Go north", "go south")) == ["Go north", "go south"]
    assert matches("GO", ("go", "Go")) == ["go", "Go"]
    assert matches("Go", ("go", "Go")) == ["Go"]
    for nothing in ("", " ", "\u200b", '""', "fly"):
        assert matches(nothing, ACTIONS) == []


class Road(TextEnv):
    """Two ways."""

    def __init__(self, ways=("go ", "stay"), *, max_steps=5):
        super().__init__(max_steps)
        self.ways = ways

    def _begin(self, options):
        self.task = "go"
        return Outcome("A road.", self.ways)

    def _move(self, action):
        good = action == self.ways[0]
        return Outcome("A road.", self.ways, float(good), good, good)


@pytest.mark.parametrize("text", ["go ", "go", " go", "go\u00a0"])
def test_a_written_text_that_looks_like_an_action(text):
    env = Written(Road())
    env.reset(seed=0)
    assert env.step(text)[1] == 1.0
    env.reset(seed=0)
    assert env.step("Go north")[4]["event"] == "Nothing happens."


@pytest.mark.parametrize(
    "ways",
    [
        *(("go", other) for other in ("go ", " go", "go\u00a0", "g\u200bo", "go\x00", "go\n")),
        ("open the door", "open  the door"),
        ("caf\u00e9", "cafe\u0301"),
    ],
    ids=ascii,
)
def test_actions_that_look_the_same_are_refused_by_name(ways):
    both = f"{ways[0]!a} and {ways[1]!a} cannot be told apart"
    with pytest.raises(ContractError) as error:
        check(Road(ways))
    assert (error.value.rule, both in str(error.value)) == ("actions", True)
    with pytest.raises(UsageError) as refused:
        Rollout([Road(ways)])
    assert both in str(refused.value)


def test_actions_that_differ_to_a_reader_pass():
    ways = ("go", "Go", "gó", "go!", "go 1", "go 11", "x²", "x2")
    assert check(Road(ways)) is None


def test_playing_by_hand_needs_no_render_mode(tmp_path, monkeypatch, capsys):
    from hunch.cli.play import play

    class Anything(Road):
        """It takes any option, and passes it on to something that does not."""

        def __init__(self, **options):
            super().__init__(**dict(ways=("go ", "stay"), **options))

    for name, made in {"Road": Road, "Anything": Anything}.items():
        gymnasium.register(f"own/{name}-v0", entry_point=made)
        monkeypatch.setattr("builtins.input", lambda *_: "go")
        play([f"own/{name}-v0"])
        assert "Solved" in capsys.readouterr().out


def test_a_class_may_leave_render_modes_out():
    class Server(Road):
        metadata = {"reproducible": False}  # noqa: RUF012

    assert Server().reset(seed=0)[0] == "A road."
    with pytest.raises(UsageError, match="render_mode must be left out, not 'ansi'"):
        TextEnv.__init__(Server(), 5, "ansi")
