"""TRL's GRPOTrainer, for real, in our environments: rollouts of any model, and a tool of chat models."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from tests.started import run

import hunch
from hunch.core import UsageError

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl", reason="needs the extra 'trl'")
datasets = pytest.importorskip("datasets", reason="needs the extra 'trl'")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402
from trl.chat_template_utils import qwen3_chat_template  # noqa: E402

from hunch.ext import trl as ours  # noqa: E402
from hunch.ext.turns import Turns  # noqa: E402

pytestmark = pytest.mark.trl
WORDS = [
    "go to the goal\n> move left right up down\n",
    '<tool_call>\n{"name": "act", "arguments": {}}\n</tool_call>',
]


@pytest.fixture(scope="module")
def tokenizer():
    own = Tokenizer(models.BPE())
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
    learner = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    own.train_from_iterator(WORDS, learner)
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<|im_end|>", pad_token="<pad>")


def network(tokenizer, context=1024):
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=context, **size, **ends)
    )


def trained(folder, tokenizer, rows, steps=3, **how):
    """Train for some steps; return the trainer, and whether all weights are finite and some have moved."""
    net = how.pop("net", None) or network(tokenizer, how.pop("context", 1024))
    before = [weight.clone() for weight in net.parameters()]
    config = trl.GRPOConfig(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=4,
        num_generations=4,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        logging_steps=1,
        learning_rate=1e-3,
        max_completion_length=how.pop("most", 100),
    )
    data = datasets.Dataset.from_list(rows)
    trainer = trl.GRPOTrainer(net, args=config, train_dataset=data, processing_class=tokenizer, **how)
    trainer.train()
    assert all(weight.isfinite().all() for weight in net.parameters())
    moved = any(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    return trainer, moved


def letters(completions, **_):
    return [float(len(text)) for text in completions]


def test_a_trainer_plays_our_environment_for_three_steps(tmp_path, tokenizer):
    play = ours.rollout("hunch/Household-Pick-v0", turn_tokens=5, games=8, max_steps=3)
    seen = []

    def watched(prompts, trainer):
        found = play(prompts, trainer)
        seen.append((prompts, found))
        return found

    funcs = [ours.returns, letters]
    rows = ours.episodes(4)
    trainer, moved = trained(tmp_path, tokenizer, rows, reward_funcs=funcs, rollout_func=watched, most=600)
    assert trainer.state.global_step == 3
    assert moved
    for prompts, found in seen:
        assert len(set(prompts)) == 1  # a group
        assert len({tuple(ids) for ids in found["prompt_ids"]}) == 1  # begins alike
        for ids, mask, logprobs in zip(
            *(found[name] for name in ("completion_ids", "env_mask", "logprobs")), strict=True
        ):
            assert len(ids) == len(mask) == len(logprobs)
            turns = "".join(map(str, mask)).strip("0").replace("0", " ").split()
            assert 1 <= len(turns) <= 3  # what the model wrote, between observations
            assert all(p < 0 for p, own in zip(logprobs, mask, strict=True) if own)
            assert all(p == 0 for p, own in zip(logprobs, mask, strict=True) if not own)


def taught(tokenizer, line, env, options):
    """A model that has learnt to write a line wherever it is its turn in an environment."""
    net = network(tokenizer, 4096)
    turns = Turns(env, **options)
    turn = turns.reset(0)
    texts = [ours.PROMPT.format(task=turn.task, text=ours._shown(turn))]
    while not turn.done:
        turn = turns.step(line)
        texts += [f"{line}\n", f"{ours._shown(turn)}\n>"]
    parts = [tokenizer.encode(text) for text in texts]
    # Only its own lines are learnt: -100 is what the loss leaves out.
    labels = [token if number % 2 else -100 for number, part in enumerate(parts) for token in part]
    tokens = torch.tensor([[token for part in parts for token in part]])
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(60):
        optimiser.zero_grad()
        net(input_ids=tokens, labels=torch.tensor([labels])).loss.backward()
        optimiser.step()
    return net


def test_lines_that_are_admissible_are_counted(tmp_path, tokenizer):
    """Played again, the lines that the model wrote give the shares; the listed actions stand in the text."""
    options = {"games": 2, "max_steps": 3}
    play = ours.rollout("hunch/Household-Pick-v0", turn_tokens=8, listed=True, **options)
    seen = []

    def watched(prompts, trainer):
        found = play(prompts, trainer)
        seen.append((prompts, found))
        return found

    funcs = [ours.returns, ours.admissible]
    net = taught(tokenizer, "look", "hunch/Household-Pick-v0", options)
    how = {"net": net, "reward_funcs": funcs, "rollout_func": watched, "most": 3_000}
    trained(tmp_path, tokenizer, ours.episodes(4), steps=1, **how)
    shares = []
    for prompts, found in seen:
        assert "Admissible actions: " in tokenizer.decode(found["prompt_ids"][0])
        for row, prompt in enumerate(prompts):
            env = hunch.make("hunch/Household-Pick-v0", written=True, **options)
            env.reset(seed=int(prompt))
            counted = []
            tokens = zip(found["completion_ids"][row], found["env_mask"][row], strict=True)
            for mine, group in groupby(tokens, lambda token: token[1]):
                if mine:
                    line = tokenizer.decode([token for token, _ in group], skip_special_tokens=True).strip()
                    counted.append(line in env.get_wrapper_attr("listed"))
                    env.step(line)
            assert found["admissible_share"][row] == sum(counted) / len(counted)
            shares.append(found["admissible_share"][row])
    assert max(shares) > 0
    assert ours.admissible([], shares) == shares


def test_the_example_trains(tmp_path, tokenizer, monkeypatch):
    """The script of the page, with a model of one layer and two steps."""
    network(tokenizer, 4096).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    script = Path(__file__).parents[2] / "examples" / "trl_household.py"
    (tmp_path / "example.py").write_text(script.read_text().replace("max_steps=10,", "max_steps=2,"))
    done = run(tmp_path, "example.py", str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "step 2: " in done.stdout
    assert (tmp_path / "runs/trl-household/model/model.safetensors").exists()


def test_a_chat_model_acts_by_a_tool_for_three_steps(tmp_path, tokenizer):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(_saved(tokenizer, tmp_path / "chat"))
    tokenizer.chat_template = qwen3_chat_template
    game = ours.factory("hunch/FrozenLake-v0", max_steps=5)
    how = {"environment_factory": game, "reward_funcs": [_written], "context": 4096, "most": 24}
    trainer, moved = trained(tmp_path, tokenizer, ours.chats(4), **how)
    assert trainer.state.global_step == 3
    assert moved
    assert any("TextGame" in name for log in trainer.state.log_history for name in log)


def _written(completions, **_):
    return [float(len(str(one))) for one in completions]


def _saved(tokenizer, folder):
    tokenizer.save_pretrained(folder)
    return folder


def test_the_tool_is_the_environment():
    import hunch

    env, game = hunch.make("hunch/FrozenLake-v0", written=True), ours.factory("hunch/FrozenLake-v0")()
    observation, _ = env.reset(seed=4)
    assert observation in game.reset(seed=4)
    action = env.get_wrapper_attr("listed")[0]
    assert env.step(action)[0] in game.act(action)
    assert "Admissible actions" in game.act("fly away")
    assert game.get_reward() == 0.0


def test_what_trl_cannot_use_is_said(tmp_path, tokenizer):
    with pytest.raises(UsageError, match="takes programs"):
        ours.factory("hunch/Heuristic-BinPacking-v0")
    with pytest.raises(ValueError, match="does not support tool calling"):
        trained(tmp_path, tokenizer, ours.chats(4), environment_factory=ours.factory("hunch/FrozenLake-v0"))
    with pytest.raises(UsageError, match="A prompt of the data set is the seed of an episode, not 'hello'"):
        ours.rollout("hunch/FrozenLake-v0")(
            ["hello"],
            type(
                "T", (), {"processing_class": tokenizer, "args": type("A", (), {"max_completion_length": 9})}
            )(),
        )
