"""Measures how well world models predict the same recorded episodes.

==================== ======================================= ============================================
model                what it is                              its states
==================== ======================================= ============================================
``true``             the environment itself, placed          raw
``look-up``          the last result of the same step        texts if the domain has them, else raw
``code:FILE``        ``step``, or ``transition``, ``reward`` raw
a language model     completes a step, given examples        texts
==================== ======================================= ============================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import numpy as np

from hunch import lm
from hunch.core import EvidenceLevel, Transition, UsageError
from hunch.envs import make
from hunch.envs.design.code import class_flaw, flaw
from hunch.envs.design.program_model import Patient, ProgramModel
from hunch.envs.design.running import box
from hunch.envs.design.world_model import AS_CLASS
from hunch.envs.icpi.texts import Texts
from hunch.envs.offers import HasWording
from hunch.lm.base import LanguageModel
from hunch.lm.registry import check_spec
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch.rl.episodes import play
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world_model import LookUp, Quality, Step, TrueCopy, WorldModel, measure, steps_of
from hunch.roles.world_model.experience import Example, Experience
from hunch.roles.world_model.program import CodedModel
from hunch.roles.world_model.prompting import Completer, PromptConfig
from hunch.roles.world_model.text import InContextWorldModel
from hunch.sandbox import ProgramError
from hunch.text_files import read_text

STEP = ("state", "action")
"""Parameters of a program that predicts a whole step."""
OTHERS = 1_000_000
"""Difference between the seeds of example episodes and of predicted episodes."""
NO_TEXTS = "A language model needs the environment's texts for prompts, and this one has none (`wording`)."


@dataclass(frozen=True, kw_only=True)
class Foretelling:
    """Options of a measurement: the examples that world models get, and the steps that they predict."""

    env: str = "hunch/Chain-v0"
    """Environment id; its options are given as --env.NAME VALUE."""
    examples: NonNegativeInt = 64
    """Steps of random play that the world model gets as examples, or looks up."""
    episodes: PositiveInt = 20
    """Further episodes of random play; the world model predicts their steps."""
    depth: PositiveInt = 5
    """Maximum number of consecutive predictions, each from the predicted state before."""
    draws: PositiveInt = 1
    """Predictions per step; above 1 they show how well the model is calibrated."""
    seed: NonNegativeInt = 0
    """Seed of episodes and predictions."""
    prompts: PromptConfig = field(default_factory=PromptConfig)
    """How a language model is prompted for predictions."""


@dataclass(frozen=True)
class Recording:
    """Recorded episodes of an environment, split into examples and episodes to predict.

    Attributes:
        env: The environment, with no episode in progress.
        shown: Steps that serve as examples, in order; the last episode may be cut.
        held: Episodes to predict.
    """

    env: TextEnvironment
    shown: list[Transition]
    held: list[list[Transition]]

    @property
    def texts(self) -> Texts | None:
        """The wording of the domain in prompts; None if it has none."""
        inner = self.env.unwrapped
        wording = inner.wording if isinstance(inner, HasWording) else None
        return wording if isinstance(wording, Texts) else None


def recorded(what: Foretelling, env_options: Mapping[str, Any] | None = None) -> Recording:
    """Record random play: first the example steps, then the episodes to predict."""
    env = make(what.env, history=0, **(env_options or {}))
    rng = np.random.default_rng(what.seed)

    def episode(number: int) -> list[Transition]:
        return list(play(env, lambda state: str(rng.choice(state.options)), what.seed * OTHERS + number))

    shown: list[Transition] = []
    for number in count():
        if len(shown) >= what.examples:
            break
        shown += episode(number)
    held = [episode(OTHERS // 2 + number) for number in range(what.episodes)]
    return Recording(env, shown[: what.examples], held)


def text_steps(transitions: Sequence[Transition]) -> list[Step]:
    """Return transitions as steps whose states are the observations."""
    return [
        Step(t.state.observation, t.action, t.reward, t.terminated, t.next_state.observation)
        for t in transitions
    ]


def in_context(
    model: LanguageModel, recording: Recording, prompts: PromptConfig, most: int | None = None
) -> InContextWorldModel:
    """Return a world model by a language model that gets the recorded steps as examples.

    Args:
        model: The model.
        recording: The recorded steps.
        prompts: How the model is prompted.
        most: Maximum tokens of a completion, see :class:`Completer`.

    Raises:
        UsageError: if the environment has no wording for prompts, or the model does not generate.
    """
    if (texts := recording.texts) is None:
        raise UsageError(NO_TEXTS)
    experience = Experience()
    experience.add([Example._make(step) for step in text_steps(recording.shown)], True)
    return InContextWorldModel(Completer(model, prompts, most), experience, texts)


def check_model(spec: str, recording: Recording) -> None:
    """Check what can be checked of a world model without loading it, before the first one is measured.

    Raises:
        UsageError: if there is no such model or file, or this environment does not support it.
    """
    if spec.startswith("code:"):
        _source(spec)
    elif spec not in ("true", "look-up"):
        if "generate" not in check_spec(spec).verbs:
            raise UsageError(f"A prompt of examples needs a model that can generate, and {spec} cannot.")
        if recording.texts is None:
            raise UsageError(NO_TEXTS)


@contextmanager
def world_model(
    spec: str, recording: Recording, prompts: PromptConfig
) -> Iterator[tuple[WorldModel, bool, EvidenceLevel | None]]:
    """Return the world model of a spec, whether its states are texts, and its evidence level.

    Raises:
        UsageError: if there is no such model, or this environment does not support it.
    """
    if spec == "true":
        yield TrueCopy(recording.env), False, None
    elif spec == "look-up":
        words = recording.texts is not None
        yield LookUp((text_steps if words else steps_of)(recording.shown)), words, None
    elif spec.startswith("code:"):
        with ExitStack() as stack:
            yield _coded(spec, stack), False, None
    else:
        model = lm.load(spec)
        yield in_context(model, recording, prompts), True, model.evidence


def _source(spec: str) -> str:
    """Return the text of a program.

    Raises:
        UsageError: if its file cannot be read.
    """
    try:
        return read_text(spec.removeprefix("code:"))
    except OSError as error:
        raise UsageError(f"{spec} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise UsageError(f"{spec} is not a text.") from None


def _coded(spec: str, stack: ExitStack) -> WorldModel:
    """Return the program ``step``, its form as a class, or WorldCoder's ``transition`` and ``reward``."""
    source = _source(spec)
    try:
        if flaw(source, "step", STEP) and not class_flaw(source, AS_CLASS.name, AS_CLASS.methods):
            return ProgramModel(stack.enter_context(box().load(source + AS_CLASS.code, AS_CLASS.entry)))
        whole = not re.search(r"^def transition\b", source, re.MULTILINE)
        taken = {"step": STEP} if whole else {"transition": STEP, "reward": (*STEP, "next_state")}
        for name, parameters in taken.items():
            if wrong := flaw(source, name, parameters):
                raise UsageError(f"{spec} cannot be run: {wrong}.")
        parts = [stack.enter_context(box().load(source, name)) for name in taken]
        return ProgramModel(parts[0]) if whole else CodedModel(*map(Patient, parts))
    except ProgramError as error:
        raise UsageError(f"{spec} cannot be run: {error}.") from error


def foretell(spec: str, what: Foretelling, recording: Recording) -> tuple[Quality, EvidenceLevel | None]:
    """Measure a world model on the recorded episodes; return its quality and evidence level.

    Raises:
        UsageError: as for :func:`world_model`.
    """
    with world_model(spec, recording, what.prompts) as (model, words, level):
        held = [(text_steps if words else steps_of)(episode) for episode in recording.held]
        return measure(model, held, depth=what.depth, draws=what.draws, seed=what.seed), level


def unseen(recording: Recording) -> float:
    """Return the share of steps to predict whose state and action do not occur in the examples."""
    known = {(t.state.observation, t.action) for t in recording.shown}
    steps = list(chain.from_iterable(recording.held))
    return float(np.mean([(t.state.observation, t.action) not in known for t in steps]))
