"""Which models there are, and how a spec such as ``"scripted:overlap?error=0.2"`` becomes one."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hunch.core import UsageError, suggest
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.store import Store
from hunch.lm.base import LanguageModel, Verb

if TYPE_CHECKING:
    from hunch.lm.backends.trainable import Trainable

M = TypeVar("M", bound=LanguageModel)
GROUP: Final = "hunch.models"
"""Entry points of packages that bring models of their own."""
PER_USER: Final = Path("~/.cache/hunch/answers.sqlite")


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of model.

    Attributes:
        pattern: How its specs look.
        loader: ``module:function``, imported when a model is asked for, as some are heavy.
        verbs: What its models can have.
        summary: One line for ``hunch lm``.
        costly: Whether its answers are worth a place in the per-user cache.
    """

    pattern: str
    loader: str
    verbs: frozenset[Verb]
    summary: str
    costly: bool = True

    @property
    def takes_argument(self) -> bool:
        """Whether the spec goes on after a colon."""
        return ":" in self.pattern

    def load(self) -> Callable[..., LanguageModel]:
        """Import and return the function that builds the model."""
        module, function = self.loader.split(":")
        built: Callable[..., LanguageModel] = getattr(import_module(module), function)
        return built


OURS: Final[dict[str, Backend]] = {
    "uniform": Backend(
        "uniform",
        "hunch.lm.backends.uniform:load",
        frozenset({"generate", "score", "label"}),
        "the uninformed model: every option is as likely as any other",
        costly=False,
    ),
    "minilm": Backend(
        "minilm",
        "hunch.lm.backends.minilm:load",
        frozenset({"embed"}),
        "all-MiniLM-L6-v2, a small real sentence encoder",
    ),
    "hf": Backend(
        "hf:<name or folder>",
        "hunch.lm.backends.huggingface:load",
        frozenset({"generate", "score", "embed", "see"}),
        "any causal model or encoder of transformers, in this process",
    ),
    "bag-of-words": Backend(
        "bag-of-words",
        "hunch.lm.backends.bag_of_words:load",
        frozenset({"embed"}),
        "hashed words, counted: the control for what an encoder knows",
        costly=False,
    ),
    "words": Backend(
        "words",
        "hunch.lm.backends.words:load_words",
        frozenset({"embed"}),
        "a bag of words with little weight on function words: the lexical control of minilm",
        costly=False,
    ),
    "tfidf": Backend(
        "tfidf",
        "hunch.lm.backends.words:load_tfidf",
        frozenset({"embed"}),
        "a bag of words weighed by how rare they are in household games: a lexical control",
        costly=False,
    ),
    "random-words": Backend(
        "random-words",
        "hunch.lm.backends.words:load_random",
        frozenset({"embed"}),
        "the mean of a random vector for each word: a lexical control",
        costly=False,
    ),
    "random-network": Backend(
        "random-network",
        "hunch.lm.backends.random_network:load",
        frozenset({"embed"}),
        "a transformer of minilm's sizes with random weights: the control for its training",
    ),
    "replay": Backend(
        "replay:<file>",
        "hunch.lm.answers.recorded:load",
        frozenset({"generate", "score", "label", "embed"}),
        "recorded answers, from a file that 'hunch cache export' wrote",
        costly=False,
    ),
    "openai": Backend(
        "openai:<model>",
        "hunch.lm.backends.openai:load",
        frozenset({"generate", "score", "label", "embed", "see"}),
        "a model of any OpenAI-compatible server: vLLM, Ollama, llama.cpp's, hosted ones",
    ),
    "anthropic": Backend(
        "anthropic:<model>",
        "hunch.lm.backends.anthropic:load",
        frozenset({"generate", "see"}),
        "a model of Anthropic's service",
    ),
}


@cache
def kinds() -> dict[str, Backend]:
    """All kinds of models by name: ours, and those of the entry-point group ``hunch.models``.

    An entry point names a :class:`Backend`, as ``mykind = "mypackage:BACKEND"`` does in a ``pyproject.toml``.
    """
    found = {point.name: point.load() for point in entry_points(group=GROUP)}
    return dict(sorted((OURS | found).items()))


def load(spec: str, *, cache: str | Path | None = PER_USER, **options: Any) -> Cached:
    """Load the model that a spec names, behind a cache and a meter.

    Args:
        spec: ``kind``, ``kind:argument``, each also with ``?option=value&...``.
        cache: The file that keeps answers between runs; None keeps them in memory only. By default
            ``~/.cache/hunch/answers.sqlite``, or the file that the environment variable ``HUNCH_CACHE``
            names, and there only for models that take time or money to ask.
        **options: The model's own options; they win over those in the spec.

    Raises:
        UsageError: for an unknown spec or option, with near matches.
        HunchError: if the model cannot be had.
    """
    backend, model = build(spec, options)
    file = answers_file(backend) if cache is PER_USER else cache
    return Cached(model, Store(file) if file is not None else None)


def build(spec: str, options: Mapping[str, Any]) -> tuple[Backend, LanguageModel]:
    """Build the bare model that a spec names, without cache or meter.

    Its name is the full spec, less the options that the model declares as ``unnamed``.
    """
    if not isinstance(spec, str):
        raise UsageError(f"A model is named by a text such as 'minilm', not {spec!r}.")
    head, written = _split(spec)
    kind, _, argument = head.partition(":")
    backend = _backend(kind, head)
    if bool(argument) != backend.takes_argument:
        raise UsageError(f"The spec {head!r} should read {backend.pattern!r}.")
    chosen = written | dict(options)
    loader = backend.load()
    _check_options(kind, loader, chosen)
    model = loader(argument, **chosen) if backend.takes_argument else loader(**chosen)
    named = sorted(set(chosen) - getattr(model, "unnamed", frozenset()))
    model.name = head + ("?" + "&".join(f"{key}={chosen[key]}" for key in named) if named else "")
    return backend, model


def trainable(spec: str, **options: Any) -> Trainable:
    """Load a causal model to train it, such as ``"hf:<name or folder>?train=lora"``.

    Args:
        spec: As for :func:`load`, with ``train=all`` (default) or ``train=lora``: of the kind ``hf:``, or one
            whose models say in which ``folder`` they are kept, as ``pocket`` does.
        **options: More of its options (:func:`hunch.lm.backends.trainable.load`); they win over the spec's.

    Raises:
        UsageError: for another kind of model, or a wrong option.
        HunchError: if the model cannot be had or read.
    """
    head, written = _split(spec)
    kind, _, name = head.partition(":")
    build_one: Callable[..., Trainable] = import_module("hunch.lm.backends.trainable").load
    chosen = written | dict(options)
    if kind != "hf":
        name, chosen = _kept(kind, name, chosen, set(inspect.signature(build_one).parameters))
    if not name:
        raise UsageError(f"A model to train is named as 'hf:<name or folder>', not {head!r}.")
    _check_options(f"{kind} to train", build_one, chosen)
    trained = build_one(name, **chosen)
    trained.model.name = spec
    return trained


def _kept(
    kind: str, argument: str, options: Mapping[str, Any], training: set[str]
) -> tuple[str, dict[str, Any]]:
    """The folder in which a model of another kind is kept, if in any, and the options of its training."""
    known = kinds().get(kind)
    if known is None or argument or known.takes_argument:
        return "", {}
    _, model = build(kind, {name: value for name, value in options.items() if name not in training})
    own = {name: value for name, value in options.items() if name in training}
    return str(getattr(model, "folder", "")), own


def require(model: M, verb: Verb, needed_by: str) -> M:
    """Return the model, if it has the verb that something needs: asked before a run starts.

    Raises:
        UsageError: if it has not, naming the models that have.
    """
    if not hasattr(model, "verbs"):
        raise UsageError(f"{needed_by} takes a language model, as hunch.lm.load gives it, not {model!r}.")
    if verb not in model.verbs:
        able = ", ".join(backend.pattern for backend in kinds().values() if verb in backend.verbs)
        why = getattr(getattr(model, "model", model), "lacking", {}).get(verb, "")
        raise UsageError(
            f"{needed_by} needs a model with the verb {verb!r}, but {model.name} only has "
            f"{', '.join(sorted(model.verbs))}; {verb!r} is offered by {able}."
            + (f" Asked at load: {why}" if why else "")
        )
    return model


def _split(spec: str) -> tuple[str, dict[str, Any]]:
    """Split off ``?key=value&...``; values are numbers, true and false where they read as such."""
    head, _, query = spec.partition("?")
    options = {}
    for part in query.split("&") if query else ():
        key, equals, value = part.partition("=")
        if not (key and equals):
            raise UsageError(f"The options of the spec {spec!r} should read '?key=value&key=value'.")
        options[key] = _value(value)
    return head, options


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _backend(kind: str, head: str) -> Backend:
    if kind in kinds():
        return kinds()[kind]
    if ":" not in head and "/" in head:
        raise UsageError(f"There is no model {head!r}; did you mean 'hf:{head}'?")
    raise UsageError(
        f"There is no model {head!r}; {suggest(kind, {k: b.pattern for k, b in kinds().items()})}"
    )


def _check_options(kind: str, loader: Callable[..., Any], chosen: Mapping[str, Any]) -> None:
    parameters = inspect.signature(loader).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return  # the loader tells them apart
    known = {p.name: p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    for option in chosen:
        if option not in known:
            raise UsageError(f"The model {kind!r} has no option {option!r}; {suggest(option, known)}")


def answers_file(backend: Backend) -> Path | None:
    """Return the file that keeps a model's answers between runs; None where they are not worth it."""
    return per_user() if backend.costly else None


def per_user() -> Path:
    """Return the file that keeps the answers of costly models, whether or not it is there yet.

    Raises:
        UsageError: if there is no home folder to keep it in.
    """
    named = os.environ.get("HUNCH_CACHE")
    try:
        path = (Path(named) if named else PER_USER).expanduser()
    except RuntimeError as error:
        raise UsageError("Your home folder is unknown; name a file for answers in HUNCH_CACHE.") from error
    return path / PER_USER.name if path.is_dir() else path
