"""A trained agent in a program: it chooses actions, says why, and can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hunch.core import Agent, Explanation, State, UsageError
from hunch.rl.rollout import TextEnvironment
from hunch.runs.build import Checkpoint, load_agent
from hunch.runs.config import RunConfig
from hunch.runs.describe import describe
from hunch.runs.files import CHECKPOINT, write_checkpoint
from hunch.runs.folder import RunFolder, refuse_foreign
from hunch.runs.places import identify
from hunch.runs.training import plain, who


class Trained:
    """An agent that is used and not trained.

        trained = hunch.load("runs/lake")
        observation, info = env.reset(seed=0)
        action = trained.predict(observation, info)

    Attributes:
        agent: The agent itself.

    Args:
        agent: Any agent.
        env: An environment like those that it was trained in, for :meth:`save`; some agents take their words
            from it.
        seed: Of the choices.

    Raises:
        UsageError: if it is no agent.
    """

    def __init__(
        self,
        agent: Agent,
        env: TextEnvironment | None = None,
        *,
        seed: int = 0,
        config: RunConfig | None = None,
    ) -> None:
        self.agent, self._env, self._config = require_agent(agent), env, config
        self._player = agent.player(seed)

    def predict(self, observation: str, info: Mapping[str, Any]) -> str:
        """Choose an action for what ``reset`` or ``step`` of a text environment returned.

        Choices are drawn where the agent draws them in evaluations. Nothing is learnt or remembered.

        Raises:
            UsageError: if ``info`` does not name the admissible actions.
        """
        return self._player.act([State.read(observation, info)])[0]

    def explain(self, observation: str, info: Mapping[str, Any]) -> Explanation:
        """Say what is behind the choice; see :class:`hunch.core.Explanation`."""
        return self.agent.explain(State.read(observation, info))

    def save(self, path: str | Path) -> None:
        """Write a folder that :func:`hunch.load`, ``hunch play --run`` and ``hunch evaluate`` read.

        Raises:
            UsageError: if the folder holds a run, or other things.
            HunchError: if it cannot be written.
        """
        path = Path(path)
        refuse_foreign(path)
        if (path / "summary.json").exists() or (path / "episodes.jsonl").exists():
            raise UsageError(f"{path} holds a run, which has its own checkpoint: choose another folder.")
        config = self._config or self._describe()
        folder = RunFolder(path, lines=False)
        try:
            models = getattr(self.agent, "models", {})
            folder.write_json("config.json", config.record(self.agent.evidence, models))
            state = {"agent": self.agent.state_dict(), "identity": plain(who(self.agent))}
            write_checkpoint(path / CHECKPOINT, state)
        finally:
            folder.close()

    def _describe(self) -> RunConfig:
        known = describe(self.agent)
        env, options, again = identify([] if self._env is None else [self._env])
        objects = (*(() if known.again else ("agent",)), *(() if again else ("env",)))
        return RunConfig(
            method=known.method,
            lm=known.lm,
            options=known.options,
            env=env,
            env_options=options,
            objects=objects,
        )


def require_agent(agent: Any) -> Agent:
    """Return what is an agent.

    Raises:
        UsageError: if it is none, saying what it is instead.
    """
    if isinstance(agent, type):
        raise UsageError(f"{agent.__name__} is a class: make an agent of it, or name a method.")
    if hasattr(agent, "verbs"):
        raise UsageError(
            f"The language model {agent.name} is no agent: name a method that asks it, as in "
            f"hunch.train('dqn-prior', env, lm={agent.name!r})."
        )
    if not isinstance(agent, Agent):
        lacking = [verb for verb in _VERBS if not hasattr(agent, verb)]
        raise UsageError(f"{agent!r} is no agent: it lacks {', '.join(lacking) or 'settings or evidence'}.")
    return agent


_VERBS = ("begin", "act", "observe", "learn", "player", "explain", "records", "state_dict", "load_state_dict")


def load(
    folder: str | Path,
    *,
    checkpoint: Checkpoint = "last",
    agent: Agent | None = None,
    env: TextEnvironment | None = None,
    seed: int = 0,
) -> Trained:
    """Load the agent of a run, or one that :meth:`Trained.save` wrote.

    Args:
        folder: The folder, which stays as it is.
        checkpoint: ``"last"``, or ``"best"`` for the agent of the best evaluation.
        agent: An agent of the same class and settings, which is filled; needed where the run was made in
            Python with an agent that ``config.json`` cannot describe.
        env: An environment like those of the run; needed where such an agent asks its environment for words.
        seed: Of the choices.

    Raises:
        UsageError: if the folder holds no run, or an agent is needed and not given, or does not fit.
        HunchError: if there is no such checkpoint, or it is damaged.
    """
    if checkpoint not in ("last", "best"):
        raise UsageError(f"checkpoint is 'last' or 'best', not {checkpoint!r}.")
    found, config = load_agent(folder, checkpoint=checkpoint, agent=agent, env=env)
    return Trained(found, env, seed=seed, config=config)
