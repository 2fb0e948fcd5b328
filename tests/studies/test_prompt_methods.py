"""Methods that edit prompts, in Prompting."""

import json

import pytest

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.roles.encoder.features import TextTable


@pytest.mark.parametrize("edits", ["random", "none"])
def test_the_contract_of_controls_of_edits(edits):
    table = TextTable(lm.load("bag-of-words"))
    agent = methods.find("tempera").agent_class(table, edits=edits, horizon=4)
    methods.check(agent, hunch.make("hunch/Prompting-v0", play="edit", max_steps=3), steps=12)


def test_a_log_of_ones_own_is_enough(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    rows = [
        {"question": f"{colour} {i}", "prompt": prompt, "right": int(colour in prompt)}
        for i in range(6)
        for colour in ("red", "blue")
        for prompt in ("say red", "say blue", "say green")
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    bed = ["--env", "hunch/Prompting-v0", "--env.play", "choose", "--env.file", str(log)]
    learn = ["--data", str(log), "--steps", "20", "--encoder", "bag-of-words", "--out", str(out)]
    assert not main(["run", "prompt-oirl", *bed, *learn])
    assert json.loads((out / "summary.json").read_text())
    log.write_text(json.dumps({"prompt": "p", "right": 1}) + "\n")
    with pytest.raises(SystemExit) as left:
        main(["run", "prompt-oirl", *bed, *learn[:-1], str(tmp_path / "other")])
    assert left.value.code == 2
    assert "has no question" in capsys.readouterr().err
