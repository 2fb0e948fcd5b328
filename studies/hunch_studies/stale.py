"""Which rows of ``docs/systems.md`` are stale: a short run of their method no longer does what it did.

A row's figures come from hours of runs, so they are not repeated with every change. Instead a short run with
a stored seed stands for each row. What it did is stored as a digest: the actions and rewards of all steps,
and the programs that were written. The runs use small networks and models without weights, so they take
seconds.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from hunch import methods
from hunch.cli.environment import split_environment
from hunch.cli.options import options_of, parse, run_config
from hunch.core import Transition, UsageError
from hunch.runs.callbacks import Callback, Watch
from hunch.runs.config import RunConfig, Setting
from hunch.runs.execute import execute
from hunch.runs.training import Training
from hunch.suggest import suggest

DIGESTS: Final = Path(__file__).with_name("stale.json")
SEED: Final = 0
STEPS: Final = 200
_Q: Final = "--hidden 16 --warmup 20 --batch-size 8 --encoder bag-of-words"
_HOUSE: Final = "--env hunch/Household-Pick-v0 --env.games 2 --env.max_steps 20"
_CRAFT: Final = "--env hunch/Craft-v0 --env.target any --env.difficulty hard --env.most 9"
_DESIGN: Final = "--env hunch/RewardDesign-v0 --env.world docking --lm scripted:writer?repair=0.4 --steps 4"
_SALAD: Final = "--env hunch/Overcooked-Salad-v0 --lm scripted:kitchen?error=0.3"
SHORT: Final[dict[str, str]] = {
    "DQN-Prior": f"dqn-prior {_HOUSE} --lm words {_Q}",
    "InstructRL": "instruct-q --env hunch/SaySelect-v0 --weight 0 0.25 --prior.way likelihood "
    "--instruction 'select the same number as your partner' --lm scripted:partner?error=0.1",
    "Likelihood times value": f"likelihood-value {_SALAD} --prior.way likelihood",
    "ICPI": "icpi --env hunch/Maze-v0 --lm scripted:icpi?error=0.1",
    "FunSearch": "funsearch --env hunch/Heuristic-CapSet-v0 --env.n 3 --envs 4 --lm scripted:mutator",
    "Eureka": f"eureka {_DESIGN} --envs 2 --population 2",
    "Text2Reward": f"text2reward {_DESIGN}",
    "Song et al.": f"song {_DESIGN}",
    "Code policies": "code-policy --env hunch/PolicyCode-v0 --env.base Acrobot-v1 --envs 4 "
    "--lm scripted:mutator --steps 12",
    "GIF-MCTS": "gif-mcts --env hunch/WorldModelCode-v0 --env.base hunch/Taxi-v0 "
    "--lm scripted:modeller?repair=0.3 --steps 10",
    "Games as code": "gif-mcts --env hunch/GameCode-v0 --env.game kuhn --search thompson "
    "--lm scripted:modeller?repair=0.3 --steps 10",
    "WorldCoder": "worldcoder --env hunch/Sokoban-v0 --lm scripted:modeller?repair=0.5",
    "Kwon et al.": "kwon --env hunch/Ultimatum-v0 --lm scripted:judge?error=0.1",
    "Motif": "motif --env hunch/DoorKey-v0 --lm scripted:captions?error=0.1",
    "TaskExplore": "task-explore --env hunch/HomeGrid-v0 --encoder bag-of-words",
    "RND, a control": "rnd --env hunch/DoorKey-v0",
    "ELLM": "ellm --env hunch/Craft-v0 --lm scripted:suggest?error=0.3",
    "SayCan": "saycan --env hunch/Kitchen-v0 --lm scripted:errands",
    "Inner Monologue": "inner-monologue --env hunch/Kitchen-v0 --env.disturbance 0.3 --lm scripted:errands",
    "Planner, Actor, Reporter": "planner-actor-reporter --env hunch/SecretProperty-v0 --lm scripted:examiner",
    "SPRING": f"spring {_CRAFT} --lm scripted:player?error=0.1",
    "Plan4MC": f"plan4mc {_CRAFT} --env.failure 0.3 --lm scripted:recipes",
}
"""The run that stands for a row, as arguments of ``hunch run``; fewer steps where each tries a program."""
_RECORDED: Final = "it has no run: recorded answers are judged"
_TRAINED: Final = (
    "200 steps of a language model in training take minutes, and their last digits depend on torch"
)
_ABLATION: Final = "it is a setting of a method that has a short run of its own, or its control"
_READER: Final = "the model that is prompted is trained first, which takes minutes"
APART: Final[dict[str, str]] = {
    "RLPrompt": _READER,
    "TEMPERA": _READER,
    "Prompt-OIRL": _READER,
    "DQN-Prior with a small model that writes": "the model's last digits depend on the processor",
    "DQN-Prior with GPT-4's recorded proposals": _RECORDED,
    "DQN-Prior in kitchens, with small models that write": _RECORDED,
    "Code policies, written by a small real model": _RECORDED,
    "Code policies by a small real model, beside the blank prompt": _RECORDED,
    "GIF-MCTS, written by a small real model": _RECORDED,
    "Calibration as a reward": "the model's last digits depend on the processor",
    "Best of n with a small real model": "the model's last digits depend on the processor",
    "Prompt-OIRL for a real model": _RECORDED,
    "RLPrompt for a real model": "the model's last digits depend on the processor",
    "RLHF with a small real model": "the model's last digits depend on the processor",
    "GRPO on a small real model": "the model's last digits depend on the accelerator",
    "ReST with a small real model": "the model's last digits depend on the processor",
    "DPO with a small real model": "the model's last digits depend on the accelerator",
    "Eureka's curriculum for the policy": _ABLATION,
    "Rewards by a small model that writes": _RECORDED,
    "Generalised planning with a small model that writes": _RECORDED,
    "FunSearch with a small model that writes": _RECORDED,
    "Inner Monologue, asking a person": _ABLATION,
    "ELLM with a small real model": _RECORDED,
    "Inner Monologue with a small model that writes": _RECORDED,
    "ICPI with a small model that writes": "the model's last digits depend on the processor",
    "InstructRL with a small model that writes": _RECORDED,
    "Motif with small models that write": _RECORDED,
    "DQN-Prior, number of proposals k": _ABLATION,
    "DQN-Prior, temperature alpha": _ABLATION,
    "DQN-Prior, cached answers": _ABLATION,
    "DQN-Prior, a trained Q with other models": _ABLATION,
    "Zero-shot prior": _ABLATION,
    "Behaviour cloning": "it learns from a recording of its own, which takes minutes to make",
    "Text encoder of Q": _ABLATION,
    "ICPI without arg max, tabular Q, Matching Model": _ABLATION,
    "GFlan-Prior among proposals": _TRAINED,
    "GFlan-Prior with a small model that writes": _TRAINED,
    "Facts from pictures": "the model's last digits depend on the processor",
    "Best of n": "the model that writes is trained first, which takes minutes",
    "CQL-Prior": "it learns from a recording of its own, which takes minutes to make",
    "CQL-Prior with a small model that writes": "it learns from a recording, which takes minutes to make",
    "VLM-RM": "the model's last digits depend on the processor",
    "RL-VLM-F": "the last digits of its networks depend on torch",
    "GLAM": _TRAINED,
    "TWOSOME": _TRAINED,
    "GFlan-Prior": _TRAINED,
    "GRPO, as an agent": _TRAINED,
    "Red teaming": _TRAINED,
    "SYNDICOM": _TRAINED,
    "Generalised planning": _RECORDED,
    "Text world models": "it has no run: predictions are measured",
    "Models as world models": _RECORDED,
    "Models as judges of plans": _RECORDED,
    "RLAdapter": _TRAINED,
    "AlphaProof, guided by a small real model": _RECORDED,
    "WorldCoder, written by a small real model": _RECORDED,
    "Games as code, written by a small real model": _RECORDED,
    "Planner, Actor, Reporter with a small model that writes": _RECORDED,
    "Likelihood times value with a small real model": _RECORDED,
    "RAIN with a small real model": _RECORDED,
    "Red teaming by a small real model": _RECORDED,
    "Plan4MC with a skill graph that a small model writes": _RECORDED,
    "Text world models with a small real model": _RECORDED,
    "SPRING with a small real model, in single steps": _RECORDED,
    "AlphaProof": "one round of training takes longer, and its last digits depend on torch",
    "InstructGPT": _TRAINED,
    "Offline RLHF": _TRAINED,
    "RL4LMs": _TRAINED,
    "ReST": _TRAINED,
    "LIMA": _TRAINED,
    "Sentence compression": _TRAINED,
    "Constitutional AI": _TRAINED,
    "RAIN": "the model that writes is trained first, which takes minutes",
    "Decision Transformer, pretrained": _TRAINED,
    "Algorithm Distillation": "it learns from recorded lives, which take minutes to make",
    "Decision-Pretrained Transformer": "it learns from recorded lives, which take minutes to make",
    "SayCan with chain of thought": _ABLATION,
    "SayCan with a small model that writes": _ABLATION,
    "Plans of models": _RECORDED,
    "ADaPT's recorded decompositions": _RECORDED,
}
"""Rows without such a run, each with the reason."""


def config(row: str) -> RunConfig:
    """Return the settings of the run that stands for a row."""
    name, *arguments = shlex.split(SHORT[row])
    method = methods.find(name)
    rest, env_options = split_environment(["--steps", str(STEPS), *arguments])
    parts = {"where_": Setting, "method_": options_of(method, rest)}
    parsed = parse(f"run {name}", "", parts, rest)
    return run_config(name, parsed.where_, env_options, parsed.method_, seed=SEED)


class Played(Callback):
    """Notes what was done and earned in each step."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, str, float]] = []

    def on_step(self, run: Training, transitions: Sequence[Transition]) -> None:
        """Note the transitions of a pass of the loop."""
        self.steps += [(t.stream, t.action, t.reward) for t in transitions]


def digest(settings: RunConfig) -> str:
    """Execute a run and return a digest of what it did; nothing is kept."""
    played = Played()
    with warnings.catch_warnings(action="ignore"):
        agent = execute(settings, watch=Watch(callbacks=[played])).agent
    records = agent.records() if agent else []
    return hashlib.sha256(json.dumps([played.steps, records], default=repr).encode()).hexdigest()[:16]


def stored() -> dict[str, str]:
    """Return the stored digests by row: one, or one for each kind of processor, with spaces between them."""
    digests: dict[str, str] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return digests


def store(rows: Iterable[str]) -> None:
    """Store the digests of rows, whose studies were run with the code as it is now."""
    known = stored() | {row: digest(config(row)) for row in rows}
    short = {row: known[row] for row in SHORT if row in known}
    DIGESTS.write_text(json.dumps(short, indent=2) + "\n", encoding="utf-8")


def stale(rows: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield rows, each with whether its run differs from the stored one."""
    known = stored()
    for row in rows:
        yield row, digest(config(row)) not in known.get(row, "").split()


def named(rows: Iterable[str]) -> list[str]:
    """Return rows by name; all of :data:`SHORT` if none is named.

    Raises:
        UsageError: if there is no such row, or it has no run.
    """
    for row in (wanted := list(rows)):
        if row in APART:
            raise UsageError(f"The row {row!r} has no short run: {APART[row]}.")
        if row not in SHORT:
            raise UsageError(f"There is no row {row!r}; {suggest(row, {one: one for one in SHORT})}")
    return wanted or list(SHORT)
