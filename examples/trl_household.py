# trl_household.py
import sys

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from hunch.ext.trl import admissible, episodes, returns, rollout

MODEL = sys.argv[1] if len(sys.argv) > 1 else "HuggingFaceTB/SmolLM2-135M-Instruct"

trainer = GRPOTrainer(
    MODEL,
    # Little is solved at first, and equal returns teach nothing: an admissible action counts, too.
    reward_funcs=[returns, admissible],
    args=GRPOConfig(
        "runs/trl-household",
        max_steps=10,
        use_cpu=not torch.cuda.is_available(),
        num_generations=4,  # episodes of one seed, which are compared
        per_device_train_batch_size=4,
        max_completion_length=512,  # an episode with the texts of the environment
        learning_rate=2e-5,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
    ),
    train_dataset=Dataset.from_list(episodes(1000)),
    rollout_func=rollout("hunch/Household-Pick-v0", turn_tokens=12, listed=True, games=8, max_steps=3),
)
trainer.train()

logged = [line for line in trainer.state.log_history if "reward" in line]
for line in logged:
    figures = {name: line[f"rewards/{name}/mean"] for name in ("returns", "admissible")}
    print(f"step {line['step']}: ", ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))
trainer.save_model("runs/trl-household/model")
