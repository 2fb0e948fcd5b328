"""The language models of a run: those that fill roles, those that are trained, and those of environments.

A model that fills a role is loaded once, by the name of the option that holds the spec.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from hunch.core import Agent, EvidenceLevel, UsageError, weakest
from hunch.envs.offers import HasPool
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.memory import Memory
from hunch.lm.answers.salvage import require_answers
from hunch.lm.answers.store import Store
from hunch.lm.base import LanguageModel, Verb
from hunch.lm.registry import answers, backend_of, build, check_spec, per_user
from hunch.rl.rollout import TextEnvironment
from hunch.runs.environments import asked_by

Join: TypeAlias = Callable[[LanguageModel, Store | None], Cached]
"""Combines a model with its answers on disk."""


@runtime_checkable
class Builder(Protocol):
    """A :data:`Join` that also makes the models, such as stand-ins for a dry run, which needs no server."""

    def build(self, spec: str, options: dict[str, Any], /) -> tuple[Any, LanguageModel]:
        """Return the back-end of a spec and its model."""


Loaded: TypeAlias = dict[str, tuple[LanguageModel, Store | None, Memory]]
"""Loaded models by spec, each with its store of answers."""


def load_models(
    specs: Mapping[str, str], join: Join | None = None, loaded: Loaded | None = None
) -> dict[str, LanguageModel]:
    """Load models by name. Names with equal specs share model and answers, not the meter.

    Args:
        specs: The spec of each model.
        join: Combines a model with its answers; see :class:`hunch.lm.answers.rehearsal.Rehearsal`.
        loaded: Models to use again; those that are loaded here are added.

    Raises:
        UsageError: for an unknown spec or option.
        HunchError: if a model cannot be loaded.
    """
    models: dict[str, LanguageModel] = {}
    bare = Loaded() if loaded is None else loaded
    for name, spec in specs.items():
        if spec not in bare:
            backend, model = join.build(spec, {}) if isinstance(join, Builder) else build(spec, {})
            bare[spec] = model, answers(backend), Memory()
        model, store, memory = bare[spec]
        models[name] = join(model, store) if join else Cached(model, store, memory)
    return models


class Outlined:
    """A :data:`Join` for a process that only checks models, which other processes then load and ask.

    A model that would fill this process's memory stays on the disk. A server is reached or started.
    """

    def __call__(self, model: LanguageModel, store: Store | None) -> Cached:
        """Return the model with its answers."""
        return Cached(model, store)

    def build(self, spec: str, options: dict[str, Any]) -> tuple[Any, LanguageModel]:
        """Build a model without its weights, if these would be read into this process."""
        is_heavy = bool(backend_of(spec.partition("?")[0]).imports)
        return build(spec, options, outline=is_heavy)


def light(specs: Iterable[str]) -> Loaded:
    """Load the models that need no heavy library, so that their errors are found early."""
    loaded, heads = Loaded(), {spec: spec.partition("?")[0] for spec in specs}
    load_models({spec: spec for spec, head in heads.items() if not backend_of(head).imports}, loaded=loaded)
    return loaded


@dataclass(frozen=True)
class Asked:
    """All models that a run uses, by the names under which their use is counted.

    The agent's models come first, trained ones included, then those that environments ask. A name that is
    taken gets a prefix, as in ``env.judge``. Models of several environments that share name and spec are
    counted together.

    Args:
        agent: The agent, with its optional attribute ``models``.
        models: Models that were loaded for the agent, by option.
        envs: The environments of training and evaluation, each with its optional attribute ``models``.

    Raises:
        UsageError: if the model of an environment has no meter.
    """

    agent: Agent
    models: Mapping[str, LanguageModel]
    envs: Sequence[TextEnvironment]

    def __iter__(self) -> Iterator[tuple[str, LanguageModel]]:
        """Yield name and model; each model once."""
        seen = list[Any]()
        owners = dict[str, tuple[str, str]]()
        for owner, name, model in chain(self.of_agent(), self.of_environments()):
            if not any(model is known for known in seen):
                seen.append(model)
                who = owner, getattr(model, "name", "")
                names = (name, f"{owner}.{name}", f"{owner}.{name} ({who[1]})")
                label = next((one for one in names if owners.setdefault(one, who) == who), names[-1])
                yield label, model

    def of_agent(self) -> Iterator[tuple[str, str, LanguageModel]]:
        """Yield owner, name and model of each model of the agent."""
        for name, model in chain(self.models.items(), self.agent.models.items()):
            yield "agent", name, model

    def of_environments(self) -> Iterator[tuple[str, str, LanguageModel]]:
        """Yield owner, name and model of each model that an environment asks."""
        for env in self.envs:
            for name, model in asked_by(env).items():
                yield "env", name, model

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest level of the models that fill a role and of those that environments ask."""
        return weakest((self.agent.evidence, *(model.evidence for _, _, model in self.of_environments())))


def check_specs(method: str, specs: Mapping[str, str], needs: Mapping[str, Sequence[Verb]]) -> None:
    """Check from specs that models exist and support what a method needs, before any is loaded.

    Args:
        method: Name of the method.
        specs: The spec of each model by the option's name.
        needs: By the same names, the kinds of request; the model must support at least one.

    Raises:
        UsageError: if a model does not; the message names it.
    """
    cache = per_user() if os.environ.get("HUNCH_CACHE") else Path(os.devnull)
    if cache.is_file() and cache.suffix not in (".sqlite", ".db"):
        require_answers(cache)
    for name, spec in specs.items():
        head = spec.partition("?")[0]
        able = check_spec(spec).verbs & set(needs[name])
        if not able and (head != "uniform" or set(needs[name]) == {"embed"}):
            verbs, option = " or ".join(needs[name]), name.replace("_", "-")
            raise UsageError(f"{method} needs a model that can {verbs} as --{option}; {head} cannot.")


def refuse_known_games(asked: Asked) -> None:
    """Check that no model was trained on games of the environments, according to the models' cards.

    Raises:
        UsageError: if one was; the message names the model and a game.
    """
    pools = [env.unwrapped.pool for env in asked.envs if isinstance(env.unwrapped, HasPool)]
    games = dict.fromkeys(str(game) for pool in pools for game in pool)
    for _, _, named in asked.of_agent():
        model: Any = getattr(named, "model", named)  # behind the cache, or in training
        for training in getattr(model, "trained_on", ()):
            if both := fnmatch.filter(games, training.get("games", "")):
                raise UsageError(
                    f"{model.name} was trained on {len(both)} of the {len(games)} games to play, such as "
                    f"{both[0]}: choose other games, for example with another pool_seed."
                )
