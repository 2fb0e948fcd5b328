"""Loads scripted models by name; importing the rules here registers them."""

from __future__ import annotations

from hunch.core import UsageError
from hunch.lm.backends.sampling import listed_options
from hunch.lm.base import Model
from hunch.ranges import check_value
from hunch.suggest import suggest
from hunch_studies.rules import (  # noqa: F401, each registers its rules
    captions,
    critic,
    errands,
    examiner,
    formalising,
    frozen_lake,
    icpi,
    judge,
    kitchen,
    mentor,
    onlooker,
    partners,
    player,
    recipes,
    suggestions,
    words,
    writer,
)
from hunch_studies.rules.model import DIALS, OPTIONS, RULES, VERSIONS, WRITERS, ScriptedModel


def load(name: str, **dials: float) -> Model:
    """Load the model ``scripted:<name>``: a rule, or a writer of programs with its own dials.

    Raises:
        UsageError: if there is no such rule or dial, or a dial is not from 0 to 1.
    """
    for dial, value in dials.items():
        check_value(f"The dial {dial} of scripted:{name}", value, float)
    if name in WRITERS:
        return _LOADERS.get(name, writer.load)(name, dials)
    if name not in RULES:
        raise UsageError(
            f"There is no rule {name!r} for scripted models; {suggest(name, sorted([*RULES, *WRITERS]))}"
        )
    for dial in dials:
        if dial not in (*DIALS, SPEAKS):
            raise UsageError(f"The rule {name!r} has no option {dial!r}; {suggest(dial, (*DIALS, SPEAKS))}")
    speaks = dials.pop(SPEAKS, 0)
    model = ScriptedModel(
        RULES[name],
        name=f"scripted:{name}",
        options=OPTIONS.get(name, listed_options),
        version=VERSIONS.get(name, ""),
        **dials,
    )
    if speaks:
        model.verbs = frozenset({"generate"})
    return model


SPEAKS = "speaks"
"""At 1 a rule can only generate, like a chat model: its probabilities are shares of its answers."""


_LOADERS = {
    "critic": critic.load,
    "formaliser": formalising.load,
    "suggest": suggestions.load,
    "mentor": mentor.load,
    "onlooker": onlooker.load,
    "recipes": recipes.load,
    "player": player.load,
}
