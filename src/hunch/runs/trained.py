"""A trained agent in a Python program: chooses actions, explains them, and can be saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from hunch.core import Agent, Explanation, State, UsageError
from hunch.ranges import NonNegativeInt, PositiveInt, check_value
from hunch.rl.rollout import TextEnvironment
from hunch.runs.checkpoints import CHECKPOINT, settings_identity, write_checkpoint
from hunch.runs.config import RunConfig
from hunch.runs.describe import describe
from hunch.runs.environments import identify
from hunch.runs.files import plain, write_json
from hunch.runs.folder import RunFolder, description, refuse_foreign
from hunch.runs.loading import load_agent
from hunch.runs.models import Asked
from hunch.runs.training import who


class Trained:
    """An agent for use without further training.

        trained = hunch.load("runs/lake")
        observation, info = env.reset(seed=0)
        action = trained.predict(observation, info)

    Attributes:
        agent: The agent itself.

    Args:
        agent: Any agent.
        env: An environment like those of the training, for :meth:`save`; some agents build their prompts
            from it.
        seed: Seed of the random choices.

    Raises:
        UsageError: if ``agent`` is not an agent, or was never trained and cannot act untrained, or if the
            seed is negative.
    """

    def __init__(
        self,
        agent: Agent,
        env: TextEnvironment | None = None,
        *,
        seed: int = 0,
        config: RunConfig | None = None,
    ) -> None:
        self.agent = require_agent(agent)
        check_value("seed", seed, NonNegativeInt)
        self._env = env
        self._config = config
        with begun(agent):
            self._player = agent.player(seed)

    def predict(self, observation: str, info: Mapping[str, Any]) -> str:
        """Choose an action, given what ``reset`` or ``step`` of a text environment returned.

        The choice is random if the agent chooses randomly in evaluations. Nothing is learnt or remembered.

        Raises:
            UsageError: if the observation is not text, ``info`` does not name the admissible actions, or the
                agent was never trained.
        """
        if not isinstance(info, Mapping):
            raise UsageError(f"info is the dict that reset and step of the environment return, not {info!r}.")
        state = State.read(observation, info)
        if not isinstance(observation, str):
            raise UsageError(f"An observation is a text, not {observation!r}.")
        if state.actions == ():
            raise UsageError("There is no admissible action to choose: the episode is over.")
        with begun(self.agent):
            return self._player.act([state])[0]

    def explain(self, observation: str, info: Mapping[str, Any]) -> Explanation:
        """Explain the choice; see :class:`hunch.core.Explanation`."""
        with begun(self.agent):
            return self.agent.explain(State.read(observation, info))

    def save(self, path: str | Path) -> None:
        """Write a folder that :func:`hunch.load`, ``hunch play --run`` and ``hunch evaluate`` can read.

        Raises:
            UsageError: if the folder holds a run or other files, or the agent was never trained.
            HunchError: if the folder cannot be written.
        """
        path = Path(path)
        refuse_foreign(path)
        if (path / "summary.json").exists() or (path / "episodes.jsonl").exists():
            raise UsageError(f"{path} holds a run with its own checkpoint: choose another folder.")
        config = self._config or self._describe()
        with begun(self.agent):
            identity = {**who(self.agent), "run": settings_identity(config.settings())}
            state = {"agent": self.agent.state_dict(), "identity": plain(identity)}
        folder = RunFolder(path, lines=False)
        try:
            write_json(path / "config.json", description(config, Asked(self.agent, {}, ())))
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


@contextmanager
def begun(agent: Agent) -> Iterator[None]:
    """Turn an error of an untrained agent in this block into a message that says so.

    Raises:
        UsageError: if the agent, or an agent within it, lacks an attribute because it was never trained.
    """
    try:
        yield
    except AttributeError as error:
        if not isinstance(error.obj, Agent):
            raise
        raise UsageError(
            f"{type(agent).__name__} has no {error.name!r} yet, which an agent gets when its training "
            "begins: train it first, as in hunch.train(agent, env)."
        ) from error


def require_agent(agent: Any) -> Agent:
    """Return the argument if it is an agent.

    Raises:
        UsageError: if it is not an agent; the message says what it is.
    """
    if isinstance(agent, type):
        raise UsageError(f"{agent.__name__} is a class: make an agent from it, or give a method's name.")
    if hasattr(agent, "verbs"):
        raise UsageError(
            f"{agent.name} is a language model, not an agent: give the name of a method that uses it, as in "
            f"hunch.train('dqn-prior', env, lm={agent.name!r})."
        )
    if isinstance(agent, str):
        raise UsageError(
            f"{agent!r} is a text, not an agent: train or load one first, as in hunch.load('runs/mine')."
        )
    if not isinstance(agent, Agent):
        raise UsageError(f"{agent!r} is not an agent: its class has to be a subclass of hunch.core.Agent.")
    return agent


def load(
    folder: str | Path,
    *,
    checkpoint: Literal["last", "best"] = "last",
    step: int | None = None,
    agent: Agent | None = None,
    env: TextEnvironment | None = None,
    seed: int = 0,
) -> Trained:
    """Load the agent of a run, or an agent that :meth:`Trained.save` wrote.

    Args:
        folder: The folder; it is not changed.
        checkpoint: ``"last"``, or ``"best"`` for the agent of the best evaluation.
        step: Step of a checkpoint that the run kept (``keep_every``); replaces ``checkpoint``.
        agent: An agent of the same class and settings, into which the checkpoint is loaded. Needed only if
            the run was made in Python with an agent that ``config.json`` cannot describe.
        env: An environment like those of the run. Needed only if such an agent builds its prompts from it.
        seed: Seed of the random choices.

    Returns:
        The trained agent.

    Raises:
        UsageError: if the folder holds no run, the step was not kept, or an agent is needed but missing or
            does not fit.
        HunchError: if the checkpoint is missing or damaged.
    """
    if checkpoint not in ("last", "best"):
        raise UsageError(f"checkpoint must be 'last' or 'best', not {checkpoint!r}.")
    if not isinstance(folder, (str, Path)):
        raise UsageError(f"A run is named by its folder, not {folder!r}.")
    if step is not None:
        check_value("step", step, PositiveInt)
    if agent is not None:
        require_agent(agent)
    agent, config = load_agent(folder, checkpoint=step or checkpoint, agent=agent, env=env)
    return Trained(agent, env, seed=seed, config=config)
