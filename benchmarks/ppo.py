"""Our PPO beside a published one, that of Stable-Baselines3, in the same environments with the same settings.

    python benchmarks/ppo.py CartPole numbers          # CleanRL's networks on the environment's own numbers
    python benchmarks/ppo.py CartPole phrases          # the text, by the encoder of this name
    python benchmarks/ppo.py FrozenLake minilm 20000 5 # steps and seeds
    python benchmarks/ppo.py CartPole numbers 100000 5 ours     # one side alone; sb3 is the other

The settings are CleanRL's for CartPole: 4 streams, 128 steps of each, Adam at 2.5e-4 falling to 0, 4 epochs
of 4 batches, gamma 0.99, lambda 0.95, clip 0.2 (values, too), entropy 0.01, value 0.5, gradient norm 0.5. On
texts both sides read the same frozen embedding of the observation, standardised by a running mean and
deviation (VecNormalize on theirs). Figures: mean return and success of the episodes that end in the last
tenth of the steps, for each seed. The other side needs 'pip install stable-baselines3'.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

import hunch
from hunch import lm
from hunch.core import State
from hunch.methods.policy.ppo import PPO, PolicyAgent
from hunch.rl.listed import ListedPolicy
from hunch.rl.settings import UpdateConfig
from hunch.roles import TextTable
from told import told

STREAMS = 4
Ended = list[tuple[int, float, bool]]
"""Step of the run, return and success of each episode."""


def main() -> None:
    torch.set_num_threads(1)
    name, features, *rest = sys.argv[1:]
    steps, seeds = (int(given) for given in (rest + ["100000", "3"][len(rest) :])[:2])
    sides = {"ours": ours, "sb3": theirs}
    for side in rest[2:] or sides:
        found = []
        for seed in range(seeds):
            start = time.process_time()
            ended = sides[side](name, features, steps, seed)
            last = [(own, success) for step, own, success in ended if step > 0.9 * steps]
            found.append(np.mean(last, axis=0))
            gained, won = found[-1]
            told = f"return {gained:.2f}, success {won:.2f}, {time.process_time() - start:.0f} s"
            print(f"{name}, {features}, {side}, seed {seed}: {told}", flush=True)
        mean = np.mean(found, axis=0)
        print(f"{name}, {features}, {side}, {seeds} seeds: return {mean[0]:.2f}, success {mean[1]:.2f}")


def ours(name: str, features: str, steps: int, seed: int) -> Ended:
    agent: PolicyAgent = (
        OnNumbers() if features == "numbers" else OnTexts(TextTable(lm.load(features, cache=None)))
    )
    envs = [hunch.make(f"hunch/{name}-v0") for _ in range(STREAMS)]
    result = hunch.train(agent, envs, steps=steps, seed=seed)
    return [(e.step, e.episode_return, e.success) for e in result.episodes]


class OnTexts(PPO):
    """PPO with CleanRL's learning rate, which falls to 0."""

    def objective(self) -> UpdateConfig:
        """The objective of PPO, annealed."""
        return replace(super().objective(), anneal=True)


class OnNumbers(PolicyAgent):
    """PPO on the numbers of an environment, with CleanRL's networks and learning rate."""

    def objective(self) -> UpdateConfig:
        """The objective of PPO, annealed."""
        return replace(super().objective(), anneal=True)

    def make_policy(self, seed: int) -> Numbers:
        """Perceptrons on the numbers."""
        return Numbers(seed)


class Numbers(ListedPolicy):
    """Two perceptrons, whose first layers are as wide as the first state that they see."""

    def __init__(self, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor, self.critic = perceptron(2, 0.01), perceptron(1, 1.0)

    def logprobs(self, states: list[State]) -> torch.Tensor:
        """Log-probabilities of the actions."""
        return self.actor(self.read(states)).log_softmax(1)

    def state_values(self, states: list[State]) -> torch.Tensor:
        """Values."""
        return self.critic(self.read(states))[:, 0]

    def read(self, states: list[State]) -> torch.Tensor:
        """The numbers of some states."""
        return torch.tensor([state.raw for state in states], dtype=torch.float32)

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """The weights."""
        return {"policy": list(self.actor.parameters()), "value": list(self.critic.parameters())}

    def state_dict(self) -> dict[str, Any]:
        """The weights."""
        return {"actor": self.actor.state_dict(), "critic": self.critic.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the weights."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])


def perceptron(out: int, scale: float) -> nn.Sequential:
    layers = [nn.Linear(4, 64), nn.Linear(64, 64), nn.Linear(64, out)]
    for layer, gain in zip(layers, (2**0.5, 2**0.5, scale), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def theirs(name: str, features: str, steps: int, seed: int) -> Ended:
    import stable_baselines3 as sb3
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    ended: Ended = []
    model = None if features == "numbers" else lm.load(features, cache=None)
    vec = DummyVecEnv([lambda: Vectors(name, model, ended) for _ in range(STREAMS)])
    agent = sb3.PPO(
        "MlpPolicy",
        vec if model is None else VecNormalize(vec, norm_reward=False),
        n_steps=128,
        batch_size=128,
        n_epochs=4,
        learning_rate=lambda left: 2.5e-4 * left,
        clip_range=0.2,
        clip_range_vf=0.2,
        ent_coef=0.01,
        seed=seed,
        device="cpu",
        policy_kwargs={"optimizer_kwargs": {"eps": 1e-5}},
    )
    agent.learn(steps)
    return [(STREAMS * step, own, won) for step, own, won in ended]


class Vectors(gymnasium.Env[Any, int]):
    """A text environment of which the observation is an embedding, or its own numbers."""

    def __init__(self, name: str, model: Any, ended: Ended) -> None:
        self.env, self.model, self.ended, self.steps = hunch.make(f"hunch/{name}-v0"), model, ended, 0
        text, info = self.env.reset(seed=0)
        shape = self.read(text, info).shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape)
        self.action_space = gymnasium.spaces.Discrete(len(info["actions"]))

    def read(self, text: str, info: dict[str, Any]) -> np.ndarray:
        """What is observed."""
        return np.array(info["raw"], np.float32) if self.model is None else self.model.embed([text])[0]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        text, info = self.env.reset(seed=seed)
        self.total = 0.0
        return self.read(text, info), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        text, reward, terminated, truncated, info = self.env.step(int(action))
        self.steps, self.total = self.steps + 1, self.total + reward
        if terminated or truncated:
            self.ended.append((self.steps, self.total, info["success"]))
        return self.read(text, info), reward, terminated, truncated, {}


if __name__ == "__main__":
    told(__doc__)
    main()
