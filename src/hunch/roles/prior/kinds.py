"""Kinds of action priors: methods to get p(a|s) from a language model.

=========== ======== ====================================================================================
prior       verb     p(a|s)
=========== ======== ====================================================================================
uniform     none     1 / number of admissible actions
mapped      generate share of k free-form answers that a rule maps to a (Yan et al. 2025, section 3.1)
likelihood  score    softmax over the actions' log-probabilities as continuations of the prompt
labelled    label    softmax over the log-probabilities of letters that number the actions
novelty     none     softmax with a penalty for recent actions: a control
similarity  embed    softmax of the similarity to task and history, minus that to recent actions
=========== ======== ====================================================================================

Source: Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hunch.lm.base import Normalisation, Verb
from hunch.lm.settings import AskConfig
from hunch.ranges import LATER, NonNegativeFloat, PositiveFloat

NEEDS: dict[str, tuple[Verb, ...]] = {
    "mapped": ("generate",),
    "likelihood": ("score",),
    "labelled": ("label", "score"),
    "similarity": ("embed",),
}
"""Kinds of request by kind of prior; the model must support at least one."""


@dataclass(frozen=True)
class PriorConfig(AskConfig):
    """Settings of an action prior."""

    kind: Literal["auto", "uniform", "novelty", "mapped", "likelihood", "labelled", "similarity"] = "auto"
    """Computation of p(a|s); auto takes the first that the model supports: generate, embed, score, label."""
    temperature: PositiveFloat | None = None
    """Temperature of softmax or sampling. Default: 1 (released code), for similarity and novelty 0.1 (our
    choice)."""
    history: NonNegativeFloat = 0.2
    """With similarity: weight of observed lines relative to the task (our choice)."""
    repeat: float = 1.0
    """With similarity or novelty: weight of the penalty for recent actions (our choice)."""
    normalise: Normalisation = "token"
    """With likelihood: divide log-probabilities by nothing (sum), tokens or words (TWOSOME compares all)."""
    listed: bool = True
    """With mapped or likelihood: list the admissible actions in the prompt (paper), or show none."""
    read: Literal["decided", "named"] = field(default="decided", metadata=LATER)
    """With mapped: read the action that an answer decides on, or names most often (named, released code)."""
    structured: bool = field(default=False, metadata=LATER)
    """With mapped: the server restricts each answer to one of the actions (JSON schema, response_format)."""
