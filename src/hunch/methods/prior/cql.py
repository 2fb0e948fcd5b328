"""CQL over admissible actions (Kumar et al., NeurIPS 2020): CQL-Prior with nothing in the prior's role.

Every line is shared with :mod:`hunch.methods.prior.cql_prior`; C^k(s) is the whole set of admissible actions.
"""

from __future__ import annotations

from typing import Any

from hunch.lm.base import LanguageModel
from hunch.methods.prior.cql_prior import CQLConfig, CQLPrior
from hunch.methods.prior.proposals import encoder_table
from hunch.roles.encoder import TextTable
from hunch.roles.prior import UniformPrior


class CQL(CQLPrior):
    """The agent of CQL.

    Args:
        encoder: Embeds texts for Q; frozen. Default: ``minilm``.
        config: All settings; ``options`` change single ones.
    """

    def __init__(
        self, encoder: TextTable | None = None, config: CQLConfig | None = None, **options: Any
    ) -> None:
        super().__init__(UniformPrior(), encoder, config or CQLConfig(), **options)


def build(config: CQLConfig, lm: LanguageModel) -> CQL:
    """CQL asks no language model; ``lm`` only lends its embeddings where it is the configured encoder."""
    return CQL(encoder_table(config, lm), config)
