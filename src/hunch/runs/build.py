"""Makes agents, environments and data from the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import hunch.envs
from hunch import methods
from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel
from hunch.methods.settings import configure
from hunch.rl.rollout import TextEnvironment
from hunch.runs.config import RunConfig
from hunch.runs.models import Join, Loaded, load_models

if TYPE_CHECKING:
    from hunch.rl.dataset import Dataset


def build(
    config: RunConfig,
    join: Join | None = None,
    lm: LanguageModel | None = None,
    loaded: Loaded | None = None,
    parts: Mapping[str, Any] | None = None,
) -> tuple[Agent, Mapping[str, LanguageModel]]:
    """Load the language models of a run and make the agent.

    Args:
        config: All settings.
        join: See :func:`hunch.runs.models.load_models`.
        lm: The model of the option ``lm``, if it was given as an object.
        loaded: See :func:`hunch.runs.models.load_models`.
        parts: Parts of the method besides models, from :func:`hunch.runs.loading.parts_of`.

    Raises:
        UsageError: on an unknown method or model, a model that does not support what the method needs, or a
            setting out of range.
    """
    method = methods.find(config.method)
    options = config.options or method.config_class()
    if lm is None and "lm" in method.config_class.__dataclass_fields__:
        options = replace(options, lm=config.lm)
    options = configure(method.agent_class, options, {})
    specs = {name: spec for name, spec in config.specs().items() if lm is None or name != "lm"}
    models: Mapping[str, LanguageModel] = load_models(specs, join, loaded)
    models = models if lm is None else {**models, "lm": lm}
    return method.build(options, models, **(parts or {})), models


def refuse_object(config: RunConfig) -> None:
    """Raise a UsageError if a run had an environment that was given as a Python object."""
    if "env" in config.objects:
        raise UsageError(f"The environment {config.env} was made in Python; settings cannot rebuild it.")


def environments(config: RunConfig, n: int, data: Dataset | None = None) -> list[TextEnvironment]:
    """Make n environments of a run. If it has data, their options are the defaults.

    Args:
        config: The run.
        n: Number of environments.
        data: The data of the run, if they have been read.

    Raises:
        UsageError: on an unknown environment or option.
    """
    refuse_object(config)
    options = config.env_options
    if config.data or data:
        from hunch.runs.recorded import tasks

        options = tasks(config, data)
    return [hunch.envs.make(config.env, **options) for _ in range(n)]
