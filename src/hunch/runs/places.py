"""Where a run takes place: its environments, its recorded data and its evaluations, made and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hunch.core import Agent, Episode, UsageError
from hunch.lm.base import LanguageModel
from hunch.rl.dataset import Dataset, Recorded
from hunch.rl.rollout import TextEnvironment
from hunch.runs.data import episodes_of, require_recorded
from hunch.runs.environments import asked_by, require_fit
from hunch.runs.evaluations import Evaluation, copies
from hunch.runs.resolve import Resolved


@dataclass(frozen=True)
class Given:
    """Python objects that replace what the settings would make.

    Attributes:
        agent: The agent. Default: the method's.
        lm: The model of the option ``lm``.
        envs: Environments for training.
        data: Recorded episodes.
        evaluation: When and where to evaluate.
        models: Models of a given agent to count, besides those in its ``models``.
        trained: Whether the agent is needed even if the folder already has the result.
    """

    agent: Agent | None = None
    lm: LanguageModel | None = None
    envs: Sequence[TextEnvironment] | None = None
    data: Recorded | None = None
    evaluation: Evaluation | None = None
    models: Mapping[str, LanguageModel] | None = None
    trained: bool = False


NOTHING = Given()


@dataclass(frozen=True)
class Places:
    """The environments, recorded episodes and evaluations of a run."""

    envs: Sequence[TextEnvironment]
    data: Sequence[Episode]
    evaluation: Evaluation | None

    @property
    def all(self) -> list[TextEnvironment]:
        """All environments; those of evaluations come last."""
        return [*self.envs, *(self.evaluation.places if self.evaluation else ())]


def places_of(resolved: Resolved, given: Given = NOTHING) -> Places:
    """Make environments and data that are not given, and check that the method can use them.

    Raises:
        UsageError: if the method cannot use them, or there is nothing to learn from.
    """
    config = resolved.config
    data, data_set = episodes_of(config, given.data)
    envs: list[TextEnvironment] = []
    if not config.offline:
        envs = list(given.envs or ())
        if not envs and "env" not in config.objects:
            envs = resolved.environments(config.streams)
    if not envs and not data:
        raise UsageError("There is nothing to learn from: pass an environment, recorded data, or both.")
    places = Places(envs, data, _evaluation(resolved, given, data_set))
    _require_separate(places)
    if config.processes and any(map(asked_by, envs)):
        raise UsageError(
            "The environment asks a model, which is counted in this process: leave processes out."
        )
    if resolved.method:
        for env in places.all[:1]:
            require_fit(resolved.method, env)
        if config.offline:
            require_recorded(resolved.method, data)
    return places


def _evaluation(resolved: Resolved, given: Given, data_set: Dataset | None) -> Evaluation | None:
    """Return when and where to evaluate: as given, as the settings say, or not at all."""
    config = resolved.config
    if given.evaluation and given.evaluation.envs is not None:
        return given.evaluation
    # A method that only learns from a data set is always evaluated, because there is nothing else to see.
    only_data = config.offline and given.agent is None and data_set is not None
    if config.eval_every or only_data:
        n = min(config.streams, config.eval_episodes)
        envs = copies(given.envs or (), n) if "env" in config.objects else resolved.environments(n)
        every = config.eval_every or max(1, config.steps // 10)
        return Evaluation(envs, every, config.eval_episodes, config.episodes_per_player)
    return None


def _require_separate(places: Places) -> None:
    """Check that evaluations use other environments than the training."""
    training = {id(env.unwrapped) for env in places.envs}
    if any(id(env.unwrapped) in training for env in places.all[len(places.envs) :]):
        raise UsageError("An evaluation needs environments of its own, not those of the training.")
