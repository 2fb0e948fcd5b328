"""Models in training write texts, judge them and learn from them: causal, encoder-decoder, and new ones."""

from __future__ import annotations

import subprocess
import sys
from copy import copy
from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.extras import install
from hunch.lm.budget import Budget, BudgetError, Ledger

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from hunch.lm.backends.bag_of_words import words  # noqa: E402
from hunch.lm.training import Learner, Trainable  # noqa: E402
from hunch.lm.training.encoder_decoder import EncoderDecoder  # noqa: E402
from hunch.lm.training.words import new  # noqa: E402

PROMPTS = ["You are in room 1.\n>", "You see a mug 2, a fridge 1 and, far off, a very long table.\n>", "go"]
TEXTS = ["go left", "open the fridge 1", "open the fridge"]
EPISODE = [PROMPTS[0] + " go left\nNothing.\n>" * n for n in (0, 6, 1, 2)] + ["go\n>", "go\n> left\n>"]
"""Prompts that continue others, and short ones, which are computed apart from long ones."""


def moved(model: Trainable) -> Trainable:
    """Weights other than the first ones, so that adapters change something."""
    chance = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data += 0.05 * torch.randn(weight.shape, generator=chance)
    return model


KINDS = [
    "gpt2 all",
    pytest.param("gpt2 lora", marks=pytest.mark.thorough),
    pytest.param("llama all", marks=pytest.mark.thorough),
    "llama lora",
    "qwen2 all",
    pytest.param("qwen2 lora", marks=pytest.mark.thorough),
    "t5 all",
    "t5 lora",
    "words all",
]


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Trainable:
    kind, train = request.param.split()
    if kind != "words":
        return moved(lm.trainable(f"hf:{folders[kind]}", train=train))
    made = new(seed=0, context=40)
    made.take([*PROMPTS, *TEXTS])
    return moved(made)


def rngs(n: int, first: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng(first + i) for i in range(n)]


def alone(model: Trainable, prompt: str, tokens: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and states that predict the tokens, by a plain pass of the network over one row."""
    head = list(model.model._tokens(prompt))[-(model.context or 0) :]
    if model.network.config.is_encoder_decoder:
        row = torch.tensor([[model.network.config.decoder_start_token_id, *tokens[:-1]]])
        out = model.network(torch.tensor([head]), decoder_input_ids=row, output_hidden_states=True)
        return out.logits[0], out.decoder_hidden_states[-1][0]
    out = model.network(torch.tensor([[*head, *tokens]]), output_hidden_states=True)
    return out.logits[0, len(head) - 1 : -1], out.hidden_states[-1][0, len(head) - 1 : -1]


def test_what_is_written_has_the_log_probabilities_that_it_is_judged_by(model: Trainable) -> None:
    prompts = PROMPTS * 8
    written = model.write(prompts, rngs(len(prompts)), max_tokens=12)
    judged = model.evaluate(prompts, written)
    assert judged.mask.sum(1).tolist() == [len(text.tokens) for text in written]
    for row, (prompt, text) in enumerate(zip(prompts, written, strict=True)):
        assert text.finished == (text.tokens[-1] in model.ends)
        assert text.finished or len(text.tokens) == 12
        n = len(text.tokens)
        found = judged.logprobs[row, :n]
        torch.testing.assert_close(found, torch.tensor(text.logprobs), atol=1e-5, rtol=1e-5)
        logits, states = alone(model, prompt, text.tokens)
        every = logits.log_softmax(-1)
        torch.testing.assert_close(found, every[range(n), text.tokens], atol=1e-5, rtol=1e-5)
        entropy = torch.distributions.Categorical(logits=logits).entropy()
        torch.testing.assert_close(judged.entropy[row, :n], entropy, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(judged.states[row, :n], states, atol=1e-4, rtol=1e-4)
        for part in (judged.logprobs, judged.entropy, judged.states):
            assert not part[row, n:].any()
    assert len({text.tokens for text in written}) > 8


def test_texts_are_judged_the_same_without_gradients(model: Trainable) -> None:
    """Without gradients the vocabulary is computed for a few texts at a time."""
    prompts = PROMPTS * 8
    written = model.write(prompts, rngs(len(prompts)), max_tokens=12)
    judged = model.evaluate(prompts, written)
    with torch.no_grad():
        again = model.evaluate(prompts, written)
    for one, other in zip(judged[:4], again[:4], strict=True):
        np.testing.assert_allclose(one.detach(), other, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("prompts", [[*PROMPTS, PROMPTS[0]], EPISODE], ids=["apart", "continued"])
def test_company_and_padding_change_nothing(model: Trainable, prompts: list[str]) -> None:
    together = model.write(prompts, rngs(len(prompts)), max_tokens=9)
    judged = model.evaluate(prompts, together)
    for row, (prompt, text) in enumerate(zip(prompts, together, strict=True)):
        [same] = model.write([prompt], rngs(1, row), max_tokens=9)
        assert same.tokens == text.tokens
        assert same.text == text.text
        np.testing.assert_allclose(same.logprobs, text.logprobs, atol=1e-5)
        for one, every in zip(model.evaluate([prompt], [text])[:4], judged[:4], strict=True):
            torch.testing.assert_close(one[0], every[row, : one.shape[1]], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("prompts", [[*PROMPTS, PROMPTS[0]], EPISODE], ids=["apart", "continued"])
def test_gradients_of_judged_texts_are_those_of_plain_passes(model: Trainable, prompts: list[str]) -> None:
    written = model.write(prompts, rngs(len(prompts)), max_tokens=6)
    judged = model.evaluate(prompts, written)
    loss = (judged.logprobs + 0.1 * judged.entropy).sum() + 0.01 * judged.states.sum()
    plain = torch.zeros(())
    for prompt, text in zip(prompts, written, strict=True):
        logits, states = alone(model, prompt, text.tokens)
        every = logits.log_softmax(-1)
        own = every[range(len(text.tokens)), text.tokens].sum() - 0.1 * (every.exp() * every).sum()
        plain = plain + own + 0.01 * states.sum()
    ours, theirs = (
        torch.autograd.grad(each, model.parameters(), allow_unused=True) for each in (loss, plain)
    )
    scale = max(float(weight.abs().max()) for weight in theirs if weight is not None)
    for one, other in zip(ours, theirs, strict=True):
        if other is not None:
            torch.testing.assert_close(one, other, atol=1e-4 * scale, rtol=1e-3)


def test_drawn_tokens_follow_the_distribution(model: Trainable) -> None:
    n = 3000
    written = model.write([PROMPTS[0]] * n, rngs(n), max_tokens=1)
    with torch.no_grad():
        shares = alone(model, PROMPTS[0], written[0].tokens)[0][0].double().softmax(-1).numpy()
    counts = np.bincount([text.tokens[0] for text in written], minlength=len(shares))
    assert np.all(np.abs(counts / n - shares) < 6 * np.sqrt(shares / n) + 3 / n)


def test_only_allowed_tokens_are_written_and_their_log_probabilities_are_the_models(model: Trainable) -> None:
    size = model.network.config.vocab_size
    seen = []

    def even(tokens: tuple[int, ...]) -> np.ndarray:
        seen.append(tokens)
        return np.arange(size) % 2 == len(tokens) % 2

    written = model.write(PROMPTS, rngs(3), max_tokens=6, allowed=even)
    assert all(token % 2 == i % 2 for text in written for i, token in enumerate(text.tokens))
    assert {text.tokens[:1] for text in written} <= set(seen)
    judged = model.evaluate(PROMPTS, written)
    for row, text in enumerate(written):
        np.testing.assert_allclose(
            judged.logprobs[row, : len(text.tokens)].detach(), text.logprobs, atol=1e-5, rtol=1e-5
        )
    with pytest.raises(UsageError, match="at least one"):
        model.write(PROMPTS, rngs(3), allowed=lambda tokens: np.zeros(size, bool))


def test_the_temperature_moves_the_choice_but_not_the_log_probabilities(model: Trainable) -> None:
    [greedy, again] = (model.write(PROMPTS, rngs(3, i), max_tokens=5, temperature=0) for i in (0, 5))
    assert greedy == again
    for row, text in enumerate(greedy):
        logits, _ = alone(model, PROMPTS[row], text.tokens)
        assert tuple(logits.argmax(-1).tolist()) == text.tokens
        np.testing.assert_allclose(
            logits.log_softmax(-1).max(-1).values.detach(), text.logprobs, atol=1e-5, rtol=1e-5
        )


def test_one_step_of_supervised_fine_tuning_is_that_of_the_formula(model: Trainable) -> None:
    model.restart()
    moved(model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    spelled = model.as_written(PROMPTS, TEXTS)
    assert [text.tokens[-1] for text in spelled] == [model.ends[0]] * 3
    judged = model.evaluate(PROMPTS, spelled)
    loss = -judged.logprobs.sum() / judged.mask.sum()
    found = Learner(torch.optim.SGD(model.parameters(), lr=0.1), limited=model.parameters()).update(loss)
    ours = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(before)
    total, tokens = torch.zeros(()), 0
    for prompt, text in zip(PROMPTS, spelled, strict=True):
        logits, _ = alone(model, prompt, text.tokens)
        total = total + torch.nn.functional.cross_entropy(logits, torch.tensor(text.tokens), reduction="sum")
        tokens += len(text.tokens)
    assert found == pytest.approx(float((total / tokens).detach()), abs=1e-5)
    gradient = torch.autograd.grad(total / tokens, model.parameters(), allow_unused=True)
    norm = torch.stack([(own**2).sum() for own in gradient if own is not None]).sum().sqrt()
    for (name, weight), own in zip(before.items(), gradient, strict=True):
        step = 0 if own is None else 0.1 * own / max(1.0, float(norm))
        torch.testing.assert_close(ours[name], weight - step, atol=1e-5, rtol=1e-4)


def test_a_text_is_the_same_tokens_with_and_without_the_space_before_it(model: Trainable) -> None:
    """A model writes the space, and somebody else's text has none."""
    if isinstance(model, EncoderDecoder):
        pytest.skip("nothing stands before the text of a decoder")
    spaced = model.as_written(PROMPTS, [f" {text}" for text in TEXTS])
    assert [text.tokens for text in spaced] == [text.tokens for text in model.as_written(PROMPTS, TEXTS)]


def test_a_text_that_was_written_is_given_back_in_the_same_tokens() -> None:
    pocket = lm.trainable("pocket?corpus=walks")
    prompts = ["Your task is to go to the red ball.\nYou see a blue wall. Go to the"] * 4
    drawn = pocket.write(prompts, rngs(4), max_tokens=12)
    given = pocket.as_written(prompts, [text.text for text in drawn])
    ends = set(pocket.ends)
    assert [text.tokens[:-1] for text in given] == [
        tuple(token for token in text.tokens if token not in ends) for text in drawn
    ]


def test_a_step_without_a_finite_gradient_is_refused(model: Trainable) -> None:
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    learner = Learner.adam(model.parameters())
    judged = model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS))
    with pytest.raises(HunchError, match="gradient of the loss is not finite"):
        learner.update(judged.logprobs.sum() * float("inf"), 1e-3)
    after = model.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


def test_updates_that_16_bits_lose_are_warned_of(folders: dict[str, Path]) -> None:
    spec = f"hf:{folders['llama']}"
    with pytest.warns(HunchWarning, match="trained in bfloat16, all weights"):
        lm.trainable(spec, train="all", dtype="bfloat16")
    lm.trainable(spec, train="lora", dtype="bfloat16")


def test_given_texts_are_judged_as_their_options_are_scored(model: Trainable) -> None:
    judged = model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS))
    scores = model.scores(PROMPTS, [[text] for text in TEXTS], ended=True)
    torch.testing.assert_close(judged.logprobs.sum(1), torch.cat(scores), atol=1e-5, rtol=1e-5)


def test_a_saved_model_scores_and_writes_the_same(model: Trainable, tmp_path: Path) -> None:
    folder = model.save(tmp_path / "model")
    again = lm.trainable(f"hf:{folder}")
    for ours, theirs in zip(
        model.scores(PROMPTS, [TEXTS] * 3), again.scores(PROMPTS, [TEXTS] * 3), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    written = model.write(PROMPTS, rngs(3), max_tokens=8)
    assert [text.tokens for text in again.write(PROMPTS, rngs(3), max_tokens=8)] == [
        w.tokens for w in written
    ]
    assert again.evidence == model.evidence
    assert model.adapted == any("lora" in name for name in model.state_dict())  # still ready to be trained
    if not model.network.config.is_encoder_decoder:
        frozen = lm.load(f"hf:{folder}", cache=None)
        for ours, found in zip(
            model.scores(PROMPTS, [TEXTS] * 3), frozen.score(PROMPTS, [TEXTS] * 3), strict=True
        ):
            np.testing.assert_allclose(ours.detach(), found.logprobs, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_with_the_weights_before_training_a_model_is_the_frozen_one_bit_for_bit(
    folders: dict[str, Path], family: str
) -> None:
    frozen, trained = (lm.trainable(f"hf:{folders[family]}", train=train) for train in ("all", "lora"))
    frozen.network.requires_grad_(False)  # torch may choose another kernel for weights with a gradient
    untrained = trained.scores(PROMPTS, [TEXTS] * 3)
    for ours, theirs in zip(untrained, frozen.scores(PROMPTS, [TEXTS] * 3), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    moved(trained)
    assert not torch.allclose(trained.states(PROMPTS), frozen.states(PROMPTS))
    assert torch.equal(trained.frozen_states(PROMPTS), frozen.states(PROMPTS))
    with trained.with_weights():
        off = trained.scores(PROMPTS, [TEXTS] * 3)
    assert all(map(torch.equal, off, frozen.scores(PROMPTS, [TEXTS] * 3)))
    assert len(trained.parameters()) == len(trained.state_dict()) > 0
    assert all(weight.requires_grad for weight in trained.parameters())


def test_a_saved_model_that_started_at_random_says_so(folders: dict[str, Path], tmp_path: Path) -> None:
    model = lm.trainable("pocket?corpus=walks")
    assert lm.load(f"hf:{model.save(tmp_path / 'own')}", cache=None).evidence == "L1"
    card = (tmp_path / "own" / "trained_on.jsonl").read_text()
    assert "walks" in card
    model.restart("random", 1)
    assert lm.load(f"hf:{model.save(tmp_path / 'random')}", cache=None).evidence == "L0"


def test_a_changed_bit_in_any_file_of_a_saved_model_is_a_sentence(tmp_path: Path) -> None:
    """What sha256sum says too; a folder that was changed on purpose loads again without the checksums."""
    folder, rng = lm.trainable("pocket?corpus=walks").save(tmp_path / "own"), np.random.default_rng(0)
    sums = folder / "checksums.sha256"
    assert subprocess.run(["sha256sum", "-c", sums.name], cwd=folder, capture_output=True).returncode == 0
    for file in (file for file in folder.iterdir() for _ in range(10)):
        sound = file.read_bytes()
        place = int(rng.integers(8 * len(sound)))
        damaged = bytearray(sound)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        with pytest.raises(HunchError, match=r"^[^\n]+$"):
            lm.load(f"hf:{folder}", cache=None)
        file.write_bytes(sound)
    settings = folder / "generation_config.json"
    settings.write_text(settings.read_text() + "\n")
    with pytest.raises(HunchError, match="If you changed the file, delete checksums"):
        lm.load(f"hf:{folder}", cache=None)
    sums.unlink()
    lm.load(f"hf:{folder}", cache=None)


def test_a_text_may_end_with_a_class_of_tokens(folders: dict[str, Path]) -> None:
    """Tokens that begin with the end are one event: the environment's first word is not the policy's."""
    model = lm.trainable(f"hf:{folders['gpt2']}?end=o")
    spellings = {model.model.tokenizer.decode([token]) for token in model.ends}
    assert {"o"} < spellings
    assert all(text.startswith("o") for text in spellings)
    written = model.write(PROMPTS * 20, rngs(60), max_tokens=30)
    ended = [text for text in written if text.finished]
    assert len({text.tokens[-1] for text in ended}) > 1
    for prompt, text in list(zip(PROMPTS * 20, written, strict=True))[:12]:
        if text.finished:
            logits, _ = alone(model, prompt, text.tokens)
            chance = logits[-1].softmax(-1)[list(model.ends)].sum()
            assert np.exp(text.logprobs[-1]) == pytest.approx(chance.item(), rel=1e-4)


def test_it_counts_what_it_computes_and_a_budget_stops_it(folders: dict[str, Path]) -> None:
    model = lm.trainable(f"hf:{folders['gpt2']}?train=lora")
    length = {prompt: len(model.model._tokens(prompt)) for prompt in PROMPTS}
    written = model.write([PROMPTS[0], PROMPTS[0], PROMPTS[1]], rngs(3), max_tokens=5)
    wrote = sum(len(text.tokens) for text in written)
    usage = copy(model.usage)
    assert (usage.calls, usage.completion_tokens) == (3, wrote)
    assert usage.prompt_tokens == length[PROMPTS[0]] + length[PROMPTS[1]]
    assert usage.seconds > 0
    model.states(PROMPTS)
    assert (model.usage - usage).calls == 3
    assert (model.usage - usage).prompt_tokens == sum(length.values())
    usage = copy(model.usage)
    model.scores(PROMPTS * 2, [TEXTS] * 6)
    assert (model.usage - usage).calls == 3
    model.generate(PROMPTS[:1], 2)
    assert model.usage.completion_tokens > wrote
    ledger = Ledger({"lm": model}, Budget(calls=4))
    with ledger.enforced():
        model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS))
        with pytest.raises(BudgetError, match="4 calls"):
            model.write(PROMPTS, rngs(3))
    assert ledger.total()["calls"] == 3
    assert model.in_flight == 0


def test_what_a_model_in_training_refuses(folders: dict[str, Path], tmp_path: Path) -> None:
    model = lm.trainable(f"hf:{folders['gpt2']}")
    with pytest.raises(UsageError, match="max_tokens has 203 tokens"):
        model.write(["a b"], rngs(1), max_tokens=200)
    with pytest.raises(UsageError, match="no texts"):
        model.evaluate([], [])
    with pytest.raises(UsageError, match="context to at most 64"):
        lm.trainable(f"hf:{folders['gpt2']}", context=256)
    with pytest.raises(UsageError, match="at least 1 token"):
        lm.trainable(f"hf:{folders['gpt2']}", context=0)
    with pytest.raises(UsageError, match=r"No token of .* begins with end='%%'"):
        _ = lm.trainable(f"hf:{folders['gpt2']}?end=%%").ends
    with pytest.raises(HunchError, match="do not match"):
        model.load_state_dict({})
    assert model.write([], []) == []


def test_without_peft_one_sentence_names_the_extra(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    lm.trainable(f"hf:{folders['gpt2']}")
    with pytest.raises(UsageError) as refused:
        lm.trainable("hf:anything?train=lora")
    assert str(refused.value) == f"Low-rank adapters need peft: {install('tune')}."


# ---- a new model over words -------------------------------------------------------------------------------


def test_a_text_and_its_beginning_share_one_unit_of_probability() -> None:
    model = new(seed=0, context=40)
    model.take(["go left"])
    everything = ["go", "left", "go go", "go left", "left go", "left left"]
    assert 0 < model.scores(PROMPTS[:1], [everything], ended=True)[0].exp().sum().item() < 1


def test_a_few_updates_raise_the_likelihood() -> None:
    model = new(seed=0, context=40)
    model.take([*PROMPTS, *TEXTS])
    learner = Learner(torch.optim.Adam(model.parameters(), lr=1e-3))
    for _ in range(30):
        learner.update(-torch.cat(model.scores(PROMPTS[:2], [TEXTS[:1], TEXTS[1:2]], ended=True)).mean())
    best = [int(own.argmax()) for own in model.scores(PROMPTS[:2], [TEXTS] * 2, ended=True)]
    assert best == [0, 1]


def test_a_long_prompt_loses_its_beginning() -> None:
    model = new(seed=0, context=40)
    model.take([*PROMPTS, *TEXTS])
    long = "mug " * 100 + PROMPTS[0]
    assert torch.equal(*(model.scores([prompt], [TEXTS])[0] for prompt in (long, "fridge " + long)))


def test_words_are_those_of_the_lexical_encoders_and_late_ones_are_unknown() -> None:
    model = new(seed=0, context=40)
    text = "Open the FRIDGE-2, isn't it? Größe 3.5 (a_b)\n>"
    model.take([text])
    assert list(model.words) == list(dict.fromkeys(words(text)))
    ids = model.model._tokens(text)
    assert ids == [2 + model.words.index(word) for word in words(text)]
    model.take(f"word{i}" for i in range(3000))
    assert len(model.words) == 2046
    assert model.model._tokens("Word0 word2999 new") == [2 + model.words.index("word0"), 0, 0]


def test_the_same_words_give_the_same_model_whatever_came_between() -> None:
    one, other = new(seed=3, context=40), new(seed=3, context=40)
    one.take(["go left", "open it"])
    other.take(["go left"])
    other.scores(["open it"], [["go left"]])
    other.take(["open it"])
    assert torch.equal(one.scores(["open it"], [["go left"]])[0], other.scores(["open it"], [["go left"]])[0])


def test_a_learner_restores_its_optimisers_without_sharing_their_tensors() -> None:
    def made() -> tuple[torch.Tensor, Learner]:
        weight = torch.nn.Parameter(torch.ones(3))
        return weight, Learner(torch.optim.Adam([weight], lr=0.1))

    (one, first), (other, second) = made(), made()
    first.update((one**2).sum())
    other.data.copy_(one.data)
    kept = first.state_dict()
    second.load_state_dict(kept)
    for _ in range(3):
        first.update((one**2).sum(), rate=0.01)
        second.update((other**2).sum(), rate=0.01)
    assert torch.equal(one, other)
