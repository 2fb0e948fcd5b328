"""Scripted models (evidence level L0): rules in place of a language model, with dials for error rates.

They know the environments, so this package is above both ``lm`` and ``envs``. :func:`hunch.lm.load` finds
them as ``scripted:<rule>`` through the entry-point group ``hunch.models``, like any plugin.
"""

from hunch.lm.base import Backend
from hunch_studies.rules.model import RULES, ScriptedModel, rule

__all__ = ["BACKEND", "RULES", "ScriptedModel", "rule"]

BACKEND = Backend(
    "scripted:<rule>",
    "hunch_studies.rules.load:load",
    frozenset({"generate", "score", "label", "see"}),
    "a rule, with dials for error, refusal and malformed output",
    costly=False,
)
