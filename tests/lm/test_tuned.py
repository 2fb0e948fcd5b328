"""Real models of transformers, small and random, are trained to write, saved, and loaded again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.roles import RewardSource

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")

from hunch.lm.training import Nucleus  # noqa: E402
from hunch.lm.training.writing import in_nucleus  # noqa: E402

PROMPTS = ["You see a mug 2.", "You are in the middle of a room.", "look around"]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps({"prompt": prompt, "answer": "go left"}) + "\n" for prompt in PROMPTS))
    return file


def command(prompts: Path, spec: str, *more: str) -> list[str]:
    env = ["--env", "hunch/Prompts-v0", "--env.file", str(prompts)]
    return [*env, "--lm", spec, "--max-tokens", "6", "--episodes", "8", *more]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_adapters_are_trained_saved_and_loaded(
    folders: dict[str, Path], family: str, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of the run holds a whole model: the same log-probabilities, and a start for the next run."""
    run, spec = tmp_path / "run", f"hf:{folders[family]}?train=lora"
    short = ["--group", "2", "--steps", "32", "--reward", f"{__name__}:Letters", "--learning-rate", "0.01"]
    main(["run", "grpo", *command(prompts, spec, *short), "--out", str(run)])
    trained = hunch.load(run)
    agent = trained.agent.agent  # within the one that replaces the rewards
    texts = ["go left", "open the fridge 1", "take"]
    written = agent.lm.as_written(PROMPTS, texts)
    own = agent.lm.evaluate(PROMPTS, written).logprobs
    network = transformers.AutoModelForCausalLM.from_pretrained(run / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(run / "model")
    assert not any("lora" in name for name, _ in network.named_parameters())
    for row, (prompt, text) in enumerate(zip(PROMPTS, written, strict=True)):
        head = tokenizer(prompt)["input_ids"]
        assert head == list(agent.lm.model._tokens(prompt))
        logits = network(torch.tensor([head + list(text.tokens)])).logits[0, len(head) - 1 : -1]
        found = logits.log_softmax(-1)[range(len(text.tokens)), text.tokens]
        torch.testing.assert_close(own[row, : len(text.tokens)], found, atol=1e-5, rtol=1e-5)
    before = lm.trainable(spec).evaluate(PROMPTS, written).logprobs
    assert (own - before).abs().max() > 1e-3
    again = lm.trainable(f"hf:{run}").evaluate(PROMPTS, written).logprobs
    torch.testing.assert_close(own, again, atol=1e-5, rtol=1e-5)

    observation, info = hunch.make("hunch/Prompts-v0", file=str(prompts)).reset(seed=0)
    assert isinstance(trained.predict(observation, info), str)
    capsys.readouterr()
    main(["evaluate", str(run), "--episodes", "6", "--temperature", "0"])
    assert "6 model calls" in capsys.readouterr().out
    summary = json.loads((run / "summary.json").read_text())
    usage = summary["models"]["lm"]
    assert usage["calls"] >= 32
    assert usage["completion_tokens"] >= 32
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert any({"kl", "entropy", "flat_groups", "distinct", "intrinsic"} <= line.keys() for line in lines)


class Letters(RewardSource):
    """A reward source that likes the letter e."""

    evidence = None

    def rewards(self, transitions):
        return [t.action.count("e") / (1 + len(t.action)) for t in transitions]


def test_an_estimate_trains_and_counts(folders, prompts, capsys):
    main(
        [
            "run",
            "ppo-text",
            *command(prompts, f"hf:{folders['gpt2']}", "--steps", "16", "--envs", "4"),
            "--dry-run",
        ]
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "The model that is trained was asked and trained" in said
    assert "calls" in said


def test_a_run_of_a_real_model_resumes_exactly(folders, prompts, tmp_path):
    """Killed in the middle of a group, whose other episodes are over."""
    options = {"lm": f"hf:{folders['llama']}?train=lora", "group": 3, "max_tokens": 5, "episodes": 6}
    envs = lambda: [hunch.make("hunch/Prompts-v0", file=str(prompts)) for _ in range(3)]  # noqa: E731
    whole = hunch.train("rloo", envs(), steps=36, out=tmp_path / "whole", **options)
    calls = iter(range(100))
    hunch.train(
        "rloo",
        envs(),
        steps=36,
        out=tmp_path / "cut",
        watch=hunch.Watch(stop=lambda: next(calls) >= 4),
        **options,
    )
    rest = hunch.train("rloo", envs(), steps=36, out=tmp_path / "cut", **options)
    assert [e.actions for e in rest.episodes] == [e.actions for e in whole.episodes]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_nucleus_holds_in_writing_and_in_judging(folders, family):
    """Each token is among the likeliest of other weights that have top_p together, or ends the text."""
    model = lm.trainable(f"hf:{folders[family]}")
    old = {name: weight.clone() for name, weight in model.state_dict().items()}
    chance = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data += 0.05 * torch.randn(weight.shape, generator=chance)
    within, heads = Nucleus(old, 0.4), PROMPTS * 8
    written = model.write(heads, [np.random.default_rng(i) for i in range(24)], max_tokens=8, within=within)
    judged = model.evaluate(heads, written, within)
    free = model.evaluate(heads, written)
    torch.testing.assert_close(judged.free, free.logprobs.detach(), atol=1e-5, rtol=1e-5)
    for row, (prompt, text) in enumerate(zip(heads, written, strict=True)):
        n, head = len(text.tokens), list(model.model._tokens(prompt))
        ids = torch.tensor([head + list(text.tokens)])
        logits = model.network(ids).logits[0, len(head) - 1 : -1]
        with model.with_weights(old), torch.no_grad():
            shares = model.network(ids).logits[0, len(head) - 1 : -1].softmax(-1).double().numpy()
        for place, token in enumerate(text.tokens):
            order = np.argsort(-shares[place], kind="stable")
            allowed = set(order[: np.searchsorted(shares[place][order].cumsum(), 0.4) + 1]) | set(model.ends)
            assert token in allowed
            kept = logits[place, sorted(allowed)]
            wanted = logits[place, token] - kept.logsumexp(0)
            torch.testing.assert_close(judged.logprobs[row, place], wanted, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(judged.logprobs[row, :n].detach(), text.logprobs, atol=1e-5)


def test_the_nucleus_of_a_distribution():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    for top_p, wanted in ((0.4, 1), (0.6, 2), (0.79, 2), (0.9, 3), (1.0, 4)):
        assert int(in_nucleus(logits, top_p).sum()) == wanted
    assert in_nucleus(logits, 0.4, [3])[0].tolist() == [True, False, False, True]


def test_a_model_that_cannot_end_a_text_is_refused(folders, tmp_path):
    folder = shutil.copytree(folders["gpt2"], tmp_path / "endless")
    for name in ("config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (folder / name).exists():
            known = json.loads((folder / name).read_text())
            kept = {key: value for key, value in known.items() if not key.startswith("eos")}
            (folder / name).write_text(json.dumps(kept))
    with pytest.raises(UsageError, match="its tokenizer has no end token"):
        methods.find("grpo").agent_class(lm=lm.trainable(f"hf:{folder}"))


def test_a_reference_of_other_words_is_refused(folders):
    method = methods.find("grpo")
    config = method.config_class(lm=f"hf:{folders['gpt2']}", reference=f"hf:{folders['llama']}")
    with pytest.raises(UsageError, match="has another vocabulary than"):
        method.build(config, {})


def test_a_reference_of_ones_own_is_asked_and_counted(folders, prompts):
    """The divergence from the same model begins at 0, and its calls stand in the ledger."""
    spec, lines = f"hf:{folders['gpt2']}", []
    envs = [hunch.make("hunch/Prompts-v0", file=str(prompts)) for _ in range(2)]
    options = {"lm": spec, "reference": spec, "group": 2, "episodes": 4, "max_tokens": 5}
    result = hunch.train("grpo", envs, steps=4, watch=hunch.Watch(report=lines.append), **options)
    assert result.models["reference"]["calls"] == 4
    assert max(abs(line["kl"]) for line in lines if "kl" in line) < 1e-4


def test_messages_go_through_the_chat_template(folders, tmp_path):
    folder = shutil.copytree(folders["gpt2"], tmp_path / "chat")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
    tokenizer.save_pretrained(folder)
    file, said = tmp_path / "p.jsonl", [{"role": "user", "content": "Where is the mug?"}]
    file.write_text(json.dumps({"prompt": said}) + "\n")
    model = lm.trainable(f"hf:{folder}")
    agent = methods.find("grpo").agent_class(lm=model, group=2, episodes=2, max_tokens=4)
    read = []
    heads = model.model._tokens
    model.model._tokens = lambda prompt, *rest: read.append(heads(prompt, *rest)) or read[-1]
    hunch.train(agent, [hunch.make("hunch/Prompts-v0", file=str(file)) for _ in range(2)], steps=2)
    assert tokenizer.decode(read[0]) == "[user] Where is the mug?\n[assistant]"


def test_a_text_drawn_by_the_present_weights_has_a_ratio_of_1_in_16_bits(
    folders: dict[str, Path], prompts: Path, tmp_path: Path
) -> None:
    """Drawing and evaluating round differently, and over a text the differences add up."""
    spec = f"hf:{folders['llama']}?train=lora&dtype=bfloat16"
    short = ["--group", "2", "--envs", "2", "--steps", "16", "--reward", f"{__name__}:Letters"]
    main(
        ["run", "rloo", *command(prompts, spec, *short, "--max-tokens", "24"), "--out", str(tmp_path / "run")]
    )
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    moved = [line["moved"] for line in lines if "moved" in line]
    assert moved == [0.0, 0.0], "one gradient step on each text, drawn by the weights before it"
