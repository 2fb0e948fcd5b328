"""``hunch lm SPEC --ask ROLE --env ID``: how a role asks a model, what it says, and how that is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hunch import envs
from hunch import lm as models
from hunch.cli.options import parse, split_environment
from hunch.core import State, Transition, UsageError, World
from hunch.lm.answers.lines import spoken
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt, text_of
from hunch.roles.prior.kinds import PriorConfig, build_prior, choose_kind
from hunch.roles.prior.language import MappedPrior
from hunch.roles.reward.judge import Judge, JudgeConfig

LONGEST = 200
"""Maximum steps of the episode that a judge is asked about."""


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """What a role asks a model."""

    ask: Literal["prior", "judge"]
    """The role."""
    env: str
    """The environment."""
    seed: int = 0
    """Seed of the episode, and number of the answer."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """Options of the prior, as of the methods that have one."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    """Options of the judge, as of the method kwon."""


def ask(arguments: Sequence[str]) -> None:
    """Ask a model as a role does; print prompt, answer and how it is read.

    Raises:
        UsageError: on a wrong option, or an environment or model that does not fit the role.
        HunchError: if the model cannot be loaded or gives no answer.
    """
    if arguments[0].startswith("-"):
        raise UsageError("Name one model first, as in 'hunch lm SPEC --ask prior --env ID'.")
    rest, options = split_environment(arguments[1:])
    where = parse(f"lm {arguments[0]}", str(ask.__doc__), {"where_": AskOptions}, rest).where_
    env = envs.make(where.env, **options)
    model = models.load(arguments[0], cache=None)
    {"prior": _prior, "judge": _judge}[where.ask](model, env, where)


def _prior(model: LanguageModel, env: Any, where: AskOptions) -> None:
    state = State.read(*env.reset(seed=where.seed))
    prior = build_prior(where.prior, model)
    if isinstance(prior, MappedPrior):
        ((answer,),) = prior.answers([state], 1, where.seed)
        action, named = prior.understood(answer, state.options, np.random.default_rng(0))
        _show(prior.prompt(state), answer, f"the action {state.options[action]!r}" if named else "")
        return
    (shares,) = prior.probabilities([state])
    print(f"The prior is {choose_kind(where.prior, model)}, so the model writes no answer. p(a|s):\n")
    print("\n".join(f"{p:.3f} {action}" for action, p in zip(state.options, shares, strict=True)))


def _judge(model: LanguageModel, env: Any, where: AskOptions) -> None:
    judge = Judge(model, where.judge)
    judge.begin(World(env=where.env), 0)
    prompt = _episode(judge, env, where.seed)
    if where.judge.how == "score":
        print(f"{text_of(prompt)}\n\nRead as: {judge.judged([prompt])[0]:.3f} for yes.")
        return
    (answer,) = judge.written([prompt])
    (verdict,) = judge.read([answer])
    _show(prompt, answer, "" if verdict is None else f"the verdict {'yes' if verdict else 'no'}")


def _episode(judge: Judge, env: Any, seed: int) -> Prompt:
    """Return a judge's question about an episode of random actions."""
    rng = np.random.default_rng(seed)
    state, account = State.read(*env.reset(seed=seed)), list[str]()
    account.append(state.observation)
    for _ in range(LONGEST):
        action = str(rng.choice(state.options))
        observation, reward, terminated, truncated, info = env.step(action)
        after = State.read(observation, info)
        account += judge.told(
            Transition(
                state, action, float(reward), after, terminated, truncated, event=info.get("event", "")
            )
        )
        state = after
        if terminated or truncated:
            break
    return judge.question(state.task, account)


def _show(prompt: Prompt, answer: str, read: str) -> None:
    told = text_of(prompt)
    print(f"---- prompt ----\n{told}\n---- answer ----\n{answer}\n----------------")
    if not spoken(answer).strip():
        print("There is no answer: the model said nothing.")
    else:
        print(f"Read as: {read or 'nothing that the role can use'}.")
