"""A reader: turns the picture of a state into facts, and facts into the text of the observation.

facts <- for each field of the environment's schema:
         the value whose sentence is most similar to the picture, if the model embeds both;
         or the value in the JSON that a model writes: asked once more if it is unusable, and after that
         the last reading of the episode is kept
the agent reads  describe(facts)  in place of the observation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from hunch.core import UsageError
from hunch.envs.wrappers import Rewording
from hunch.lm import Cached, load
from hunch.lm.answers.lines import as_json
from hunch.lm.asking import Asking
from hunch.lm.base import Float32Array, LanguageModel
from hunch.lm.pictures import message, picture
from hunch.lm.prompts import Message
from hunch.lm.settings import AskConfig

_LOADED: WeakValueDictionary[str, Cached] = WeakValueDictionary()
UNSURE: Final = "unsure"
"""Value by which a model says that it does not know; the last reading of the field is kept."""


def shared(spec: str) -> Cached:
    """Return the model of a spec; environments with the same spec share one object."""
    if (model := _LOADED.get(spec)) is None:
        _LOADED[spec] = model = load(spec)
    return model


class Schema(NamedTuple):
    """The information in a picture of an environment; an environment has it in its attribute ``schema``.

    Attributes:
        fields: The possible values of each field, and the sentence for each value.
        describe: Returns the observation for the agent, given a value for each field.
    """

    fields: Mapping[str, Mapping[str, str]]
    describe: Callable[[Mapping[str, str]], str]


class Reader:
    """Reads the information in pictures, field by field.

    Args:
        lm: A model that reads pictures, and embeds or generates.
        schema: The fields.
        config: How a model that generates is asked.

    Raises:
        UsageError: if the model can neither embed nor generate.
    """

    def __init__(self, lm: LanguageModel, schema: Schema, config: AskConfig | None = None) -> None:
        if "see" not in lm.verbs or not lm.verbs & {"generate", "embed"}:
            raise UsageError(f"A reader must see pictures, and embed or write; {lm.name} cannot.")
        self.lm, self.fields = lm, schema.fields
        self.asking = Asking(lm, config or AskConfig(), tokens=256, temperature=0.0, stop=(), role="reader")

    def facts(self, seen: bytes) -> dict[str, str]:
        """Return the facts that a picture shows, without values that the model is unsure about.

        Args:
            seen: The picture, as a PNG file.

        Raises:
            HunchError: if too many successive answers are useless.
        """
        return self._written(picture(seen)) if "generate" in self.lm.verbs else self._nearest(seen)

    def _nearest(self, seen: bytes) -> dict[str, str]:
        """Return the value of each field whose sentence has the largest cosine with the picture."""
        vector = self.lm.embed([message(seen)])[0]
        return {
            name: list(values)[int(np.argmax(self._sentences[name] @ vector))]
            for name, values in self.fields.items()
        }

    @cached_property
    def _sentences(self) -> dict[str, Float32Array]:
        """The vectors of each field's sentences, (values, dim)."""
        return {name: self.lm.embed(list(sentences.values())) for name, sentences in self.fields.items()}

    def _written(self, seen: str) -> dict[str, str]:
        prompt: tuple[Message, ...] = (Message("user", self.question(), (seen,)),)
        for _ in range(2):
            answer = self.asking.generate([prompt])[0][0]
            values, wrong = self.read(answer)
            if not wrong:
                break
            again = f"{wrong} Answer with the JSON object only."
            prompt = (*prompt, Message("assistant", answer or "-"), Message("user", again))
        sure = {name: value for name, value in values.items() if value != UNSURE}
        self.asking.hear([answer], [None if wrong else values], rejected=len(values) - len(sure))
        return sure

    def question(self) -> str:
        """Return the prompt about a picture, for a model that generates."""
        lines = [
            f'"{name}": ' + ", ".join(f'"{value}" ({said})' for value, said in values.items())
            for name, values in self.fields.items()
        ]
        return (
            "What does the picture show? Answer with one JSON object. Its keys, each with the values that "
            f'are possible, and "{UNSURE}" where you cannot tell:\n' + "\n".join(lines)
        )

    def read(self, answer: str) -> tuple[dict[str, str], str]:
        """Return the facts in an answer, and a sentence on what is wrong with it; then there are no facts."""
        held = as_json(answer)
        if not isinstance(held, Mapping):
            return {}, "That is no JSON object."
        for name, values in self.fields.items():
            if str(held.get(name)) not in (*values, UNSURE):
                return {}, f'"{name}" has to be one of {", ".join(values)} or {UNSURE}.'
        return {name: str(held[name]) for name in self.fields}, ""


class Read(Rewording):
    """Replaces the observation by a model's reading of the picture; ``info["facts"]`` has the facts.

    Args:
        env: An environment with a ``schema``, in which states have pictures (:class:`Pictured`).
        reader: A model that reads pictures, and embeds or generates.
        spec: The spec of this model.

    Raises:
        UsageError: if the environment has no schema, a field has fewer than two values, or the model cannot
            embed or generate.
    """

    def __init__(self, env: gymnasium.Env[str, str | int], reader: LanguageModel, spec: str = "") -> None:
        RecordConstructorArgs.__init__(self, reader=reader, spec=spec)
        super().__init__(env)
        self.schema, self.option = schema_of(env), {"reader": spec}
        self.models = {"reader": reader}
        self.reader = Reader(reader, self.schema)
        self.facts: dict[str, str] = {}

    def reword(
        self, observation: str, info: dict[str, Any], action: str | int | None
    ) -> tuple[str, dict[str, Any]]:
        """Read the picture, and replace the observation.

        Raises:
            HunchError: if too many successive answers are useless.
        """
        if action is None or not self.facts:
            self.facts = {name: next(iter(values)) for name, values in self.schema.fields.items()}
        self.facts = {**self.facts, **self.reader.facts(info["pictures"][-1])}
        return self.schema.describe(self.facts), {**info, "facts": dict(self.facts)}


def schema_of(env: gymnasium.Env[Any, Any]) -> Schema:
    """Return the schema of an environment.

    Raises:
        UsageError: if it has no schema, or one without fields to read.
    """
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    schema: Schema | None = getattr(env.unwrapped, "schema", None)
    if schema is None:
        raise UsageError(f"{name} does not say what its pictures show, so leave reader out.")
    if not schema.fields or any(len(values) < 2 for values in schema.fields.values()):
        raise UsageError(f"The schema of {name} needs fields with two values or more.")
    return schema
