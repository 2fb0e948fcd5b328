"""How a language model becomes an action prior: the ways of asking it, and priors without a model.

=================== ======== ============================================================================
way                 verb     p(a|s)
=================== ======== ============================================================================
decision            decide   the probabilities that a decision model returns
structured          generate share of k answers, each restricted to one of the actions
label               label    softmax over the log-probabilities of letters that number the actions
similarity          embed    softmax of the similarity to task and history, minus that to recent actions
likelihood          score    softmax over the actions' log-probabilities as continuations of the prompt
likelihood-unlisted score    the same after the bare transcript, without a list of actions
text                generate share of k free-form answers mapped to a (Yan et al. 2025, section 3.1)
text-unlisted       generate the same after the bare transcript
uniform             none     1 / number of admissible actions
novelty             none     softmax with the penalty for recent actions alone: the control of similarity
=================== ======== ============================================================================

Source: Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal

from hunch.core import UsageError
from hunch.lm.base import LanguageModel, Normalisation
from hunch.lm.settings import AskConfig, ask_config
from hunch.lm.ways import has_way, way_for
from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import ActionPrior, DistributionPrior, UniformPrior
from hunch.roles.prior.language import (
    DecisionPrior,
    LabelledPrior,
    LikelihoodPrior,
    MappedPrior,
    SampledPrior,
)
from hunch.roles.prior.similarity import NoveltyPrior, SimilarityPrior

PriorWay = Literal[
    "auto",
    "decision",
    "structured",
    "label",
    "similarity",
    "likelihood",
    "likelihood-unlisted",
    "text",
    "text-unlisted",
    "uniform",
    "novelty",
]
TEMPERATURES: Final = {"similarity": 0.1, "novelty": 0.1}
"""Default softmax temperatures of the ways whose default is not 1."""
_OF_BEFORE: Final = {"mapped": "text", "labelled": "label"}
"""Ways by their earlier names in stored settings, where the names differ."""


@dataclass(frozen=True)
class PriorConfig(AskConfig):
    """Settings of an action prior."""

    renamed: ClassVar[Mapping[str, str]] = {"kind": "way", "listed": "way", "structured": "way"}

    way: PriorWay = "auto"
    """Way of asking for p(a|s); auto takes the model's best. uniform and novelty ask no model."""
    temperature: PositiveFloat | None = None
    """Temperature of softmax or sampling. Default: 1 (released code), for similarity and novelty 0.1 (our
    choice)."""
    history: NonNegativeFloat = 0.2
    """With similarity: weight of observed lines relative to the task (our choice)."""
    repeat: float = 1.0
    """With similarity or novelty: weight of the penalty for recent actions (our choice)."""
    normalise: Normalisation = "token"
    """With likelihood: divide log-probabilities by nothing (sum), tokens or words (TWOSOME compares all)."""
    read: Literal["decided", "named"] = field(default="decided", metadata=LATER)
    """With text: read the action that an answer decides on, or names most often (named, released code)."""
    rotations: PositiveInt = field(default=1, metadata=LATER)
    """With label: number of orders of the list of actions to average over, each of them a request. Small
    models choose by the place in the list; as many orders as actions put each at each place (ours)."""
    samples: PositiveInt | None = field(default=None, metadata=LATER)
    """With text or structured: number of answers, asked for once for each state that the model reads; their
    shares are p(a|s) from then on (ours). Default: each proposal is a new answer, as in the paper."""
    drawing: NonNegativeInt = field(default=0, metadata=LATER)
    """With samples: which answers, the same ones in all seeds: 0 for the first ``samples``, 1 for the next
    ones, and so on (ours)."""
    blank: bool = field(default=False, metadata=LATER)
    """The blank prompt, a control: the model reads neither the task, nor goals, nor lines of observations
    that repeat them. Rules that do not name the task stay (ours)."""
    recent: NonNegativeInt | None = field(default=None, metadata=LATER)
    """Past steps that the model reads, at most. Default: all that the learner sees (``env.history``). With 0
    it is asked once for each observation, however long the learner's history is (ours). The rule against
    repeats (``repeat``) sees no more steps either."""

    @property
    def asks_model(self) -> bool:
        """True if a model is asked."""
        return self.way not in ("uniform", "novelty")

    @classmethod
    def current(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored settings of earlier versions by today's names.

        Raises:
            UsageError: if they restrict answers and list no actions, which is no way any more.
        """
        if "kind" not in stored:
            return dict(stored)
        values = dict(stored)
        kind = values.pop("kind")
        listed = values.pop("listed", True)
        structured = values.pop("structured", False)
        way = _OF_BEFORE.get(kind, kind)
        if structured and kind in ("mapped", "auto"):
            way = "structured"
        if not listed and kind in ("mapped", "likelihood", "auto"):
            if kind == "auto" or structured:
                raise UsageError(
                    f"The settings prior.way {kind}, listed {listed}, structured {structured} are no way of "
                    "asking any more; set prior.way"
                )
            way = f"{way}-unlisted"
        return {"way": way, **values}


def build_prior(
    config: PriorConfig, lm: LanguageModel, table: TextTable | None = None, *, role: str = "prior"
) -> DistributionPrior | MappedPrior:
    """Make an action prior from a language model.

    Args:
        config: Settings of the prior.
        lm: The model; ``uniform`` gives the uninformed prior.
        table: Embeddings to share; used if they come from the same model.
        role: The role that the prior fills, a key of :data:`hunch.lm.hearing.ANSWERS`.

    Raises:
        UsageError: if the model does not support this way of asking (the message names those that it has), or
            a prompt file has no use in it.
    """
    prior = _asked(config, lm, table, role)
    if config.blank:
        prior.blank = True
    if config.recent is not None:
        prior.recent = config.recent
    return prior


def _asked(
    config: PriorConfig, lm: LanguageModel, table: TextTable | None, role: str
) -> DistributionPrior | MappedPrior:
    """Return the prior of the way that is set, or of the model's best."""
    way = choose_way(config, lm, role)
    _require_use(config, way)
    temperature = config.temperature
    if temperature is None:
        temperature = TEMPERATURES.get(way, 1.0)
    asks = ask_config(config, temperature=temperature)

    if way == "uniform":
        return UniformPrior("L0")
    if way == "novelty":
        return NoveltyPrior(temperature=temperature, repeat=config.repeat)
    if way == "decision":
        return DecisionPrior(lm, temperature=temperature, asks=asks, role=role)
    if way == "label":
        return LabelledPrior(lm, temperature=temperature, rotations=config.rotations, asks=asks, role=role)
    if way == "similarity":
        require_no_prompt(config)
        embeddings = table if table is not None and table.lm is lm else lm
        return SimilarityPrior(
            embeddings,
            temperature=temperature,
            history=config.history,
            repeat=config.repeat,
            role=role,
        )
    listed = not way.endswith("-unlisted")
    if way in ("likelihood", "likelihood-unlisted"):
        return LikelihoodPrior(
            lm, normalise=config.normalise, temperature=temperature, listed=listed, asks=asks, role=role
        )
    structured = way == "structured"
    if config.samples is not None:
        return SampledPrior(
            lm,
            config.samples,
            drawing=config.drawing,
            reading=config.read,
            asks=asks,
            listed=listed,
            structured=structured,
            role=role,
        )
    return MappedPrior(lm, read=config.read, asks=asks, listed=listed, structured=structured, role=role)


def _require_use(config: PriorConfig, way: PriorWay) -> None:
    """Check that answers are counted only where there are any.

    Raises:
        UsageError: if a setting has no use in this way of asking.
    """
    if config.samples is not None and way not in ("text", "text-unlisted", "structured", "uniform"):
        raise UsageError(f"prior.samples counts written answers, and by {way} there are none: leave it out.")
    if config.drawing and config.samples is None:
        raise UsageError("prior.drawing says which of prior.samples answers: set that, too.")


def require_no_prompt(config: PriorConfig) -> None:
    """Check that no prompt file is set where texts are only compared.

    Raises:
        UsageError: if one is.
    """
    if config.prompt:
        raise UsageError("By similarity a model reads no prompt file: leave it out, or take another way.")


def settings_of(prior: ActionPrior) -> PriorConfig | None:
    """Return the settings that a prior states: the inverse of :func:`build_prior`; None for other priors.

    A subclass may do something else, so its settings say nothing, and the result is None.
    """
    config = _stated(prior)
    if config is None:
        return None
    blank = getattr(prior, "blank", False)
    recent = getattr(prior, "recent", None)
    return replace(config, blank=blank, recent=recent)


def _stated(prior: ActionPrior) -> PriorConfig | None:
    """Return the settings of a prior but for what it reads of a state; None for priors of others."""
    if type(prior) is UniformPrior:
        return PriorConfig(way="uniform")
    if type(prior) is NoveltyPrior:
        return PriorConfig(way="novelty", temperature=prior.temperature, repeat=prior.repeat)
    if type(prior) is SimilarityPrior:
        return PriorConfig(
            way="similarity", temperature=prior.temperature, history=prior.history, repeat=prior.repeat
        )
    if type(prior) is DecisionPrior:
        return PriorConfig(way="decision", **_requests(prior.asks, prior.temperature))
    if type(prior) is LabelledPrior:
        return PriorConfig(way="label", rotations=prior.rotations, **_requests(prior.asks, prior.temperature))
    if type(prior) is LikelihoodPrior:
        likelihood: PriorWay = "likelihood" if prior.listed else "likelihood-unlisted"
        return PriorConfig(
            way=likelihood, normalise=prior.normalise, **_requests(prior.asks, prior.temperature)
        )
    if type(prior) is MappedPrior:
        return PriorConfig(
            way=_written(prior), read=prior.read, **_requests(prior.asks, prior.asks.temperature)
        )
    if type(prior) is SampledPrior:
        return PriorConfig(
            way=_written(prior),
            read=prior.reading,
            samples=prior.samples,
            drawing=prior.drawing,
            **_requests(prior.asks, prior.asks.temperature),
        )
    return None


def _written(prior: MappedPrior | SampledPrior) -> PriorWay:
    """Return how a prior is asked whose model writes."""
    if prior.structured:
        return "structured"
    return "text" if prior.listed else "text-unlisted"


def _requests(asks: AskConfig, temperature: float | None) -> dict[str, Any]:
    """Return the settings of requests by name; the temperature is that of the prior, where it has one."""
    settings = {entry.name: getattr(asks, entry.name) for entry in fields(AskConfig)}
    return {**settings, "temperature": temperature}


def choose_way(config: PriorConfig, lm: LanguageModel, role: str = "prior") -> PriorWay:
    """Return the way of asking; ``auto`` takes the best one of the model (:func:`hunch.lm.ways.best_way`).

    Raises:
        UsageError: if the model cannot be asked in this way.
    """
    if config.way == "uniform" or config.way == "novelty":
        return config.way
    # The uninformed model is the control of every way, also of those that it cannot be asked in.
    if lm.name == "uniform" and (config.way == "auto" or not has_way(lm, config.way)):
        return "uniform"
    return way_for(lm, config.way, role=role, needed_by="An action prior")
