# sb3_household.py
import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import torch
from matplotlib.figure import Figure
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

import hunch
from hunch.rl.statistics import band_over_seeds, interquartile_mean
from hunch.roles.prior.gym import Proposals

BUDGET = {"steps": 4_000}
LM = "minilm"  # the prior, and the encoder everywhere
NETWORK = {"net_arch": [128, 128]}
OUT = Path("runs/sb3-household")


class Noted(gymnasium.Wrapper):
    """Notes the step at which each episode ended, and whether the task was solved."""

    def __init__(self, env):
        super().__init__(env)
        self.steps = 0
        self.course = []

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        if terminated or truncated:
            self.course.append((self.steps, info["success"]))
        return observation, reward, terminated, truncated, info

    def action_masks(self):
        return self.env.action_masks()


def household(seed):
    """Eight games that depend on the seed."""
    return hunch.make("hunch/Household-Pick-v0", games=8, pool_seed=seed)


def sb3_dqn(seed, prior):
    """DQN of Stable-Baselines3; the action is one of five that the prior proposes."""
    env = Noted(Proposals(household(seed), prior, k=5, encoder=LM))
    learner = DQN(
        "MlpPolicy",
        env,
        learning_rate=5e-4,
        learning_starts=200,
        buffer_size=10_000,  # the default, a million observations of 2,693 numbers, takes 20 GB
        target_update_interval=500,
        gamma=0.9,
        exploration_fraction=0.5,
        policy_kwargs=NETWORK,
        seed=seed,
    )
    learner.learn(BUDGET["steps"])
    return env.course


def sb3_ppo(seed, prior):
    """MaskablePPO of sb3-contrib, over the same proposals; copies among the five are masked."""
    env = Noted(Proposals(household(seed), prior, k=5, encoder=LM))
    options = {"n_steps": 256, "gamma": 0.9, "ent_coef": 0.01}
    learner = MaskablePPO("MlpPolicy", env, policy_kwargs=NETWORK, seed=seed, **options)
    learner.learn(BUDGET["steps"])
    return env.course


def ours(seed, method, **options):
    """A method of this library on the same games."""
    out = OUT / method / f"seed-{seed}"
    result = hunch.train(method, household(seed), seed=seed, out=out, encoder=LM, **options, **BUDGET)
    return list(zip(*result.course, strict=True))


ARMS = {
    "Stable-Baselines3": {
        "DQN, random proposals": lambda seed: sb3_dqn(seed, "uniform"),
        "DQN, proposals of the prior": lambda seed: sb3_dqn(seed, LM),
        "MaskablePPO, random proposals": lambda seed: sb3_ppo(seed, "uniform"),
        "MaskablePPO, proposals of the prior": lambda seed: sb3_ppo(seed, LM),
    },
    "Hunch": {
        "DQN, all actions": lambda seed: ours(seed, "dqn"),
        "DQN-Prior, proposals of the prior": lambda seed: ours(seed, "dqn-prior", lm=LM, k=5),
    },
}


def trained(library, name, seed):
    """Train an arm, or read what it came to: the same command goes on where it was stopped."""
    file = OUT / f"{library} {name} {seed}.json"
    if not file.exists():
        course = ARMS[library][name](seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = json.dumps([(int(step), bool(success)) for step, success in course])
        file.write_text(kept, encoding="utf-8")
        print(f"{library}, {name}, seed {seed}: {late_success(course):.2f}", flush=True)
    return json.loads(file.read_text(encoding="utf-8"))


def late_success(course):
    """Return the success rate of the episodes that ended in the last quarter of the steps."""
    return np.mean([success for step, success in course if step > 0.75 * BUDGET["steps"]] or [np.nan])


def smooth(course, grid):
    """Return the success of the last 50 episodes at each step of the grid; nan before the first."""
    ends = np.array([step for step, _ in course])
    successes = np.array([success for _, success in course], dtype=float)
    counts = np.searchsorted(ends, grid, side="right")
    return np.array([successes[max(0, n - 50) : n].mean() if n else np.nan for n in counts])


def draw(courses, path):
    """Draw a panel for each library: the interquartile mean over seeds, and their range or interval."""
    grid = np.linspace(BUDGET["steps"] / 20, BUDGET["steps"], 40)
    figure = Figure(figsize=(9, 4), layout="constrained", dpi=120)
    panels = figure.subplots(1, len(courses), sharey=True)
    for axes, (library, arms) in zip(panels, courses.items(), strict=True):
        for name, runs in arms.items():
            values = np.array([smooth(course, grid) for course in runs])  # (seeds, points)
            axes.plot(grid, interquartile_mean(values), label=name)
            if len(runs) > 1:
                axes.fill_between(grid, *band_over_seeds(values), alpha=0.15)
        axes.set(title=library, xlabel="environment steps", ylim=(-0.02, 1.02))
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    panels[0].set_ylabel("success, last 50 episodes")
    figure.savefig(path, metadata={"Software": None})


if __name__ == "__main__":
    torch.set_num_threads(1)  # small networks are fastest with one
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    courses = {library: {name: [] for name in arms} for library, arms in ARMS.items()}
    for seed in seeds:
        for library, arms in courses.items():
            for name, runs in arms.items():
                runs.append(trained(library, name, seed))
    for library, arms in courses.items():
        for name, runs in arms.items():
            late = [late_success(course) for course in runs]
            between = f"from {min(late):.2f} to {max(late):.2f}"
            print(f"{library}, {name}: {interquartile_mean(late):.2f}, {between}")
    draw(courses, "sb3_household.png")
