"""Text files as other programs write them."""

import ast
import json
from pathlib import Path

import pytest

from hunch.core import HunchError, UsageError
from hunch.envs.prompts import read
from hunch.rl.dataset import load, read_json_lines, save
from hunch.roles.reward.preferences import read_principles
from hunch.runs.settings_file import read_settings
from hunch.text_files import read_lines, read_text

ROOT = Path(__file__).parent.parent
EPISODE = {
    "observations": ["a room", "a hall"],
    "admissible": [["left", "right"], ["left"]],
    "actions": ["right"],
    "rewards": [1.0],
    "terminated": True,
    "truncated": False,
}
SIGNS = (
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1e",
    "\x7f",
    "\ufeff",
    "\0",
    "\r",
    "é",
    "e\u0301",
)


def written(sign):
    return {**EPISODE, "observations": [f"a room{sign}with a door", f"{sign}"]}


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"], ids=ascii)
def test_episodes_are_what_they_were(sign, ascii_only, mark, end, tmp_path):
    lines = [json.dumps(written(sign), ensure_ascii=ascii_only) for _ in range(2)]
    (tmp_path / "own.jsonl").write_bytes((mark + "".join(line + end for line in lines)).encode())
    data = read_json_lines(tmp_path / "own.jsonl", "hunch/FrozenLake-v0", {})
    assert [list(episode.observations) for episode in data.episodes] == [written(sign)["observations"]] * 2
    save(data, tmp_path / "data")
    assert load(tmp_path / "data").episodes == data.episodes


def test_an_action_with_the_character_0_is_stored_too(tmp_path):
    line = {**EPISODE, "actions": ["go\0"], "admissible": [["go\0", "stay"], []]}
    (tmp_path / "own.jsonl").write_text(json.dumps(line), encoding="utf-8")
    data = read_json_lines(tmp_path / "own.jsonl", "hunch/FrozenLake-v0", {})
    save(data, tmp_path / "data")
    assert load(tmp_path / "data") == data


def test_half_a_character_is_refused_by_name(tmp_path):
    (tmp_path / "own.jsonl").write_text(json.dumps(written("\ud800")), encoding="utf-8")
    with pytest.raises(UsageError, match=r"episode 0, step 0: the observation .* holds half a character"):
        read_json_lines(tmp_path / "own.jsonl", "hunch/FrozenLake-v0", {})


@pytest.mark.parametrize(
    ("encoding", "sentence"),
    [
        *((name, "is written in UTF-16: save it in UTF-8") for name in ("utf-16", "utf-16-le", "utf-16-be")),
        *(
            (name, r"is not a text in UTF-8 \(see line 2\): save it in UTF-8")
            for name in ("latin-1", "cp1252")
        ),
    ],
)
def test_other_encodings_are_refused_in_one_sentence(encoding, sentence, tmp_path):
    for name, text, reader in (
        (
            "own.jsonl",
            "{}\n" + json.dumps({"text": "Tür"}, ensure_ascii=False),
            lambda file: list(read(file, "text")),
        ),
        ("own.txt", "be kind\nno Übermut", read_principles),
        ("own.yaml", "steps: 20\nenv: Tür", read_settings),
        ("data.jsonl", "{}\n" + "Tür", lambda file: read_json_lines(file, "hunch/FrozenLake-v0", {})),
    ):
        (tmp_path / name).write_bytes(text.encode(encoding))
        with pytest.raises(HunchError, match=sentence) as error:
            reader(str(tmp_path / name))
        assert "\n" not in str(error.value)


def test_lines_end_in_a_line_feed_only(tmp_path):
    (tmp_path / "own.txt").write_bytes("\ufeffone\u2028a\r\ntwo\x85\n\nthree".encode())
    assert read_lines(tmp_path / "own.txt") == ["one\u2028a", "two\x85", "", "three"]
    (tmp_path / "own.txt").write_bytes(b"")
    assert (read_text(tmp_path / "own.txt"), read_lines(tmp_path / "own.txt")) == ("", [])


def without_encoding(path):
    """Lines that read or write a text file in the encoding of the machine's locale."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or any(word.arg in ("encoding", None) for word in node.keywords):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "write_text" or (
            name == "read_text" and isinstance(node.func, ast.Attribute) and not node.args
        ):
            yield node.lineno
        elif name == "open" and isinstance(node.func, ast.Name):
            mode = ast.unparse(node.args[1]) if len(node.args) > 1 else "'r'"
            if "b" not in mode:
                yield node.lineno


def test_every_text_file_is_opened_in_utf_8():
    files = [
        path
        for room in ("src", "contrib", "studies", "benchmarks", "examples")
        for path in (ROOT / room).rglob("*.py")
    ]
    assert len(files) > 300
    assert [f"{path.relative_to(ROOT)}:{line}" for path in files for line in without_encoding(path)] == []
