"""The registry of models, and how a spec such as ``"scripted:overlap?error=0.2"`` is loaded."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, Literal, TypeVar

from hunch import plugins
from hunch.core import UsageError
from hunch.extras import of_studies
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.store import Store
from hunch.lm.backends.secret import refuse_keys
from hunch.lm.base import Backend, LanguageModel, Verb
from hunch.suggest import suggest

GROUP: Final = "hunch.models"
"""Entry-point group for packages that provide models."""
SCRATCH: Final = "scratch"
"""Spec of a new model to train."""
M = TypeVar("M", bound=LanguageModel)
PER_USER: Final = Path("~/.cache/hunch/answers.sqlite")
NO_FILES: Final = ("off", "none", "no", "false", "0", "disable", "disabled")
"""Words for which ``HUNCH_CACHE`` would be a file that nobody meant."""
OF_STUDIES: Final = ("tfidf", "random-words", "random-network")
"""Kinds that the package of the studies brings."""

OURS: Final = {
    file.replace("_", "-"): f"hunch.lm.backends.{file}:BACKEND"
    for file in (
        "uniform",
        "scripted",
        "minilm",
        "mpnet",
        "bag_of_words",
        "phrases",
        "words",
        "openai",
        "anthropic",
    )
} | {
    "hf": "hunch.lm.backends.huggingface:BACKEND",
    "replay": "hunch.lm.answers.recorded:BACKEND",
    "gguf": "hunch.lm.backends.llama_cpp:BACKEND",
    "smollm2": "hunch.lm.backends.llama_cpp:SMOLLM2",
    "gemma3-270m": "hunch.lm.backends.llama_cpp:GEMMA3",
    "qwen-coder-0.5b": "hunch.lm.backends.llama_cpp:QWEN_SMALL",
    "qwen-coder-1.5b": "hunch.lm.backends.llama_cpp:QWEN_LARGE",
    "systemone": "hunch.lm.backends.decisions:SYSTEMONE",
    "decisions": "hunch.lm.backends.decisions:DECISIONS",
}
"""Where each built-in kind is: its module carries its own row, ``BACKEND``."""


@cache
def kinds() -> dict[str, Backend]:
    """Return all kinds of models by name: built-in ones and those of the entry-point group ``hunch.models``.

    An entry point names a :class:`Backend`, as ``mykind = "mypackage:BACKEND"`` does in a ``pyproject.toml``.
    """
    return {name: resolve_name(home) for name, home in sorted(_homes().items())}


def _homes() -> dict[str, str]:
    """Return where the row of each kind is, as ``module:name``; nothing is imported."""
    added = plugins.installed(GROUP).items()
    return {name: f"{point.module}:{point.attr}" for name, point in added} | OURS


def load(spec: str, *, cache: str | Path | None = PER_USER, **options: Any) -> Cached:
    """Load a model by its spec, with a cache and a meter.

    Args:
        spec: ``kind`` or ``kind:argument``, optionally followed by ``?option=value&...``.
        cache: File that keeps answers between runs; None keeps them in memory only. Default: the file in the
            environment variable ``HUNCH_CACHE``, or else ``~/.cache/hunch/answers.sqlite``, and only for
            models whose answers cost time or money.
        **options: The model's options; they override those in the spec.

    Returns:
        The model.

    Raises:
        UsageError: for an unknown spec or option; the message suggests similar names.
        HunchError: if the model cannot be loaded.
    """
    backend, model = build(spec, options)
    return Cached(model, answers(backend, cache))


def answers(backend: Backend, file: str | Path | None = PER_USER) -> Store | None:
    """Return the store of answers in a file, opened at first use; by default the one for this kind."""
    if file is PER_USER:
        file = per_user() if backend.costly else None
    if file is None:
        return None
    return Store(file)


def build(spec: str, options: Mapping[str, Any], *, outline: bool = False) -> tuple[Backend, LanguageModel]:
    """Build a model from its spec, without cache or meter.

    Its name is the full spec without the options that the model declares as ``unnamed``.

    Args:
        spec: The spec.
        options: The model's options; they override those in the spec.
        outline: Load no weights and start no server where the kind of model can do without. Such a model
            cannot be asked, but has the attributes of the whole one.
    """
    if not isinstance(spec, str):
        raise UsageError(f"A model is named by a text such as 'minilm', not {spec!r}.")
    head, written = split(spec)
    chosen = written | dict(options)
    backend, model = called(head, chosen, "outline" if outline else "load")
    named = sorted(set(chosen) - getattr(model, "unnamed", frozenset()))
    model.name = head + ("?" + "&".join(f"{key}={chosen[key]}" for key in named) if named else "")
    return backend, model


def called(
    head: str, chosen: Mapping[str, Any], what: Literal["load", "check", "outline"]
) -> tuple[Backend, Any]:
    """Call the loader of a kind with options, or one of the functions that do less.

    Args:
        head: The spec without options.
        chosen: The options.
        what: ``load`` for the model, ``check`` for what can be checked before heavy libraries are imported,
            ``outline`` for a model that cannot be asked (:class:`hunch.lm.base.Backend`).
    """
    backend, (kind, _, argument) = backend_of(head), head.partition(":")
    loader = resolve_name(backend.loader)
    check_options(kind, loader, chosen)
    call = loader
    if what == "check":
        if not backend.check:
            return backend, None
        call = resolve_name(backend.check)
    elif what == "outline" and backend.outline:
        call = resolve_name(backend.outline)
        parameters = inspect.signature(loader).parameters.values()
        usual = {option.name: option.default for option in parameters if option.kind is option.KEYWORD_ONLY}
        chosen = usual | dict(chosen)  # the defaults stand in the loader alone
    return backend, call(argument, **chosen) if backend.takes_argument else call(**chosen)


def check_spec(spec: str) -> Backend:
    """Check a spec without loading the model or a heavy library; return its kind.

    Raises:
        UsageError: if there is no such kind or option, or the kind refuses what the spec names.
    """
    return called(*split(spec), "check")[0]


def backend_of(head: str) -> Backend:
    """Return the kind of a model, given its spec without options.

    Raises:
        UsageError: if there is no such kind (with similar names), or an argument is missing or superfluous.
    """
    kind, _, argument = head.partition(":")
    if home := OURS.get(kind) or _homes().get(kind):  # entry points take time to read
        backend: Backend = resolve_name(home)
        if bool(argument) != backend.takes_argument:
            raise UsageError(f"The spec {head!r} should read {backend.pattern!r}.")
        return backend
    raise _unknown(head)


def require(model: M, verb: Verb, needed_by: str) -> M:
    """Return the model if it supports a verb; checked before a run starts.

    Raises:
        UsageError: if the model does not support it; the message names models that do.
    """
    if not hasattr(model, "verbs"):
        raise UsageError(f"{needed_by} takes a language model, as hunch.lm.load gives it, not {model!r}.")
    if verb not in model.verbs:
        raise _incapable(model, verb, needed_by)
    return model


PROTOCOL_OPENAI: Final = {
    "ollama": "http://localhost:11434/v1",
    "lmstudio": "http://localhost:1234/v1",
    "vllm": "http://localhost:8000/v1",
    "sglang": "http://localhost:30000/v1",
    "llamacpp": "http://localhost:8080/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Usual addresses of servers whose names people write as the kind of a model."""


def _unknown(head: str) -> UsageError:
    """Return the error for a spec of unknown kind, with similar names."""
    kind, _, argument = head.partition(":")
    if kind in OF_STUDIES:
        return of_studies(f"The model {head!r}")
    if kind in PROTOCOL_OPENAI:
        server = PROTOCOL_OPENAI[kind]
        near = f"{kind} speaks OpenAI's protocol: write 'openai:{argument or 'MODEL'}?base_url={server}'."
    elif head.startswith(("http://", "https://")):
        near = f"a served model is named with its address: write 'openai:MODEL?base_url={head}'."
    elif head.endswith(".gguf"):
        near = f"did you mean 'gguf:{head}'?"
    elif head and Path(head).is_dir():
        near = f"did you mean the folder, 'hf:{head}'?"
    elif "/" in head and not argument:
        near = f"did you mean 'hf:{head}'?"
    else:
        near = suggest(kind, {name: backend.pattern for name, backend in kinds().items()})
        if not near.startswith("did you mean") and not argument:
            near += f" A served model is named as in 'openai:{head}', a folder of weights 'hf:FOLDER'."
    return UsageError(f"There is no model called {head!r}; {near}")


def _incapable(model: Any, verb: Verb, needed_by: str) -> UsageError:
    """Return the error for a model that lacks a verb, with the kinds of models that have it."""
    has = ", ".join(sorted(model.verbs))
    able = ", ".join(backend.pattern for backend in kinds().values() if verb in backend.verbs)
    lacking: dict[str, str] = getattr(getattr(model, "model", model), "lacking", {})
    tried = f" Tried when it was loaded: {lacking[verb]}" if lacking.get(verb) else ""
    return UsageError(
        f"{needed_by} needs a model with the verb {verb!r}, but {model.name} only has {has}; "
        f"{verb!r} is offered by {able}.{tried}"
    )


def split(spec: str) -> tuple[str, dict[str, Any]]:
    """Split off ``?key=value&...``; values are read as JSON if possible, otherwise as text."""
    refuse_keys(spec)
    head, _, query = spec.partition("?")
    options: dict[str, Any] = {}
    for part in query.split("&") if query else ():
        key, equals, value = part.partition("=")
        if not (key and equals):
            raise UsageError(f"The options of the spec {spec!r} should read '?key=value&key=value'.")
        if key in options:
            raise UsageError(f"The spec {spec!r} names the option {key!r} twice.")
        options[key] = value
        with suppress(ValueError):
            options[key] = json.loads(value)
    return head, options


def check_options(kind: str, loader: Callable[..., Any], chosen: Mapping[str, Any]) -> None:
    """Check that a loader accepts the options of a spec.

    Raises:
        UsageError: if it does not; the message suggests similar names.
    """
    parameters = inspect.signature(loader).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return  # the loader checks them itself
    known = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if wrong := next((option for option in chosen if option not in known), ""):
        raise UsageError(f"The model {kind!r} has no option {wrong!r}; {suggest(wrong, known)}")


def per_user() -> Path:
    """Return the path of the per-user cache of answers; the file may not exist yet.

    Raises:
        UsageError: if there is no home folder, or ``HUNCH_CACHE`` says "off" in place of a file.
    """
    named = os.environ.get("HUNCH_CACHE")
    if named and named.strip().lower() in NO_FILES:
        raise UsageError(
            f"HUNCH_CACHE={named} names no file. There always is one, since a run goes on from its stored "
            f"answers: name a new file to begin without answers (./{named} if it is to be called that). In "
            "Python, cache=None keeps answers in memory only."
        )
    try:
        path = (Path(named) if named else PER_USER).expanduser()
    except RuntimeError as error:
        raise UsageError("Your home folder is unknown; set HUNCH_CACHE to a file for answers.") from error
    return path / PER_USER.name if path.is_dir() else path
