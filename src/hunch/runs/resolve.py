"""Resolves the settings of a run once: what their names stand for, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hunch import methods
from hunch.core import Agent, UsageError
from hunch.envs import make
from hunch.lm.base import LanguageModel
from hunch.lm.settings import check_prompts
from hunch.lm.ways import VERBS
from hunch.methods import Method
from hunch.methods.settings import configure
from hunch.rl.dataset import Dataset, Recorded
from hunch.rl.rollout import TextEnvironment, require_whole_groups
from hunch.runs.boards import Maker, board_of
from hunch.runs.config import RunConfig, group_of, way_of
from hunch.runs.data import options_with_data
from hunch.runs.environments import refuse_object
from hunch.runs.models import Join, Loaded, check_specs, load_models


@dataclass(frozen=True)
class Resolved:
    """The settings of a run, checked, with what their names stand for.

    Attributes:
        config: The settings.
        method: The method; None if the agent was made in Python.
        options: The settings of the method, with its defaults; None if the agent was made in Python.
        specs: The spec of each model that the method uses, by the option's name.
        boards: Constructors of the boards for metrics, by their spec.
        data: The data set of the run, if it was given as an object.
    """

    config: RunConfig
    method: Method | None
    options: Any
    specs: Mapping[str, str]
    boards: Mapping[str, Maker]
    data: Dataset | None = None

    @property
    def loading(self) -> str:
        """A text on what the run loads before its first step, for the progress display."""
        if not self.specs:
            return "starting"
        return f"loading {' and '.join(dict.fromkeys(self.specs.values()))}"

    @cached_property
    def env_options(self) -> Mapping[str, Any]:
        """The options of the environments: the run's, and otherwise those that its data were recorded with.

        Raises:
            UsageError: if the folder of the data does not exist, or they are from another environment.
        """
        return options_with_data(self.config, self.data)

    def environments(self, n: int = 1) -> list[TextEnvironment]:
        """Make n environments of the run.

        Raises:
            UsageError: on an unknown environment or option, or if the environment was made in Python.
        """
        refuse_object(self.config)
        return [make(self.config.env, **self.env_options) for _ in range(n)]

    def build(
        self,
        join: Join | None = None,
        lm: LanguageModel | None = None,
        loaded: Loaded | None = None,
        parts: Mapping[str, Any] | None = None,
    ) -> tuple[Agent, Mapping[str, LanguageModel]]:
        """Load the language models of the run and make the agent.

        Args:
            join: See :func:`hunch.runs.models.load_models`.
            lm: The model of the option ``lm``, if it was given as an object.
            loaded: See :func:`hunch.runs.models.load_models`.
            parts: Parts of the method besides models, from :func:`hunch.runs.loading.parts_of`.

        Raises:
            UsageError: if the agent was made in Python, or a model does not support what the method needs.
        """
        if self.method is None:
            raise UsageError(
                f"The agent {self.config.method} was made in Python; settings cannot rebuild it."
            )
        specs = dict(self.specs)
        models: dict[str, LanguageModel] = {}
        if lm is not None:
            specs.pop("lm", None)
            models["lm"] = lm
        models = {**load_models(specs, join, loaded), **models}
        return self.method.build(self.options, models, **(parts or {})), models


def resolve(config: RunConfig, boards: Sequence[str] = (), data: Recorded | None = None) -> Resolved:
    """Check the settings of a run, and find what their names stand for.

    Nothing is loaded, and no environment is made.

    Args:
        config: The settings.
        boards: Specs of boards for metrics; not part of the settings.
        data: Recorded episodes that were given as objects.

    Raises:
        UsageError: if a setting is wrong, or names something that does not exist; the message names it.
    """
    config.check_types()
    check_prompts(config)
    _check_loop(config)
    makers = {spec: board_of(spec) for spec in boards}
    data_set = data if isinstance(data, Dataset) else None
    if "agent" in config.objects:
        return Resolved(config, None, None, {}, makers, data_set)
    method = methods.find(config.method)
    _check_data(config, method)
    if config.lm and not method.takes_lm:
        raise UsageError(f"{config.method} uses no language model; leave --lm out.")
    options = config.options or method.config_class()
    specs = method.specs(options, config.lm)
    checked = dict(specs)
    if "lm" in method.config_class.__dataclass_fields__:  # the model that is trained
        options = replace(options, lm=config.lm)
        if config.lm:
            checked["lm"] = config.lm
    method.agent_class.check(options, checked)
    needs = dict(method.models)
    way = way_of(options)
    if "lm" in needs and way in VERBS:
        needs["lm"] = VERBS[way]
    check_specs(config.method, specs, needs)
    options = configure(method.agent_class, options, {})
    return Resolved(config, method, options, specs, makers, data_set)


def _check_loop(config: RunConfig) -> None:
    """Check settings that every run has, whatever its method."""
    if config.keep_last and not config.keep_every:
        raise UsageError("--keep-last needs --keep-every; without it no checkpoint is kept.")
    if not 0 <= config.processes <= config.streams:
        raise UsageError(f"processes must be from 0 to the number of environments, not {config.processes}.")
    require_whole_groups(config.streams, group_of(config.options))
    if config.online and not config.has_data:
        raise UsageError("--online needs --data; without data every run takes steps in the environment.")


def _check_data(config: RunConfig, method: Method) -> None:
    """Check that a run has recorded data if its method needs them, and none if it cannot use them."""
    if config.has_data and method.data == "none":
        raise UsageError(f"{config.method} does not learn from recorded data; leave --data out.")
    if not config.has_data and method.data == "needed":
        raise UsageError(f"{config.method} learns from recorded data: give a data set with --data FOLDER.")
