"""Control characters of others do not reach the terminal."""

import io
import sys
import unicodedata

import pytest

from hunch.cli.main import main
from hunch.printable import PrintableStream, printable

CLEAR, TITLE = "\x1b[2J\x1b[H", "\x1b]0;owned\x07"
ATTACKS = (CLEAR, TITLE, "\x9b2J", "\x08\x08", "\x7f", "\u202e", "\u2066", "\udc80", "a\rb", "\x00")


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_printable_form(attack):
    shown = printable(f"one\n\ttwo{attack}")
    assert shown.startswith("one\n\ttwo")
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown.replace("\n", "").replace("\t", ""))
    assert all(c not in shown for c in "\u202e\u2066")
    assert printable(shown) == shown


def test_other_texts_stay():
    text = "Größe 漢字 🙂 é\u0301 \u200d\nא"
    assert printable(text) == text


def test_a_stream_lets_colours_through():
    under = io.StringIO()
    stream = PrintableStream(under)
    stream.write(f"\x1b[1;31mred\x1b[0m\r\n{CLEAR}{TITLE}")
    assert under.getvalue() == "\x1b[1;31mred\x1b[0m\r\n\\x1b[2J\\x1b[H\\x1b]0;owned\\x07"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", f"ppo{TITLE}"],
        ["run", "ppo", "--env", f"hunch/{CLEAR}"],
        ["report", f"nowhere{TITLE}"],
        ["evaluate", f"nowhere{CLEAR}"],
        ["data", "show", f"nowhere{TITLE}"],
        [f"none{TITLE}"],
    ],
)
def test_messages_of_the_command_are_printable(arguments, capsys):
    streams = sys.stdout, sys.stderr
    with pytest.raises(SystemExit):
        main(arguments)
    assert (sys.stdout, sys.stderr) == streams
    captured = capsys.readouterr()
    assert captured.err
    assert not {"\x1b", "\x07"} & {*captured.err, *captured.out}
