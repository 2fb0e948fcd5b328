# ppo_household.py
import sys

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import hunch
from hunch.roles.prior.gym import Proposals

BUDGET = {"steps": 12_000}  # over all environments
ENVS = 8
HORIZON = 64  # steps of each environment between two updates
GAMMA = 0.9
LAMBDA = 0.95
CLIP = 0.2
ENTROPY = 0.01
LEARNING_RATE = 5e-4


class ActorCritic(nn.Module):
    """Logits of the k proposals, and the value of the state."""

    def __init__(self, inputs, k):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, k))
        self.critic = nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 1))

    def policy(self, observations, masks):
        """Return the distribution over the k numbers; those that repeat a proposal have probability 0."""
        return Categorical(logits=self.actor(observations).masked_fill(~masks, -1e9))

    def value(self, observations):
        return self.critic(observations).squeeze(-1)


def advantages_of(rewards, values, last_value, terminated, over):
    """Return generalised advantages, shape (HORIZON, ENVS); an episode that ended passes nothing back."""
    advantages = torch.zeros_like(rewards)
    advantage = torch.zeros_like(last_value)
    next_value = last_value
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + GAMMA * next_value * ~terminated[t] - values[t]
        advantage = delta + GAMMA * LAMBDA * advantage * ~over[t]
        advantages[t] = advantage
        next_value = values[t]
    return advantages


def train(prior, seed):
    """Train PPO on vectorised games; return each episode's last step, and whether it was solved."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    makers = [lambda: hunch.make("hunch/Household-Pick-v0", games=8, max_steps=50, pool_seed=seed)] * ENVS
    envs = Proposals.vector(makers, prior, k=5, encoder="minilm")  # one request for all eight states
    network = ActorCritic(envs.single_observation_space.shape[0], envs.single_action_space.n)
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)

    course = []
    steps = 0
    observation = torch.as_tensor(envs.reset(seed=seed)[0])  # (ENVS, inputs)
    ended = torch.zeros(ENVS, dtype=torch.bool)  # the next step of these begins an episode
    while steps < BUDGET["steps"]:
        rows = {name: [] for name in ("obs", "mask", "action", "log_prob", "value", "reward")}
        rows |= {name: [] for name in ("terminated", "over", "real")}
        for _ in range(HORIZON):
            mask = torch.as_tensor(envs.action_masks())  # (ENVS, k)
            with torch.no_grad():
                policy = network.policy(observation, mask)
                action = policy.sample()  # (ENVS,)
                value = network.value(observation)
            following, reward, terminated, truncated, info = envs.step(action.numpy())
            over = torch.as_tensor(terminated | truncated)
            steps += ENVS
            course += [(steps, bool(info["success"][i])) for i in over.nonzero().flatten().tolist()]
            rows["obs"].append(observation)
            rows["mask"].append(mask)
            rows["action"].append(action)
            rows["log_prob"].append(policy.log_prob(action))
            rows["value"].append(value)
            rows["reward"].append(torch.as_tensor(reward, dtype=torch.float32))
            rows["terminated"].append(torch.as_tensor(terminated))
            rows["over"].append(over | ended)  # a step that begins an episode passes nothing back, either
            rows["real"].append(~ended)
            observation = torch.as_tensor(following)
            ended = over
        batch = {name: torch.stack(values) for name, values in rows.items()}  # each (HORIZON, ENVS, ...)
        with torch.no_grad():
            last_value = network.value(observation)
        advantages = advantages_of(
            batch["reward"], batch["value"], last_value, batch["terminated"], batch["over"]
        )
        returns = advantages + batch["value"]

        real = batch["real"].flatten().nonzero().flatten().numpy()
        flat = {name: values.flatten(0, 1) for name, values in batch.items()}
        flat_advantages = advantages.flatten()
        flat_returns = returns.flatten()
        for _ in range(4):
            for picked in np.array_split(rng.permutation(real), 4):
                policy = network.policy(flat["obs"][picked], flat["mask"][picked])
                ratio = (policy.log_prob(flat["action"][picked]) - flat["log_prob"][picked]).exp()
                advantage = flat_advantages[picked]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
                value_loss = 0.5 * (network.value(flat["obs"][picked]) - flat_returns[picked]).square().mean()
                loss = -surrogate.mean() + value_loss - ENTROPY * policy.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimiser.step()
    return course


if __name__ == "__main__":
    torch.set_num_threads(1)  # small networks are fastest with one
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    for prior in ("uniform", "minilm"):
        courses = [train(prior, seed) for seed in seeds]
        late = [[good for step, good in course if step > 0.75 * BUDGET["steps"]] for course in courses]
        rates = [sum(goods) / max(len(goods), 1) for goods in late]
        listed = ", ".join(f"{rate:.2f}" for rate in rates)
        print(f"PPO, proposals of {prior}: success {listed} in the last quarter of the steps", flush=True)
