"""Zero-shot where any text is an action: what a model is asked, and what its answers do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.lm.talker import Talker, chat, only_chat
from tests.started import answering

import hunch
from hunch import lm
from hunch.cli.main import main
from hunch.core import State, Transition, UsageError, World
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.invalid import is_invalid
from hunch.lm.answers.cache import Cached
from hunch.lm.backends.scripted import ScriptedWriter
from hunch.lm.speaker import GAP, Speaker, action_in, without_repeats, without_reply
from hunch.methods.prior.zero_shot import ZeroShot
from hunch.roles.prior.kinds import PriorConfig, build_prior

ID = "tests.methods.test_zero_shot:Doors"


class Doors(TextEnv):
    """Say the number of the open door; an answer without a number is refused. Door n is open at step n."""

    offers = ("free_text", "events")

    def __init__(self, *, max_steps: int = 6, render_mode: str | None = None) -> None:
        super().__init__(max_steps, render_mode)
        self.task = "go through three doors"
        self.passed = 0

    def _begin(self, options):
        self.passed = 0
        return Outcome("You stand before door 0. Say its number.", None)

    def _move(self, action):
        if not action.isdecimal():
            return Outcome("That is no number.", None, event="Invalid action: no number")
        self.passed += action == str(self.passed)
        won = self.passed == 3
        seen = f"You stand before door {self.passed}. Say its number."
        return Outcome(seen, None, float(won), won, success=won, event="")


@pytest.fixture
def talker(monkeypatch, tmp_path):
    """A server of a chat model that answers as a test says."""
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    with answering(Talker()) as running:
        running.answer = only_chat
        yield running


def spec(server):
    return f"openai:m?base_url={server.url}&retries=2"


def conversations(server):
    """The messages of the questions of the run, without those of the model's loading."""
    bodies = [body["messages"] for path, body in server.asked if "chat" in path]
    return [messages for messages in bodies if "go through three doors" in messages[0]["content"]]


def opener(path, body):
    """Names the door of the last observation, first within words that are no number."""
    if path.endswith("/models") or "chat" not in path:
        return only_chat(path, body)
    messages = body["messages"]
    last = messages[-1]["content"]
    if last.startswith("You stand before door 0") and len(messages) == 2:
        return chat("the first one")
    number = next(
        (m["content"].split("door ")[1][0] for m in reversed(messages) if "door " in m["content"]), "?"
    )
    return chat(f"<think>door {number}?</think>\n> {number}")


def test_a_chat_model_plays_with_its_history_and_refused_moves_are_counted(talker, tmp_path):
    talker.answer = opener
    out = tmp_path / "run"
    main(
        [
            "run",
            "zero-shot",
            "--env",
            ID,
            "--lm",
            spec(talker),
            "--steps",
            "8",
            "--eval-episodes",
            "1",
            "--out",
            str(out),
        ]
    )
    episodes = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
    assert episodes[0]["success"]
    assert episodes[0]["actions"] == ["the first one", "0", "1", "2"]
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    refused = [row["invalid_rate"] for row in metrics if "invalid_rate" in row]
    assert np.mean(refused) == pytest.approx(2 / 8)
    longest = max(conversations(talker), key=len)
    assert [m["role"] for m in longest] == ["system", *["user", "assistant"] * 3, "user"]
    assert longest[1]["content"] == "You stand before door 0. Say its number."
    assert [m["content"] for m in longest if m["role"] == "assistant"] == ["the first one", "0", "1"]


def test_turns_limit_the_history_and_a_prompt_file_replaces_the_words(talker, tmp_path):
    talker.answer = opener
    file = tmp_path / "prompt.txt"
    file.write_text("go through three doors, please: {task}\nSo far:\n{history}\nNow: {observation}")
    command = ["run", "zero-shot", "--env", ID, "--steps", "6", "--lm", spec(talker), "--eval-episodes", "1"]
    main([*command, "--turns", "1", "--prior.max-tokens", "77", "--out", str(tmp_path / "one")])
    assert {len(messages) for messages in conversations(talker)} == {2, 4}
    assert talker.asked[-1][1]["max_tokens"] == 77
    talker.asked.clear()
    main([*command, "--prior.prompt", str(file), "--out", str(tmp_path / "two")])
    (words,) = {messages[-1]["content"] for messages in conversations(talker)[1:2]}
    assert words.startswith(
        "go through three doors, please: go through three doors\nSo far:\nYou stand before"
    )
    assert "> " in words


def test_with_the_blank_prompt_a_model_that_writes_does_not_read_the_task(talker, tmp_path):
    talker.answer = opener
    command = ["run", "zero-shot", "--env", ID, "--steps", "4", "--lm", spec(talker), "--eval-episodes", "1"]
    main([*command, "--prior.blank", "--out", str(tmp_path / "run")])
    asked = [body["messages"] for path, body in talker.asked if "chat" in path]
    played = [messages for messages in asked if "You stand before door" in messages[-1]["content"]]
    assert max(map(len, played)) == 8, "a conversation with three earlier turns"
    assert not conversations(talker)


@pytest.mark.parametrize(("thinks", "rooms"), [(False, [256, 2048]), (True, [2048])])
def test_a_model_that_does_not_think_is_asked_with_little_room_first(talker, thinks, rooms):
    """And again if its answer was cut; one that thinks gets all the room at once."""

    def answer(path, body):
        if "door" not in str(body):
            return chat("<think>Well" if thinks else "blue") if "chat" in path else only_chat(path, body)
        cut = {"finish_reason": "length"} if body["max_tokens"] == 256 else {}
        return chat("a long way to say 7" if cut else "7", **cut)

    talker.answer = answer
    model = lm.load(spec(talker), cache=None)
    assert model.thinks is thinks
    state = State("You stand before a door.", "go", None)
    assert Speaker(model, PriorConfig()).write([state], [[]], 0) == ["7"]
    asked = [body["max_tokens"] for _, body in talker.asked if "door" in str(body)]
    assert asked == rooms
    talker.asked.clear()
    Speaker(model, PriorConfig(max_tokens=99)).write([state], [[]], 1)
    assert [body["max_tokens"] for _, body in talker.asked] == [99]


def test_the_same_run_goes_on_after_a_stop(talker, tmp_path):
    """Half of the run, and the rest later: the same episodes as in one go."""
    agent = hunch.methods.ZeroShot(hunch.roles.UniformPrior(), lm=lm.load(spec(talker), cache=None))
    agent.begin(World(), 0)
    state = State("You stand before door 0.", "go", None)
    agent.observe([Transition(state, "left", 0.0, State("Closed."), False, False, event="Invalid move")])
    kept = agent.state_dict()
    other = agent.player(0)
    other.load_state_dict(kept)
    assert other.past == {0: [("You stand before door 0.", "left")]}
    assert other.learn() == {"invalid_rate": 1.0}
    early = {name: value for name, value in kept.items() if name in ("rng", "fallbacks")}
    other.load_state_dict(early)
    assert other.past == {}


def test_a_model_that_cannot_write_is_refused(tmp_path):
    with pytest.raises(UsageError, match="needs a model that writes as --lm; minilm cannot"):
        hunch.train("zero-shot", ID, 2, lm="minilm", out=tmp_path / "run")


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("> go north", "go north"),
        ("Action: [4]", "[4]"),
        ("**Action:** [4]", "[4]"),
        ('"[up]"', "[up]"),
        ('`open "the door"`', 'open "the door"'),
        ("```text\nDear user,\nno.\n```", "Dear user,\nno."),
        ('"yes" and "no"', '"yes" and "no"'),
        ("<think>left or right</think>\n\nright", "right"),
        ("<think>left or", ""),
        ("", ""),
        ("Éteins la lampe 🕯", "Éteins la lampe 🕯"),
    ],
)
def test_an_answer_is_read_as_the_action_that_it_holds(answer, action):
    assert action_in(answer) == action


def test_what_the_observation_repeats_is_shown_once():
    rules = "The rules of the game.\n" + "A move is a number in brackets.\n" * 20
    transcript = f"{rules}[Player] [3]\nToo low."
    assert without_repeats([(rules, "[3]")], transcript) == []
    assert without_repeats([(f"{rules}Too high.", "[9]")], f"{rules}Too low.") == [
        (f"{GAP}\nToo high.", "[9]")
    ]
    assert without_repeats([("A door.", "open")], "A door. It is shut.") == [("A door.", "open")]
    assert without_repeats([("Nothing.", "wait")], "Nothing.") == [("Nothing.", "wait")]


def test_equal_prompts_get_samples_of_their_own():
    """Parallel episodes that begin alike do not all go the same way."""
    model = lm.load("pocket")
    states = [State("You see a door.", "leave", None, stream=i) for i in range(6)]
    speaker = Speaker(model, PriorConfig(max_tokens=8))
    written = speaker.write(states, [[]] * 6, 5)
    assert len(set(written)) > 1
    assert speaker.write(states, [[]] * 6, 5) == written
    assert speaker.write(states[:1], [[]], 5) == written[:1]


@pytest.mark.parametrize(
    ("event", "seat", "invalid"),
    [
        ("Nothing happens.", 0, True),
        ("Invalid Move: no number", 0, True),
        ("Invalid move of player 1", 0, False),
        ("Invalid move of player 1", 1, True),
        ("The door is invalid", 0, False),
        ("", 0, False),
    ],
)
def test_a_refused_move_is_known_by_its_event(event, seat, invalid):
    state = State("", seat=seat)
    assert is_invalid(Transition(state, "x", 0.0, state, False, False, event=event)) is invalid


# ---- playing and evaluating -------------------------------------------------------------------------------


def typed(monkeypatch, *lines):
    left = iter(lines)

    def answer(self, *_, **__):
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("rich.console.Console.input", answer)


def test_any_text_is_played_by_hand_and_a_command_has_a_slash(monkeypatch, capsys):
    typed(monkeypatch, "quit", "/undo", "0", "/help", "/nothing", "", "1", "2")
    main(["play", ID])
    shown = capsys.readouterr().out
    assert "That is no number." in shown
    assert "/undo" in shown
    assert "There is no command '/nothing'" in shown
    assert "Solved; 3 actions, return 1." in shown


def test_a_model_plays_and_knows_what_it_did_also_after_undo(talker, monkeypatch, capsys):
    talker.answer = opener
    main(["play", ID, "--lm", spec(talker), "--auto", "--pause", "0"])
    assert "Solved; 4 actions, return 1." in capsys.readouterr().out
    talker.asked.clear()
    typed(monkeypatch, "", "/undo", "0", "")
    main(["play", ID, "--lm", spec(talker)])
    said = [
        [m["content"] for m in messages if m["role"] == "assistant"] for messages in conversations(talker)
    ]
    assert said[-1] == ["0"], "the answer that was taken back is forgotten"


def test_a_run_of_a_model_that_writes_is_evaluated_and_played(talker, tmp_path, capsys):
    talker.answer = opener
    out = str(tmp_path / "run")
    main(
        [
            "run",
            "zero-shot",
            "--env",
            ID,
            "--lm",
            spec(talker),
            "--steps",
            "4",
            "--eval-episodes",
            "1",
            "--out",
            out,
        ]
    )
    main(["evaluate", out, "--episodes", "2", "--turns", "3"])
    assert "success 1.00" in " ".join(capsys.readouterr().out.split())
    main(["play", "--run", out, "--auto", "--pause", "0"])
    assert "Solved; 4 actions" in capsys.readouterr().out


def test_a_model_is_the_opponent_in_a_game_of_two(talker, monkeypatch, capsys):
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    moves = iter(["[4]", "[5]", "[7]"])

    def opponent(path, body):
        told = str(body.get("messages", ""))
        return chat(next(moves), read=len(told) // 3) if "Current Board" in told else only_chat(path, body)

    talker.answer = opponent
    typed(monkeypatch, "[0]", "[1]", "[2]")
    main(["play", "textarena:TicTacToe-v0", "--lm", spec(talker)])
    shown = capsys.readouterr().out
    assert "Solved; 5 actions, returns 1, -1." in shown
    with pytest.raises(SystemExit):
        main(["play", "textarena:TicTacToe-v0", "--seat", "2"])


@pytest.mark.parametrize(
    ("action", "kept"),
    [
        ("[5]\n[GAME] The target number is lower.\n[Player] [4]", "[5]"),
        ("[GAME] [5]", "[GAME] [5]"),  # the first line is what it says, whatever stands before it
        ("I wait.\n\n[Player 1] Me too.", "I wait.\n\n[Player 1] Me too."),  # nobody of that name spoke
        ("[Buy] two\n[Sell] one", "[Buy] two\n[Sell] one"),  # marks of moves are no speakers
    ],
)
def test_an_action_ends_where_the_environment_would_speak(action, kept):
    observation = "[GAME] Guess. Moves:\n[Buy] n\n[Sell] n\n[Player] [7]\n[GAME] The target number is lower."
    assert without_reply(action, observation) == kept


@pytest.mark.parametrize(("settings", "tasks"), [({}, 1), ({"blank": True}, 20), ({"recent": 0}, 1)])
def test_equal_prompts_of_parallel_episodes_get_written_answers_of_their_own(settings, tasks):
    """Else episodes that begin alike would be copies of one episode, and count as several."""
    coin = Cached(ScriptedWriter("coin", lambda prompt, rng: ("left", "right")[int(rng.integers(2))]))
    agent = ZeroShot(build_prior(PriorConfig(way="text", **settings), coin), lm=coin)
    agent.begin(World(), 0)
    histories = [(("A wall.", "left"),) * (n if "recent" in settings else 0) for n in range(20)]
    forks = [
        State("A fork.", task=f"go {n % tasks}", actions=("left", "right"), history=past)
        for n, past in enumerate(histories)
    ]
    chosen = [agent.act(forks).count("left") for _ in range(5)]
    assert all(4 <= lefts <= 16 for lefts in chosen), "of twenty fair coins, hardly ever fewer or more"
