# two_models.py
from statistics import mean

import hunch

MODELS = ("minilm", "bag-of-words")
SEEDS = 3


def success(lm, seed):
    """Train with a model on the seed's own games; return the success rate at the end."""
    env = hunch.make("hunch/Household-Pick-v0", games=2, pool_seed=seed)
    out = f"runs/two-models/{lm}/seed-{seed}"
    return hunch.train("dqn-prior", env, lm=lm, k=5, steps=3_000, seed=seed, out=out).success.value


if __name__ == "__main__":
    rates = {lm: [success(lm, seed) for seed in range(SEEDS)] for lm in MODELS}
    for lm, values in rates.items():
        print(f"{lm:12} {mean(values):.2f}, from {min(values):.2f} to {max(values):.2f}")
    leads = [a - b for a, b in zip(*rates.values(), strict=True)]
    print(f"{MODELS[0]} leads by {mean(leads):.2f}, from {min(leads):.2f} to {max(leads):.2f}")
