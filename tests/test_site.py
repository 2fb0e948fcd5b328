"""The site as a reader meets it: built, with its search asked by the site's own script and index.

Skipped where zensical or node is missing: ``make docs`` installs the first. Building takes about a minute.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ZENSICAL = Path(sys.executable).with_name("zensical")
NODE = shutil.which("node")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FIRST_HITS = {
    # the issue's own words
    "custom environment": "guides/your_environment.html",
    "save model": "guides/save_and_share.html",
    "lora": "guides/model_sizes.html#lora-when-and-how",
    "slurm": "guides/scaling.html#slurm",
    "stable-baselines": ("guides/other_trainers.html", "notebooks/sb3_proposals.html"),
    # words of users, tried on 27 November 2026
    "which method": "guides/choosing.html",
    "fallback": "guides/my_model_in_my_game.html",
    "gymnasium": "environments/gymnasium.html",
    "ollama": "guides/your_model.html#a-server",
    "gguf": "guides/your_model.html#a-gguf-file",
    "hugging face": "guides/your_model.html",
    "openai": "guides/your_model.html#a-server",
    "api key": "guides/served_models.html#api-key",
    "rate limit": "guides/served_models.html#api-key",
    "vllm": "guides/served_models.html",
    "budget": "costs.html#budgets",
    "cost": "costs.html",
    "dry run": "costs.html#a-dry-run",
    "resume": "guides/python.html#resume",
    "reward shaping": "guides/worked_examples.html",
    "custom reward": "guides/worked_examples.html",
    "custom method": "guides/your_method.html",
    "checkpoint": "guides/runs.html",
    "config": "guides/runs.html",
    "yaml": "guides/runs.html",
    "wandb": "guides/runs.html#boards-logging-to-tensorboard-wandb-mlflow",
    "plot": "guides/report.html",
    "confidence interval": "guides/report.html",
    "gpu": "guides/",
    "install": "getting_started.html#install",
    "compare": "getting_started.html#compare",
    "hyperparameters": "guides/tuning.html",
    "share": "guides/save_and_share.html",
    "export": "guides/save_and_share.html",
    "evaluate": "guides/my_model_in_my_game.html",
    "docker": "guides/scaling.html",
    "mcp": "guides/your_environment.html#mcp-tools-as-actions-tool-use-function-calling",
    "ray": "guides/scaling.html",
    # forty more, typed on 27 November 2026 after the others
    "tutorial": "getting_started.html",
    "quickstart": "getting_started.html",
    "faq": "footguns.html",
    "troubleshooting": "footguns.html",
    "fine-tune": "training.html",
    "fine tuning": "training.html",
    "out of memory": "training.html#large-models",
    "lora adapter": "guides/model_sizes.html#lora-when-and-how",
    "export gguf": "guides/save_and_share.html",
    "push to hub": "guides/save_and_share.html",
    "upload": "guides/save_and_share.html",
    "lm studio": "guides/your_model.html#a-server",
    "openrouter": "guides/your_model.html#a-server",
    "claude": "servers.html",
    "anthropic": "servers.html",
    "multi gpu": "guides/served_models.html#start-vllm",
    "timeout": "guides/served_models.html#api-key",
    "custom prompt": "guides/prompts.html",
    "environment variable": "guides/runs.html#environment-variables",
    "tensorboard": "guides/runs.html#boards",
    "mlflow": "guides/runs.html#boards",
    "logging": "guides/runs.html#boards",
    "windows": "guides/runs.html#systems-without-fork",
    "offline data": "guides/offline_data.html",
    "dataset": "guides/offline_data.html",
    "reward function": "guides/worked_examples.html",
    "inference": "guides/python.html#train-load-predict",
    "load": "guides/python.html#train-load-predict",
    "early stopping": "guides/python.html#callbacks",
    "reproducibility": "concepts.html#determinism",
    "curiosity": "methods/q_learning.html",
    "imitation learning": "methods/cql_prior.html#related-methods",
    "behavior cloning": "methods/cql_prior.html#related-methods",
    "ppo": "methods/ppo.html",
    "llm as a judge": "methods/kwon.html",
    "image observations": "guides/pictures.html",
    "vision": "guides/pictures.html",
    "jupyter": "notebooks/first_run.html",
    "function calling": "guides/your_environment.html#mcp",
    "tool use": "guides/your_environment.html#mcp",
    "text environment": "guides/your_environment.html",
    "wrapper": "guides/your_environment.html",
    "export results": "guides/report.html",
    "csv": "guides/report.html",
    "unusable answers": "guides/my_model_in_my_game.html",
    "pricing": "costs.html",
    "cache": ("costs.html#the-cache", "models.html#the-cache"),
    "hyperparameter search": "guides/tuning.html",
    "sb3": ("guides/other_trainers.html", "notebooks/sb3_proposals.html"),
    # and again, typed in the evening of that day: what still missed its page, and words not tried before
    "world model": "guides/world_models.html",
    "judge": "methods/kwon.html",
    "prompt": "guides/prompts.html",
    "prompt template": ("guides/prompts.html", "models.html#prompts"),
    "cli": "getting_started.html#cli",
    "kubernetes": "guides/scaling.html#kubernetes",
    "k8s": "guides/scaling.html#kubernetes",
    "atari": "environments/gymnasium.html#atari",
    "mujoco": "environments/gymnasium.html#atari",
    "continuous actions": ("environments/gymnasium.html#atari", "guides/choosing.html"),
    "offline rl": "guides/offline_data.html",
    "rlhf": "methods/rlhf.html",
    "dpo": "methods/offline_rlhf.html",
    "sft": "methods/sft.html",
    "grpo": "methods/grpo.html",
    "mcts": "methods/gif_mcts.html",
    "seed": ("getting_started.html#seeds", "concepts.html#determinism"),
    "determinism": "concepts.html#determinism",
    "custom model": "guides/your_model.html#a-class-of-your-own",
    "colab": "getting_started.html#in-colab",
    "python version": "getting_started.html#python-versions",
    "minigrid": "environments/minigrid.html",
    "crafter": "environments/crafter.html",
    "memory": ("training.html#large-models", "guides/worked_examples.html#an-agent-with-memory"),
    "multiprocessing": "guides/your_environment.html#many-at-once",
    "parallel": "guides/scaling.html#one-machine",
    "security": "sandbox.html",
    "sandbox": "sandbox.html",
    "structured output": "guides/served_models.html#structured-output",
    "sparse reward": "guides/choosing.html",
    "quantization": "guides/packaged_models.html",
    "multi agent": "guides/worked_examples.html#two-players",
    "tool calling": "guides/your_environment.html#mcp",
    "trl": "guides/other_trainers.html#trl",
    "openenv": "guides/other_trainers.html",
    "verifiers": "guides/verifiers.html",
    "deepspeed": "guides/other_trainers.html#trl",
    "preemption": "guides/scaling.html#slurm",
    "exit code": "getting_started.html#stop-and-resume",
    "disk full": ("guides/packaged_models.html#what-can-go-wrong", "guides/scaling.html#what-a-kill-costs"),
    "best checkpoint": "guides/runs.html",
    "reward model": "methods/rlhf.html",
    "tree search": "guides/searching.html",
}
"""The page, or the beginning of its address, that the first hit leads to; of several any may be first."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site, from a copy of the sources, so that the one in ``site/`` stays."""
    if not ZENSICAL.exists():
        pytest.skip("zensical is not installed: make docs")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")  # the site's sources must lie in its folder
    for name in ("src", "contrib", "studies"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "mkdocs.yml", folder)
    built = subprocess.run(
        [ZENSICAL, "build", "--clean", "--strict"], cwd=folder, capture_output=True, text=True, timeout=1500
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


@pytest.mark.skipif(not NODE, reason="there is no node to run the site's search")
def test_search_leads_to_the_guide_at_the_first_hit(site):
    asked = [NODE, str(ROOT / "tests" / "search.js"), str(site), *FIRST_HITS]
    hits = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    first = {query: found[0] if found else "nothing" for query, found in hits.items()}
    wrong = {query: hit for query, hit in first.items() if not hit.startswith(FIRST_HITS[query])}
    assert not wrong


def test_the_reference_and_the_log_are_out_of_search(site):
    """Members of classes would come before guides: "share" is a field of an agent."""
    items = json.loads((site / "search.json").read_text())["items"]
    assert not [item["location"] for item in items if item["location"].startswith(("api/", "log/2"))]


def test_versions_stand_beside_each_other(tmp_path):
    """The newest is the first of the list, and the index leads to it, in whatever order they are added."""
    described = importlib.util.spec_from_file_location("versions", ROOT / "docs" / "_ext" / "versions.py")
    versions = importlib.util.module_from_spec(described)
    described.loader.exec_module(versions)
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("first")
    for version in ("0.9.0", "0.10.0", "0.10.0rc1", "0.2.0", "0.10.0"):
        listed = versions.add(tmp_path / "published", version, site)
    assert [each["version"] for each in listed] == ["0.10.0", "0.10.0rc1", "0.9.0", "0.2.0"]
    assert [each["aliases"] for each in listed] == [["latest"], [], [], []]
    assert json.loads((tmp_path / "published" / "versions.json").read_text()) == listed
    assert "0.10.0/" in (tmp_path / "published" / "index.html").read_text()
    assert (tmp_path / "published" / "0.9.0" / "index.html").read_text() == "first"
    with pytest.raises(ValueError, match="A version is written as"):
        versions.add(tmp_path / "published", "../0.1", site)
    with pytest.raises(FileNotFoundError, match="make docs"):
        versions.add(tmp_path / "published", "0.3", tmp_path / "nothing")
