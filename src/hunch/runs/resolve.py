"""Resolves the settings of a run once: what their names stand for, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hunch import methods
from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.settings import check_prompts
from hunch.lm.ways import VERBS
from hunch.methods import Method
from hunch.methods.settings import configure
from hunch.rl.rollout import require_whole_groups
from hunch.runs.boards import Maker, board_of
from hunch.runs.config import RunConfig, group_of
from hunch.runs.models import Join, Loaded, check_specs, load_models


@dataclass(frozen=True)
class Resolved:
    """The settings of a run, checked, with what their names stand for.

    Attributes:
        config: The settings.
        method: The method; None if the agent was made in Python.
        specs: The spec of each model that the method uses, by the option's name.
        boards: Constructors of the boards for metrics, by their spec.
    """

    config: RunConfig
    method: Method | None
    specs: Mapping[str, str]
    boards: Mapping[str, Maker]

    @property
    def loading(self) -> str:
        """A text on what the run loads before its first step, for the progress display."""
        if not self.specs:
            return "starting"
        return f"loading {' and '.join(dict.fromkeys(self.specs.values()))}"

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
            UsageError: if the agent was made in Python, a model does not support what the method needs, or a
                setting is out of range.
        """
        method = self.method
        if method is None:
            raise UsageError(
                f"The agent {self.config.method} was made in Python; settings cannot rebuild it."
            )
        options = self.config.options or method.config_class()
        if lm is None and "lm" in method.config_class.__dataclass_fields__:
            options = replace(options, lm=self.config.lm)
        options = configure(method.agent_class, options, {})
        specs = dict(self.specs)
        models: dict[str, LanguageModel] = {}
        if lm is not None:
            specs.pop("lm", None)
            models["lm"] = lm
        models = {**load_models(specs, join, loaded), **models}
        return method.build(options, models, **(parts or {})), models


def resolve(config: RunConfig, boards: Sequence[str] = ()) -> Resolved:
    """Check the settings of a run, and find what their names stand for.

    Nothing is loaded, and no environment is made.

    Args:
        config: The settings.
        boards: Specs of boards for metrics; not part of the settings.

    Raises:
        UsageError: if a setting is wrong, or names something that does not exist; the message names it.
    """
    config.check_types()
    check_prompts(config)
    _check_loop(config)
    makers = {spec: board_of(spec) for spec in boards}
    if "agent" in config.objects:
        return Resolved(config, None, {}, makers)
    method = methods.find(config.method)
    _check_data(config, method)
    if config.lm and not method.takes_lm:
        raise UsageError(f"{config.method} uses no language model; leave --lm out.")
    options = config.options or method.config_class()
    specs = method.specs(options, config.lm)
    method.check(options, config.lm)
    needs = dict(method.models)
    way = getattr(getattr(config.options, "prior", None), "way", "auto")
    if "lm" in needs and way in VERBS:
        needs["lm"] = VERBS[way]
    check_specs(config.method, specs, needs)
    return Resolved(config, method, specs, makers)


def _check_loop(config: RunConfig) -> None:
    """Check settings that every run has, whatever its method."""
    if config.keep_last and not config.keep_every:
        raise UsageError("--keep-last needs --keep-every; without it no checkpoint is kept.")
    if not 0 <= config.processes <= config.envs:
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
