"""Copies the model that a run trained, in the forms that other programs load, with a model card."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, get_type_hints

from hunch import methods
from hunch.core import HunchError, UsageError
from hunch.extras import NotInstalledError
from hunch.lm.backends.folders import MODEL
from hunch.lm.registry import split
from hunch.lm.shelf import SHELF
from hunch.printable import printable
from hunch.runs.config import RunConfig
from hunch.runs.differences import leaves
from hunch.runs.files import read_json, read_lines
from hunch.runs.stored import read_record

ADAPTER: Final = "adapter"
GGUF_FILE: Final = "model.gguf"
MERGED: Final = "transformers"
NOTHING: Final[tuple[object, ...]] = (None, "", [], ())
"""Values of settings that stand for nothing, which a card leaves out."""
SEPARATOR: Final = r"\|"
"""The character that separates the cells of a table, where it belongs to a value."""


def export_model(run: Path, target: Path) -> list[str]:
    """Copy the model of a run to a folder of its own, with a Modelfile and a model card.

    ``transformers/`` is the merged model, ``adapter/`` the LoRA adapter in peft's form, ``model.gguf`` the
    merged model for llama.cpp, ``Modelfile`` what Ollama reads, ``README.md`` the card. The adapter is there
    if one was trained, and the GGUF file if the model came from one.

    Args:
        run: Folder of a run that trained a language model.
        target: Folder to make; it must not exist, and is there in full or not at all.

    Returns:
        What each part is for, a line each.

    Raises:
        UsageError: if the run trained no model, its folder holds a link, or the target exists.
        HunchError: if the model cannot be copied.
    """
    record = read_record(run)
    model = run / MODEL
    if not (model / "config.json").is_file():
        raise UsageError(
            f"{run} holds no trained language model: only methods that train one export it, such as sft, "
            "grpo, glam and rlhf. 'hunch evaluate' and 'hunch.load' use the agent of any run."
        )
    if links := [path for path in sorted(model.rglob("*")) if path.is_symlink()]:
        # What it leads to would be copied, and perhaps published.
        raise UsageError(
            f"{links[0]} is a link to another file; copy what belongs to the model in its place."
        )
    if target.exists():
        raise UsageError(f"{target} exists already; name a folder that does not.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        parts = _copied(model, part)
        own_end = _option(_spec_of(record["run"]), "end")
        (part / "Modelfile").write_text(_modelfile(part, own_end), encoding="utf-8")
        text = card(record, read_json(run / "summary.json") or _so_far(run), part)
        (part / "README.md").write_text(text, encoding="utf-8")
        part.chmod(0o755)
        part.replace(target)
    except OSError as error:
        # shutil lists what failed: source, target and reason of each file.
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        raise HunchError(f"The model of {run} cannot be copied to {target}: {reason}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return parts


def _so_far(run: Path) -> dict[str, Any]:
    """Return the number of steps of a run without a summary: one that goes on, or that a stop rule ended."""
    lines = read_lines(run / "metrics.jsonl")
    return {"steps": lines[-1]["step"]} if lines else {}


def _copied(model: Path, target: Path) -> list[str]:
    """Copy the forms of a model, and return what each is for."""
    leave = shutil.ignore_patterns(ADAPTER, GGUF_FILE)
    shutil.copytree(model, target / MERGED, ignore=leave, symlinks=False)
    parts = [f"{MERGED}/: AutoModelForCausalLM.from_pretrained, vLLM, 'hf:' here"]
    if (model / ADAPTER).is_dir():
        shutil.copytree(model / ADAPTER, target / ADAPTER)
        parts.append(f"{ADAPTER}/: peft, vLLM with --enable-lora")
    if (model / GGUF_FILE).is_file():
        shutil.copy2(model / GGUF_FILE, target / GGUF_FILE)
        parts.append(f"{GGUF_FILE}: llama.cpp, LM Studio, 'gguf:' here")
    parts += ["Modelfile: ollama create NAME -f Modelfile", "README.md: the card, with the run's figures"]
    return parts


def _spec_of(run: Mapping[str, Any]) -> str:
    """Return the spec of the model at the start of a run."""
    return str(run.get("lm", ""))


def _option(spec: str, name: str) -> str:
    """Return an option of a model's spec; empty if the spec leaves it out."""
    return str(split(spec)[1].get(name, ""))


def _modelfile(folder: Path, own_end: str) -> str:
    """Return what Ollama reads: the model, and where its answers end.

    The chat template is that of the model, which Ollama finds in either form.
    """
    ends = [*_ends_of_answers(folder / MERGED), *([own_end] if own_end else [])]
    source = GGUF_FILE if (folder / GGUF_FILE).is_file() else MERGED
    lines = [f"FROM ./{source}"]
    lines += [f"PARAMETER stop {_quoted(end)}" for end in ends]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a text in quotes as Ollama reads it: what stands between them is taken as it is."""
    quotes = '"""' if '"' in text or "\n" in text else '"'
    return f"{quotes}{text}{quotes}"


def _ends_of_answers(model: Path) -> list[str]:
    """Return the tokens that end a text: the tokenizer's end token, and those that the checkpoint states."""
    end = _json(model / "tokenizer_config.json").get("eos_token")
    if isinstance(end, Mapping):  # as transformers wrote it before version 5
        end = end.get("content")
    stated = _json(model / "generation_config.json").get("eos_token_id")
    numbers = stated if isinstance(stated, list) else [stated]
    tokens = _json(model / "tokenizer.json").get("added_tokens")
    of_number = {token["id"]: token["content"] for token in tokens} if isinstance(tokens, list) else {}
    ends = [end, *(of_number.get(number) for number in numbers)]
    return [text for text in dict.fromkeys(ends) if isinstance(text, str) and text]


def card(record: Mapping[str, Any], summary: Mapping[str, Any], folder: Path) -> str:
    """Return the model card: where the model comes from, how it was trained, and the run's figures.

    Args:
        record: What ``config.json`` of the run holds.
        summary: What ``summary.json`` holds; empty if the run is not finished.
        folder: The folder of the exported model.
    """
    run = record["run"]
    spec = _spec_of(run)
    name = spec.partition("?")[0]
    shelved = SHELF.get(name)
    head = {"library_name": "transformers", "tags": ["hunch", "reinforcement-learning", run["method"]]}
    lines = ["---", *(f"{key}: {json.dumps(value)}" for key, value in head.items())]
    if shelved is not None:
        lines.append(f"license: {shelved.licence.lower()}")
    lines += ["---", "", f"# {printable(name or 'A model')}, trained by {run['method']}", ""]
    done = summary.get("steps")
    steps = f"{run['steps']:,} steps"
    if isinstance(done, int) and done != run["steps"]:
        steps = f"{done:,} of {steps}"
    about = f" ({shelved.summary}; licence {shelved.licence})" if shelved is not None else ""
    of_env = ", ".join(f"{key} {value!r}" for key, value in (run.get("env_options") or {}).items())
    lines += [
        f"- Model at the start: `{printable(spec)}`{about}.",
        f"- Trained by: {run['method']} of Hunch {record.get('versions', {}).get('hunch-rl', '')}, "
        f"{steps}, seed {run['seed']}.",
        f"- Environment: `{printable(str(run['env']))}`{f' with {printable(of_env)}' if of_env else ''}.",
        f"- Evidence level: {record.get('evidence')}.",
    ]
    if own_end := _option(spec, "end"):
        lines.append(
            f"- An answer ends at {own_end!r}, which is no end token: stop there, as the `Modelfile` does "
            f"(transformers: `model.generate(..., stop_strings=[{own_end!r}], tokenizer=tokenizer)`)."
        )
    success = summary.get("success")
    rate = success.get("value") if isinstance(success, Mapping) else None
    if isinstance(success, Mapping) and isinstance(rate, float) and not math.isnan(rate):  # nan: no episode
        lines.append(
            f"- Success in the last quarter of the steps: {rate:.2f} [{success['low']:.2f}, "
            f"{success['high']:.2f}], during training, with the exploration of the method."
        )
    if not summary.get("complete"):
        lines.append("- The run is not finished: the figures are those of its last checkpoint.")
    options = dict(run["options"] or {})
    if "lm" in options:
        options["lm"] = spec  # a method that trains has it from the run
    if options.get("reward") == "":
        lines.append("- Rewards: those of the environment.")
    if run.get("objects"):
        objects = ", ".join(run["objects"])
        lines.append(f"- Made in Python, so that the settings alone do not repeat the run: {objects}.")
    lines += ["", "One run, one seed: no claim about the method."]
    lines += _table_of("method", _in_full(run["method"], options))
    of_run = {name: value for name, value in run.items() if name not in ("options", "objects")}
    lines += _table_of("run", _with_later(RunConfig, of_run))
    lines += ["", "## Load it in Python, in this folder", "", "```python", *_loading(folder, spec), "```"]
    if not (folder / GGUF_FILE).is_file():
        lines += ["", "For llama.cpp, convert `transformers/` with its convert_hf_to_gguf.py."]
    return "\n".join(lines) + "\n"


def _in_full(method: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a run's method, with those that its record leaves out at their defaults."""
    try:
        return _with_later(methods.find(method).config_class, options)
    except (UsageError, NotInstalledError):  # an agent of a program, or of a package that is not here
        return options


def _with_later(cls: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the defaults of later ones, in the order of their dataclass."""
    hints = get_type_hints(cls)
    full = {}
    for entry in fields(cls):
        if entry.name in options:
            value = options[entry.name]
            nested = is_dataclass(hints[entry.name]) and isinstance(value, Mapping)
            full[entry.name] = _with_later(hints[entry.name], value) if nested else value
        elif "later" in entry.metadata:
            full[entry.name] = entry.default
    return full | {name: value for name, value in options.items() if name not in full}


def _table_of(what: str, settings: Mapping[str, Any]) -> list[str]:
    """Return a table of the settings that have a value."""
    flat = {name: value for name, value in leaves(dict(settings)).items() if value not in NOTHING}
    rows = [f"| `{name}` | {printable(str(value)).replace('|', SEPARATOR)} |" for name, value in flat.items()]
    return ["", f"## Settings of the {what}", "", "| setting | value |", "|---|---|", *rows]


def _loading(folder: Path, spec: str) -> list[str]:
    """Return lines of Python that load the forms of an exported model.

    Adapters that were trained beside weights of 16 bits are loaded beside such, too: beside those of 32 bits
    they are not the merged model.
    """
    lines = [
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        f'tokenizer = AutoTokenizer.from_pretrained("{MERGED}")',
        f'model = AutoModelForCausalLM.from_pretrained("{MERGED}")',
    ]
    if not (folder / ADAPTER).is_dir():
        return lines
    base = str(_json(folder / ADAPTER / "adapter_config.json").get("base_model_name_or_path", ""))
    dtype = _option(spec, "dtype")
    rounded = f', dtype="{dtype}"' if dtype else ""
    lines += ["", "# or the adapter, beside the model at the start:"]
    if not Path(base).is_absolute():  # a name on the hub, which peft finds by itself
        loaded = f'model = AutoPeftModelForCausalLM.from_pretrained("{ADAPTER}"{rounded})'
        return [*lines, "from peft import AutoPeftModelForCausalLM", "", loaded]
    if base.endswith(".gguf"):
        where = f'"FOLDER_OF_THE_FILE", gguf_file={json.dumps(Path(base).name)}'
    else:  # a folder of this machine, which others do not have
        where = '"FOLDER_OF_THE_MODEL_AT_THE_START"'
    return [
        *lines,
        "from peft import PeftModel",
        "",
        f"base = AutoModelForCausalLM.from_pretrained({where}{rounded})",
        f'model = PeftModel.from_pretrained(base, "{ADAPTER}")',
    ]


def _json(path: Path) -> dict[str, Any]:
    """Return a file of JSON as a dictionary; empty if it is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
