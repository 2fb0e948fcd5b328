"""The model of a run, in the forms that other programs load."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

import hunch
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.methods.tune.grpo import GRPOConfig
from hunch.runs.files import write_json
from hunch.runs.model_export import card, export_model
from hunch.runs.stored import read_record

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that trained adapters for a few texts."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    envs = [hunch.make("hunch/Household-Pick-v0", games=1, max_steps=2, written=True) for _ in range(2)]
    lm = "pocket?corpus=households&train=lora&rank=2"
    hunch.train("grpo", envs, 8, lm=lm, out=folder, group=2, episodes=2, max_tokens=4)
    return folder


def test_all_forms_are_the_model_of_the_run(run: Path, tmp_path: Path) -> None:
    parts = export_model(run, tmp_path / "mine")
    assert [part.partition(":")[0] for part in parts] == [
        "transformers/",
        "adapter/",
        "Modelfile",
        "README.md",
    ]
    tokens = torch.tensor([[1, 2, 3, 4]])
    loads = transformers.AutoModelForCausalLM.from_pretrained
    with torch.no_grad():
        merged = loads(tmp_path / "mine" / "transformers")(tokens).logits
        torch.testing.assert_close(merged, loads(run / "model")(tokens).logits)
    config = peft.PeftConfig.from_pretrained(str(tmp_path / "mine" / "adapter"))
    assert config.r == 2


def test_the_card_and_the_modelfile_say_what_it_is(run: Path, tmp_path: Path) -> None:
    export_model(run, tmp_path / "mine")
    text = (tmp_path / "mine" / "README.md").read_text()
    assert text.startswith("---\nlibrary_name:")
    for line in (
        "pocket?corpus=households",
        "grpo",
        "8 steps, seed 0",
        "hunch/Household-Pick-v0",
        "| `group` | 2 |",
        'AutoModelForCausalLM.from_pretrained("transformers")',
        'AutoModelForCausalLM.from_pretrained("FOLDER_OF_THE_MODEL_AT_THE_START")',  # the path is ours
    ):
        assert line in text
    assert (tmp_path / "mine" / "Modelfile").read_text().startswith("FROM ./transformers\n")


def test_the_card_has_all_settings_with_what_was_used(run: Path, tmp_path: Path) -> None:
    export_model(run, tmp_path / "mine")
    text = (tmp_path / "mine" / "README.md").read_text()
    settings = dict(re.findall(r"^\| `(.+?)` \| (.*) \|$", text, re.MULTILINE))
    assert settings["lm"] == "pocket?corpus=households&train=lora&rank=2"
    assert "- Rewards: those of the environment." in text
    used = GRPOConfig(group=2, episodes=2, max_tokens=4)
    empty = {"reward", "texts", "clip_high"}
    for entry in fields(used):
        if entry.name not in ("lm", *empty):
            assert settings[entry.name] == str(getattr(used, entry.name)), "also those that are not recorded"
    assert not empty & set(settings), "nothing was used there"
    assert settings["envs"] == "2"
    assert settings["lifetime"] == "1", "not recorded either"
    assert settings["env_options.games"] == "1"


def test_the_card_of_a_method_that_is_not_installed_has_its_recorded_settings(run: Path) -> None:
    record = read_record(run)
    changed = {**record["run"], "method": "theirs", "options": {"words": "a|b"}, "objects": ["agent"]}
    text = card({**record, "run": changed}, {}, run / "model")
    assert r"| `words` | a\|b |" in text
    assert "the settings alone do not repeat the run: agent." in text


def test_the_card_of_a_run_that_was_stopped_has_its_steps(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()  # a stop rule leaves none
    metrics = tmp_path / "run" / "metrics.jsonl"
    first = metrics.read_text().splitlines()[0]
    metrics.write_text(first + "\n")
    export_model(tmp_path / "run", tmp_path / "mine")
    assert f"{json.loads(first)['step']} of 8 steps" in (tmp_path / "mine" / "README.md").read_text()


def test_the_modelfile_stops_at_all_ends_of_answers(run: Path, tmp_path: Path) -> None:
    """A chat model states more ends than its tokenizer: those of a turn and of a text."""
    shutil.copytree(run, tmp_path / "run")
    model = tmp_path / "run" / "model"
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [{"id": 7, "content": "<end of turn>"}, {"id": 8, "content": "<other>"}]
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**settings, "eos_token": "<end>"}))
    (model / "generation_config.json").write_text('{"eos_token_id": [7, 7, 3]}')
    export_model(tmp_path / "run", tmp_path / "mine")
    lines = (tmp_path / "mine" / "Modelfile").read_text().splitlines()
    assert lines[1:] == ['PARAMETER stop "<end>"', 'PARAMETER stop "<end of turn>"']


def test_an_end_of_the_spec_is_in_the_modelfile_and_on_the_card(run: Path, tmp_path: Path) -> None:
    """Ollama takes what stands between quotes as it is, so the line end is one, and no escape."""
    shutil.copytree(run, tmp_path / "run")
    record = read_record(run)
    changed = {**record, "run": {**record["run"], "lm": r'pocket?corpus=walks&end="\n"'}}
    write_json(tmp_path / "run" / "config.json", changed)
    export_model(tmp_path / "run", tmp_path / "mine")
    assert (tmp_path / "mine" / "Modelfile").read_text().endswith('PARAMETER stop """\n"""\n')
    assert r"An answer ends at '\n', which is no end token" in (tmp_path / "mine" / "README.md").read_text()
    assert "An answer ends" not in card(record, {}, run / "model")


@pytest.mark.parametrize(
    ("base", "lines"),
    [
        (
            "/models/small.Q4_1.gguf",
            ['gguf_file="small.Q4_1.gguf")', 'model = PeftModel.from_pretrained(base, "adapter")'],
        ),
        ("owner/small", ['model = AutoPeftModelForCausalLM.from_pretrained("adapter")']),
    ],
)
def test_the_card_says_how_an_adapter_is_loaded(
    run: Path, tmp_path: Path, base: str, lines: list[str]
) -> None:
    other = tmp_path / "run"
    shutil.copytree(run, other)
    config = other / "model" / "adapter" / "adapter_config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps({**settings, "base_model_name_or_path": base}))
    export_model(other, tmp_path / "mine")
    text = (tmp_path / "mine" / "README.md").read_text()
    assert all(line in text for line in lines)


@pytest.mark.parametrize(
    ("base", "line"),
    [
        ("/models/small", 'from_pretrained("FOLDER_OF_THE_MODEL_AT_THE_START", dtype="bfloat16")'),
        ("/models/small.gguf", 'gguf_file="small.gguf", dtype="bfloat16")'),
        ("owner/small", 'AutoPeftModelForCausalLM.from_pretrained("adapter", dtype="bfloat16")'),
    ],
)
def test_an_adapter_of_rounded_weights_is_loaded_beside_rounded_weights(
    run: Path, tmp_path: Path, base: str, line: str
) -> None:
    shutil.copytree(run / "model", tmp_path / "model")
    config = tmp_path / "model" / "adapter" / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "base_model_name_or_path": base}))
    record = read_record(run)
    changed = {**record, "run": {**record["run"], "lm": "hf:small?train=lora&dtype=bfloat16"}}
    assert line in card(changed, {}, tmp_path / "model")
    assert "dtype=" not in card(record, {}, tmp_path / "model").partition("## Load it")[2]


def test_the_card_of_a_run_that_goes_on_counts_its_steps(run: Path) -> None:
    text = card(read_record(run), {"steps": 4, "complete": False}, run / "model")
    assert "4 of 8 steps, seed 0" in text


def test_the_command_says_what_each_part_is_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["models", "export", str(run), "--out", str(tmp_path / "mine")])
    assert "ollama create" in capsys.readouterr().out


def test_what_cannot_be_exported_is_one_sentence_and_leaves_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        export_model(run, tmp_path / "there")
    linked = tmp_path / "linked"
    shutil.copytree(run, linked)
    os.symlink("/etc/hostname", linked / "model" / "extra.json")
    with pytest.raises(UsageError, match="is a link"):
        export_model(linked, tmp_path / "out")
    shutil.rmtree(linked / "model")
    with pytest.raises(UsageError, match="no trained language model"):
        export_model(linked, tmp_path / "out")
    with pytest.raises(UsageError):
        export_model(tmp_path / "nowhere", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linked", "there"]
