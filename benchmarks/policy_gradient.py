"""How much of a policy gradient is signal: the cosine between the gradients of two independent batches.

GLAM plays a BabyAI level in 32 streams. The steps of the first and of the last 16 streams are two batches of
1,280 steps (the paper's size). Printed: success; the cosine of their policy gradients, as PPO's first step
would take; the cosine of their gradients where each action is replaced by the one that the oracle, which
sees the whole room, would take, with an advantage of 1.

    python benchmarks/policy_gradient.py hunch/BabyAI-GoToRedBall-v0 weights
    python benchmarks/policy_gradient.py hunch/BabyAI-GoToRedBallNoDists-v0 random
"""

import sys

import torch
from torch import Tensor

import hunch
from hunch.core import State, World
from hunch.methods.policy.glam import GLAM
from hunch.rl.rollout import Rollout
from told import told

STREAMS, STEPS = 32, 80


def gradient(agent: GLAM, states: list[State], actions: Tensor, advantages: Tensor) -> Tensor:
    """Return the gradient of the policy's loss, shape (weights,)."""
    weights = agent.policy.parameters()["policy"]
    total = [torch.zeros_like(weight) for weight in weights]
    for start in range(0, len(states), 64):
        rows = slice(start, start + 64)
        logprobs = agent.policy.logprobs(states[rows])
        loss = -(logprobs.gather(1, actions[rows, None])[:, 0] * advantages[rows]).sum() / len(states)
        total = [old + new for old, new in zip(total, torch.autograd.grad(loss, weights), strict=True)]
    return torch.cat([part.flatten() for part in total])


def main(env: str, start: str) -> None:
    """Play, and compare."""
    torch.set_num_threads(1)
    agent = GLAM(normalise="token", temperature=0.5, start=start)
    agent.begin(World(env=env, streams=STREAMS, steps=STREAMS * STEPS), 0)
    envs = [hunch.make(env, history=0) for _ in range(STREAMS)]
    rollout = Rollout(envs, seed=0)
    streams, right = [[] for _ in envs], [[] for _ in envs]
    for _ in range(STEPS):
        wanted = [(own.unwrapped.oracle() or ["drop"])[0] for own in envs]
        for number, t in enumerate(rollout.step(agent.act(rollout.states))):
            streams[number].append(t)
            right[number].append(t.state.options.index(wanted[number]))
    done = [t for own in streams for t in own if t.done]
    print(f"{env} {start}: success {sum(t.success for t in done) / len(done):.2f} of {len(done)} episodes")
    sides = [slice(0, STREAMS // 2), slice(STREAMS // 2, None)]
    found = []
    for side in sides:
        batch = agent.learner.collect(streams[side])
        gained = (batch.advantages - batch.advantages.mean()) / batch.advantages.std()
        labels = torch.tensor([label for own in right[side] for label in own])
        acted = gradient(agent, batch.states, batch.actions, gained)
        found.append((acted, gradient(agent, batch.states, labels, torch.ones(len(labels)))))
    for name, one, other in zip(("PPO", "oracle"), *found, strict=True):
        cosine = one @ other / (one.norm() * other.norm())
        print(f"cosine between two batches of {STREAMS * STEPS // 2} steps, {name}: {cosine:.3f}")


if __name__ == "__main__":
    told(__doc__)
    main(*sys.argv[1:])
