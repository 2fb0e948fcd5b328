"""Models of transformers, against the plainest computation of the same numbers."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm import Sampling
from hunch.lm.backends import seam
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.registry import build
from hunch.pocket.decoder import pick

torch = pytest.importorskip("torch")

PROMPT = "You see a fridge 1, a table 2 and a mug 3.\nAction:"
OPTIONS = ["go to the fridge", "look", "take mug 3 from table 2", "open", "open the fridge", "Q"]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalModel:
    return lm.load(f"hf:{folders[request.param]}", cache=None).model


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
@pytest.mark.parametrize("ends_are_stated", [True, False])
def test_an_outline_is_the_model_without_its_weights(
    kind: str, ends_are_stated: bool, folders: dict[str, Path], tmp_path: Path
) -> None:
    """So a dry run finds the answers of the whole model, and counts what it would read."""
    folder = shutil.copytree(folders[kind], tmp_path / kind)
    options = "dtype=bfloat16"
    if kind != "bert":
        options += "&batch=4&chat=true"
        template = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}<|end|>{% endfor %}"
        (folder / "chat_template.jinja").write_text(template)
        if not ends_are_stated:
            (folder / "generation_config.json").unlink()
    spec = f"hf:{folder}?{options}"
    _, whole = build(spec, {})
    _, outline = build(spec, {}, outline=True)
    names = [
        "name",
        "revision",
        "verbs",
        "evidence",
        "dim",
        "context",
        "parameters",
        "answer_tokens",
        "takes",
        "prompting",
        "ends",
    ]
    for name in (*names, "answer_tokens", "prompting"):
        assert getattr(outline, name) == getattr(whole, name), name
    assert outline.network.device.type == ("meta" if kind != "bert" else "cpu")


def test_an_outline_of_a_damaged_model_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["gpt2"], tmp_path / "model")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])
    with pytest.raises(HunchError, match="holds no model that can be loaded"):
        build(f"hf:{folder}", {}, outline=True)
    (folder / "model.safetensors").unlink()
    (folder / "model-1.safetensors").write_bytes(whole)
    index = {"weight_map": {"one": "model-1.safetensors", "other": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(HunchError, match=r"it lacks the file model-2\.safetensors"):
        build(f"hf:{folder}", {}, outline=True)
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(HunchError, match="it has no file of weights"):
        build(f"hf:{folder}", {}, outline=True)


def plain(model: CausalModel, head: list[int], tail: list[int]) -> float:
    """log p(tail | head), a whole forward pass a token, nothing padded."""
    total, ids = 0.0, list(head)
    for token in tail:
        with torch.inference_mode():
            logits = model.network(torch.tensor([ids])).logits[0, -1].double()
        total += float(torch.log_softmax(logits, -1)[token])
        ids.append(token)
    return total


@pytest.mark.parametrize("prompt", [PROMPT, "Action: ", "", "mug"])
def test_score_is_the_plain_computation(model: CausalModel, prompt: str) -> None:
    scores = model.score([prompt], [OPTIONS])[0]
    joint = " " if prompt and not prompt.endswith(" ") else ""
    head = model.tokenizer(prompt)["input_ids"] or [1]
    for place, option in enumerate(OPTIONS):
        tail = seam.after_break(model.tokenizer, joint + option) if prompt else model._plain_tokens(option)
        assert scores.tokens[place] == len(tail)
        assert scores.logprobs[place] == pytest.approx(plain(model, head, tail), abs=1e-5)


def test_half_a_character_is_read_as_a_question_mark(model: CausalModel) -> None:
    """The world may send a lone surrogate; tokenizers and files cannot take it."""
    torn, mended = "a \ud800 b", "a ? b"
    scores, expected = model.score([torn, mended], [["mug", "look"], ["mug", "look"]])
    assert scores.logprobs == pytest.approx(expected.logprobs, abs=1e-5)
    assert model.embed([torn])[0] == pytest.approx(model.embed([mended])[0], abs=1e-5)
    assert len(model.generate([torn])[0]) == 1


def test_option_tokens_are_those_of_running_text(model: CausalModel) -> None:
    """The seam: prompt and option apart give the tokens of prompt and option together."""
    whole = model.tokenizer(f"{PROMPT} take mug 3 from table 2")["input_ids"]
    assert (
        model.tokenizer(PROMPT)["input_ids"] + seam.after_break(model.tokenizer, " take mug 3 from table 2")
        == whole
    )


def test_a_tokenizer_that_merges_across_the_seam(folders: dict[str, Path], tmp_path: Path) -> None:
    """Prompt and option stay apart: the prompt's tokens are the same for every option."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    special = ["<unk>", "<s>", "</s>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    made.train_from_iterator(["Action: go left", "Action: go right", "\n"] * 9, trainer)
    folder = Path(shutil.copytree(folders["gpt2"], tmp_path / "merging"))
    PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>").save_pretrained(folder)
    model = lm.load(f"hf:{folder}", cache=None).model
    whole, head = (model.tokenizer(text)["input_ids"] for text in ("Action: go left", "Action:"))
    assert whole[: len(head)] != head
    scores = model.score(["Action:"], [["go left", "go right"]])[0]
    for place, option in enumerate((" go left", " go right")):
        tail = model.tokenizer(option)["input_ids"]
        assert scores.logprobs[place] == pytest.approx(plain(model, head, tail), abs=1e-5)
    with pytest.raises(UsageError, match="cannot write the option 'go up'"):
        model.score(["Action:"], [["go left", "go up"]])


@pytest.fixture(scope="module")
def ending(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    """A model whose tokenizer puts a start token before every text and an end token after it."""
    import tokenizers

    folder = Path(shutil.copytree(folders["llama"], tmp_path_factory.mktemp("ending") / "model"))
    made = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    both = [("<s>", 1), ("</s>", 2)]
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A </s>", special_tokens=both)
    made.save(str(folder / "tokenizer.json"))
    return lm.load(f"hf:{folder}", cache=None).model


def test_no_end_token_between_prompt_and_option(ending: CausalModel, folders: dict[str, Path]) -> None:
    """Tokenizers that end every text with an end token give the scores and texts of those that do not."""
    assert ending.tokenizer(PROMPT)["input_ids"][-1] == 2
    usual = lm.load(f"hf:{folders['llama']}", cache=None).model
    for prompt in (PROMPT, ""):
        ours, theirs = (model.score([prompt], [OPTIONS])[0] for model in (ending, usual))
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-6)
        greedy = Sampling(max_tokens=6, temperature=0, stop=())
        assert ending.generate([prompt], sampling=greedy) == usual.generate([prompt], sampling=greedy)


@pytest.mark.parametrize("strips", [False, True])
def test_a_tokenizer_that_strips_its_texts_keeps_an_options_space(
    folders: dict[str, Path], strips: bool
) -> None:
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    made = tokenizers.Tokenizer.from_file(str(folders["gpt2"] / "tokenizer.json"))
    made.normalizer = tokenizers.normalizers.Strip() if strips else None
    found = seam.after_break(PreTrainedTokenizerFast(tokenizer_object=made), " take mug 3")
    assert made.decode(found) == " take mug 3"


def test_an_option_after_nothing_begins_the_text(model: CausalModel) -> None:
    whole = model.tokenizer("take mug 3")["input_ids"]
    assert model._request("", ("take mug 3",)) == ([1], [whole[whole[0] == 1 :]])


def test_threads_count_each_token_once(folders: dict[str, Path]) -> None:
    """Eight threads at one model: the meter is that of the same questions asked one after the other."""
    one, many = (lm.load(f"hf:{folders['gpt2']}", cache=None) for _ in range(2))
    prompts = [f"Room {i}. You see a mug.\nAction:" for i in range(48)]
    for prompt in prompts:
        one.score([prompt], [OPTIONS])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda prompt: many.score([prompt], [OPTIONS]), prompts))
    assert many.usage.prompt_tokens == one.usage.prompt_tokens > 0
    assert many.usage.calls == 48


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_a_long_text_is_cut_without_a_setting_of_the_tokenizer(folders: dict[str, Path], kind: str) -> None:
    """Such a setting would hold for what another thread tokenises at the moment, and the other way round."""
    model = lm.load(f"hf:{folders[kind]}", cache=None).model
    ids = model._text_tokens("Room 3: take the mug. " * 50, 20)
    assert model.tokenizer.backend_tokenizer.truncation is None
    cut = model.tokenizer("Room 3: take the mug. " * 50, truncation=True, max_length=20)
    assert ids == cut["input_ids"]


def test_samples_follow_the_scores(model: CausalModel) -> None:
    """Two routes to one distribution: frequencies of one sampled token, and exp(score)."""
    n = 1500
    sampling = Sampling(max_tokens=1, stop=())
    texts = model.generate([PROMPT], n, sampling)[0]
    options = [text.strip() for text in dict.fromkeys(texts) if text.startswith(" ") and text.strip()]
    scores = model.score([PROMPT], [options])[0]
    single = scores.tokens == 1
    shares = np.array([texts.count(f" {option}") / n for option in options])[single]
    expected = np.exp(scores.logprobs)[single]
    assert single.sum() >= 5
    assert np.all(np.abs(shares - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n) + 1 / n)


def test_greedy_is_the_likeliest_token_each_time(model: CausalModel) -> None:
    texts = model.generate([PROMPT], 2, Sampling(max_tokens=5, temperature=0, stop=()))[0]
    ids = list(model.tokenizer(PROMPT)["input_ids"])
    start = len(ids)
    for _ in range(5):
        with torch.inference_mode():
            ids.append(int(model.network(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] in model.ends:
            break
    assert texts == [seam.continuation(model.tokenizer, ids[start - 1], ids[start:])] * 2


def test_text_ends_before_a_stop_string(model: CausalModel) -> None:
    free = model.generate([PROMPT], 6, Sampling(max_tokens=12, temperature=0.01, stop=()))[0]
    mark = free[0][len(free[0]) // 2 :][:2]
    stopped = model.generate([PROMPT], 1, Sampling(max_tokens=12, temperature=0, stop=(mark,)))[0][0]
    assert mark not in stopped


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_too_long_for_the_context(folders: dict[str, Path], kind: str) -> None:
    """The oldest part goes, it is counted, and the rest is answered as it would be alone."""
    model = lm.load(f"hf:{folders[kind]}", cache=None)
    steps = "".join(f"You see mug {number}.\n> go {number}\n" for number in range(60))
    long = f"Your task is to: take it\n{steps}You see a lamp.\n>"
    first = "Your task is to: take it\nYou see mug 0.\n> go 0\n[...]\n"
    with pytest.warns(HunchWarning, match="reads at most 128 tokens, so a longer prompt lost a part"):
        said = model.generate([long], 2)
    seen = [first + steps[steps.index(f"You see mug {number}.") :] for number in range(1, 60)]
    parts = [f"{part}You see a lamp.\n>" for part in seen]
    (longest, *_) = [part for part in parts if len(model.model._tokens(part)) + 32 <= 128]
    assert model.model._fitting(long, 32) == model.model._tokens(longest)
    assert len(said[0]) == 2
    assert np.isfinite(model.score([long], [["look", "go left"]])[0].logprobs).all()
    assert model.embed([long]).shape == (1, 32)
    assert model.usage.shortened == 2
    with pytest.raises(UsageError, match="reads at most 128"):
        model.generate([long], 1, lm.Sampling(max_tokens=200))


def test_embedding_is_the_mean_of_the_last_hidden_state(model: CausalModel) -> None:
    with torch.inference_mode():
        out = model.network(torch.tensor([model.tokenizer(PROMPT)["input_ids"]]), output_hidden_states=True)
    mean = out.hidden_states[-1][0].mean(0).numpy()
    np.testing.assert_allclose(model.embed([PROMPT])[0], mean, atol=1e-5)


def test_embedding_of_the_last_token(folders: dict[str, Path]) -> None:
    spec = f"hf:{folders['llama']}"
    mean, last = (lm.load(f"{spec}?pooling={pooling}") for pooling in ("mean", "last"))
    ids = last.model.tokenizer(PROMPT)["input_ids"]
    with torch.inference_mode():
        states = last.model.network.base_model(torch.tensor([ids])).last_hidden_state
    np.testing.assert_allclose(last.embed([PROMPT])[0], states[0, -1], atol=1e-5)
    assert mean.embed([PROMPT]).tobytes() != last.embed([PROMPT]).tobytes(), "the cache keeps them apart"
    with pytest.raises(UsageError, match="mean or last, not 'max'"):
        lm.load(f"{spec}?pooling=max")


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
def test_an_encoder_as_it_is_published(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """BERT comes with a head for masked words, RoBERTa with positions that are not for tokens."""
    import transformers

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=400, max_position_embeddings=66, hunch_evidence="L0", **sizes
    )
    getattr(transformers, f"{kind}ForMaskedLM")(config).save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert"])
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(tmp_path)
    model = lm.load(f"hf:{tmp_path}", cache=None).model
    ids = model.tokenizer(PROMPT)["input_ids"]
    with torch.inference_mode():
        states = model.network(torch.tensor([ids])).last_hidden_state[0]
    assert model.verbs == {"embed"}
    vectors = model.embed([PROMPT, "mug " * 500])
    np.testing.assert_allclose(vectors[0], states.mean(dim=0), atol=1e-5)
    assert np.isfinite(vectors).all()


def test_counts_tokens(folders: dict[str, Path]) -> None:
    model = lm.load(f"hf:{folders['gpt2']}", cache=None)
    model.generate([PROMPT], 3, Sampling(max_tokens=4, stop=()))
    assert model.usage.prompt_tokens == len(model.model.tokenizer(PROMPT)["input_ids"])
    assert 3 <= model.usage.completion_tokens <= 12


def test_top_p_and_temperature() -> None:
    logprobs, rng = np.log([0.5, 0.3, 0.15, 0.05]), np.random.default_rng(0)
    draws = [pick(logprobs, Sampling(top_p=0.7), rng) for _ in range(2000)]
    assert set(draws) == {0, 1}
    assert draws.count(0) / 2000 == pytest.approx(0.5 / 0.8, abs=0.04)
    hot = [pick(logprobs, Sampling(temperature=0.5), rng) for _ in range(2000)]
    assert hot.count(0) / 2000 == pytest.approx(0.25 / 0.365, abs=0.04)
    assert pick(logprobs, Sampling(temperature=0), rng) == 0


def test_an_encoder_only_embeds(folders: dict[str, Path]) -> None:
    model = lm.load(f"hf:{folders['bert']}", cache=None)
    assert model.verbs == {"embed"}
    assert model.embed(["mug", "a fridge"]).shape == (2, 32)


def test_an_encoder_has_no_chat(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="is an encoder, so chat=true cannot be used"):
        lm.load(f"hf:{folders['bert']}?chat=true")


def test_evidence_is_real_unless_the_config_says_otherwise(folders: dict[str, Path], tmp_path: Path) -> None:
    def stating(level: str | None) -> str:
        folder = Path(shutil.copytree(folders["gpt2"], tmp_path / str(level)))
        config = json.loads((folder / "config.json").read_text())
        config.pop("hunch_evidence")
        (folder / "config.json").write_text(json.dumps(config | ({"hunch_evidence": level} if level else {})))
        return f"hf:{folder}"

    assert lm.load(stating(None), cache=None).evidence == "L3"
    assert lm.load(stating("L1"), cache=None).evidence == "L1"
    with pytest.raises(UsageError, match="evidence level 'L9'"):
        lm.load(stating("L9"), cache=None)


def test_revision_follows_weights_and_dtype(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(folders["gpt2"], tmp_path / "copy"))
    before = lm.load(f"hf:{folder}", cache=None).revision
    assert before == lm.load(f"hf:{folders['gpt2']}", cache=None).revision
    assert before != lm.load(f"hf:{folder}", cache=None, dtype="bfloat16").revision
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] += 1e-3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert before != lm.load(f"hf:{folder}", cache=None).revision


def test_incomplete_weights_are_not_made_up(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(folders["llama"], tmp_path / "copy"))
    weights = load_file(folder / "model.safetensors")
    weights.pop("lm_head.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(HunchError, match=r"lacks 1 of its weights, such as lm_head\.weight"):
        lm.load(f"hf:{folder}", cache=None)


def test_folders_that_hold_no_model(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        lm.load("hf:./nowhere", cache=None)
    with pytest.raises(UsageError, match=r"holds no model of transformers: it has no config\.json"):
        lm.load(f"hf:{tmp_path}", cache=None)
    folder = Path(shutil.copytree(folders["gpt2"], tmp_path / "cut"))
    (folder / "model.safetensors").write_bytes(b"short")
    with pytest.raises(HunchError, match="holds no model that can be loaded"):
        lm.load(f"hf:{folder}", cache=None)


def test_the_folder_of_a_run_without_a_model_is_called_that(tmp_path: Path) -> None:
    """Its config.json can be read: it is the run's."""
    hunch.train("q-learning", "hunch/FrozenLake-v0", steps=20, out=tmp_path / "run")
    with pytest.raises(UsageError, match="is that of a run of q-learning, which has saved no model"):
        lm.load(f"hf:{tmp_path / 'run'}", cache=None)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(HunchError, match=r"its config\.json cannot be read"):
        lm.load(f"hf:{tmp_path}", cache=None)


def test_from_the_hubs_own_cache(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model that was fetched before is found by name without a network, its commit as the revision."""
    from huggingface_hub import constants

    commit, place = "0123456789abcdef" * 2 + "01234567", tmp_path / "models--tiny--gpt2"
    shutil.copytree(folders["gpt2"], place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    model = lm.load("hf:tiny/gpt2?device=cpu", cache=None)
    assert model.revision.startswith("0123456789abcdef:float32:cpu:torch-")
    assert model.generate([PROMPT]) != [[""]]


def test_unknown_on_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HunchError, match="There is no folder 'nobody/nothing'") as caught:
        lm.load("hf:nobody/nothing", cache=None)
    assert "\n" not in str(caught.value)


def test_wrong_device_and_dtype(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="no device 'toaster'"):
        lm.load(f"hf:{folders['gpt2']}?device=toaster", cache=None)
    with pytest.raises(UsageError, match="no dtype 'int3'"):
        lm.load(f"hf:{folders['gpt2']}?dtype=int3", cache=None)
