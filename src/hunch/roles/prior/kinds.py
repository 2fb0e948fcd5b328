"""Kinds of action priors: the ways to get p(a|s) from a language model.

=========== ======== ====================================================================================
prior       verb     p(a|s)
=========== ======== ====================================================================================
uniform     none     1 / number of admissible actions
mapped      generate share of k free-form answers that a rule maps to a (Yan et al. 2025, section 3.1)
likelihood  score    softmax over the actions' log-probabilities as continuations of the prompt
labelled    label    softmax over the log-probabilities of letters that number the actions
novelty     none     softmax with a penalty for actions just taken: a control
similarity  embed    softmax over the similarity of a to task and history, minus that to actions just taken
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
"""Verbs of which each kind needs one."""


@dataclass(frozen=True)
class PriorConfig(AskConfig):
    """How a language model becomes an action prior."""

    kind: Literal["auto", "uniform", "novelty", "mapped", "likelihood", "labelled", "similarity"] = "auto"
    """How p(a|s) is computed; auto takes the first that the model supports: generate, embed, score, label."""
    temperature: PositiveFloat | None = None
    """Temperature of softmax or sampling. Default: mapped 1 (released code), similarity 0.1, others 1 (our
    choice)."""
    history: NonNegativeFloat = 0.2
    """similarity: weight of observed lines relative to the task (our choice)."""
    repeat: float = 1.0
    """similarity, novelty: weight of the penalty for recent actions (our choice)."""
    normalise: Normalisation = "token"
    """likelihood: divisor of a log-probability (TWOSOME compares the three)."""
    listed: bool = True
    """mapped, likelihood: name the admissible actions in the prompt (paper), or leave the bare transcript."""
    read: Literal["decided", "named"] = field(default="decided", metadata=LATER)
    """mapped: the action that an answer decides on, or that it names most often (released code)."""
    structured: bool = field(default=False, metadata=LATER)
    """mapped: the server makes each answer one of the actions, with a JSON schema (response_format)."""
