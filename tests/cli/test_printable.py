"""Control characters of others do not reach the terminal."""

import io
import sys
import unicodedata
from pathlib import Path

import pytest

import hunch
from hunch.cli.main import main
from hunch.printable import PrintableStream, printable
from hunch.runs.files import read_json, write_json

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


def test_a_return_inside_a_text_does_not_overwrite_the_line():
    under = io.StringIO()
    stream = PrintableStream(under)
    stream.write("1 of 2: bad\rgood\n")
    stream.write("\r50 %")  # a progress bar
    assert under.getvalue() == "1 of 2: bad\\x0dgood\n\r50 %"


def test_what_a_report_writes_is_printable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hunch.train("q-learning", "hunch/FrozenLake-v0", 40, out="run")
    config = read_json(Path("run/config.json"))
    config["run"]["env"] = f"hunch/{TITLE}\ud800\u202e-v0 $^{{$"
    write_json(Path("run/config.json"), config)
    Path("mine.png").write_text("mine")
    Path("page.png").symlink_to("mine.png")
    main(["report", "run", "--out", "page.html"])
    for name in ("page.html", "page.csv", "page.curves.csv"):
        text = Path(name).read_text(encoding="utf-8")
        named = "hunch/\\x1b]0;owned\\x07\\ud800\\u202e-v0" in text.replace("\\\\", "\\")
        assert named or name == "page.curves.csv"  # so short a run has no curve
        assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in text if c not in "\n\r\t")
        assert "\u202e" not in text
    assert Path("mine.png").read_text() == "mine"
    assert Path("page.png").read_bytes().startswith(b"\x89PNG")


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
