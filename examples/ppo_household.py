# ppo_household.py
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, kl_divergence

import hunch
from hunch.roles.prior.gym import PriorLogits, Proposals

BUDGET = {"steps": 6_000}  # over all environments
ENVS = 8
HORIZON = 64  # steps of each environment between two updates
GAMMA = 0.9
LAMBDA = 0.95
CLIP = 0.2
ENTROPY = 0.01
KL = 0.05  # weight of the KL divergence from the prior
LEARNING_RATE = 5e-4
OUT = Path("runs/ppo-household")


class OverProposals(nn.Module):
    """Logits of the k proposals, and the value of the state; the prior has chosen before."""

    def __init__(self, space, k):
        super().__init__()
        inputs = space.shape[0]
        self.actor = nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, k))
        self.critic = nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 1))

    def policy(self, observations, masks):
        """Return the distribution over the k numbers; those that repeat a proposal have probability 0."""
        return Categorical(logits=self.actor(observations["vector"]).masked_fill(~masks, -1e9))

    def value(self, observations):
        return self.critic(observations["vector"]).squeeze(-1)

    def penalty(self, policy, observations, masks):
        return torch.zeros(())


class OverAllActions(nn.Module):
    """Logits of all actions: those of the prior, and what is learnt on top of them."""

    def __init__(self, space, _):
        super().__init__()
        text, dim = space["text"].shape[0], space["actions"].shape[-1]
        self.query = nn.Sequential(nn.Linear(text, 128), nn.Tanh(), nn.Linear(128, 64))
        self.key = nn.Linear(dim, 64)
        self.critic = nn.Sequential(nn.Linear(text, 128), nn.Tanh(), nn.Linear(128, 1))

    def policy(self, observations, masks):
        query = self.query(observations["text"])  # (n, 64)
        keys = self.key(observations["actions"])  # (n, actions, 64)
        learnt = (keys @ query.unsqueeze(-1)).squeeze(-1) / 8  # (n, actions)
        return Categorical(logits=(observations["logits"] + learnt).masked_fill(~masks, -1e9))

    def value(self, observations):
        return self.critic(observations["text"]).squeeze(-1)

    def penalty(self, policy, observations, masks):
        """Return how far the policy has moved from the prior: KL(pi || p), the mean over states."""
        prior = Categorical(logits=observations["logits"].masked_fill(~masks, -1e9))
        return KL * kl_divergence(policy, prior).mean()


ARMS = {
    "five random proposals": (Proposals, OverProposals, "uniform", {"k": 5}),
    "five proposals of the prior": (Proposals, OverProposals, "minilm", {"k": 5}),
    "all actions, uniform prior": (PriorLogits, OverAllActions, "uniform", {"most": 64}),
    "all actions, the prior in the logits": (PriorLogits, OverAllActions, "minilm", {"most": 64}),
}


def tensors(observation):
    """Return what the environments show as tensors by name, each (ENVS, ...)."""
    parts = observation if isinstance(observation, dict) else {"vector": observation}
    return {name: torch.as_tensor(np.array(part)) for name, part in parts.items()}


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


def train(arm, seed):
    """Train PPO on vectorised games; return each episode's last step, and whether it was solved."""
    wrapper, network_class, prior, options = ARMS[arm]
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    makers = [lambda: hunch.make("hunch/Household-Pick-v0", games=8, max_steps=50, pool_seed=seed)] * ENVS
    envs = wrapper.vector(makers, prior, encoder="minilm", **options)  # one request for all eight states
    network = network_class(envs.single_observation_space, envs.single_action_space.n)
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)

    course = []
    steps = 0
    observation = tensors(envs.reset(seed=seed)[0])
    ended = torch.zeros(ENVS, dtype=torch.bool)  # the next step of these begins an episode
    while steps < BUDGET["steps"]:
        rows = {name: [] for name in ("mask", "action", "log_prob", "value", "reward")}
        rows |= {name: [] for name in ("terminated", "over", "real")}
        shown = {name: [] for name in observation}
        for _ in range(HORIZON):
            mask = torch.as_tensor(envs.action_masks())  # (ENVS, actions)
            with torch.no_grad():
                policy = network.policy(observation, mask)
                action = policy.sample()  # (ENVS,)
                value = network.value(observation)
            following, reward, terminated, truncated, info = envs.step(action.numpy())
            over = torch.as_tensor(terminated | truncated)
            steps += ENVS
            course += [(steps, bool(info["success"][i])) for i in over.nonzero().flatten().tolist()]
            for name, part in observation.items():
                shown[name].append(part)
            rows["mask"].append(mask)
            rows["action"].append(action)
            rows["log_prob"].append(policy.log_prob(action))
            rows["value"].append(value)
            rows["reward"].append(torch.as_tensor(reward, dtype=torch.float32))
            rows["terminated"].append(torch.as_tensor(terminated))
            rows["over"].append(over | ended)  # a step that begins an episode passes nothing back, either
            rows["real"].append(~ended)
            observation = tensors(following)
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
        flat_shown = {name: torch.stack(values).flatten(0, 1) for name, values in shown.items()}
        flat_advantages = advantages.flatten()
        flat_returns = returns.flatten()
        for _ in range(4):
            for picked in np.array_split(rng.permutation(real), 4):
                seen = {name: values[picked] for name, values in flat_shown.items()}
                policy = network.policy(seen, flat["mask"][picked])
                ratio = (policy.log_prob(flat["action"][picked]) - flat["log_prob"][picked]).exp()
                advantage = flat_advantages[picked]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
                value_loss = 0.5 * (network.value(seen) - flat_returns[picked]).square().mean()
                loss = -surrogate.mean() + value_loss - ENTROPY * policy.entropy().mean()
                loss = loss + network.penalty(policy, seen, flat["mask"][picked])
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimiser.step()
    return course


def trained(arm, seed):
    """Train an arm, or read what it came to: the same command goes on where it was stopped."""
    file = OUT / f"{arm} {seed}.json"
    if not file.exists():
        course = train(arm, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(course), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def success(course, first, last):
    """Return the success rate of the episodes that ended between two shares of the steps."""
    low, high = first * BUDGET["steps"], last * BUDGET["steps"]
    return np.mean([solved for step, solved in course if low < step <= high] or [np.nan])


if __name__ == "__main__":
    torch.set_num_threads(1)  # small networks are fastest with one
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    for arm in ARMS:
        courses = [trained(arm, seed) for seed in seeds]
        for quarter, first, last in (("first", 0, 0.25), ("last", 0.75, 1)):
            rates = ", ".join(f"{success(course, first, last):.2f}" for course in courses)
            print(f"PPO, {arm}: success {rates} in the {quarter} quarter of the steps", flush=True)
