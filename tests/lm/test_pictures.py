"""Messages with pictures: to servers, and to a small image-text model with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from server import Server
from tokenizer import save_tokenizer

from hunch import lm
from hunch.core import UsageError
from hunch.lm import Cached, Message, Sampling, Store
from hunch.lm.answers.archive import Archive
from hunch.lm.backends import seam
from hunch.lm.registry import build

tokenizers = pytest.importorskip("tokenizers")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("PIL")

RED, BLUE = (lm.picture(np.full((16, 16, 3), colour, np.uint8)) for colour in ([250, 0, 0], [0, 0, 250]))
SHORT = Sampling(max_tokens=6, stop=())
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def ask(*images: str) -> list[Message]:
    return [Message("system", "Look."), Message("user", "What is it?", images)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose tokenizer writes bytes."""
    return save_llava(tmp_path_factory.mktemp("llava"), "bytes")


def save_llava(place: Path, kind: str) -> Path:
    """A LLaVA with two layers of width 32 and 16 patches a picture."""
    save_tokenizer(place, kind)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    if kind == "metaspace":
        tokenizer.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
        )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    number = tokenizer.convert_tokens_to_ids("<image>")
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(7)
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(image_size=16, patch_size=4, **sizes),
        text_config=transformers.LlamaConfig(
            vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=2, initializer_range=0.2, **sizes
        ),
        image_token_id=number,
        image_seq_length=16,
    )
    network = transformers.LlavaForConditionalGeneration(config)
    for weight in network.parameters():
        weight.data *= 3
    network.config.hunch_evidence = "L0"
    network.generation_config.update(repetition_penalty=5.0, top_k=1, do_sample=True)
    network.save_pretrained(place)
    square = {"height": 16, "width": 16}
    transformers.LlavaProcessor(
        transformers.CLIPImageProcessorPil(size=square, crop_size=square),
        tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        image_token="<image>",
        num_additional_image_tokens=1,
    ).save_pretrained(place)
    return place


def test_pictures_are_data_urls(tmp_path: Path) -> None:
    assert RED.startswith("data:image/png;base64,")
    assert RED != BLUE
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0 and so on")
    assert lm.picture(tmp_path / "a.jpg").startswith("data:image/jpeg;base64,")
    for wrong in (b"text", "nowhere.png", np.zeros(3), None):
        with pytest.raises(UsageError):
            lm.picture(wrong)


def test_who_does_not_see_says_so(folders: dict[str, Path]) -> None:
    for spec in ("uniform", f"hf:{folders['gpt2']}"):
        model = lm.load(spec, cache=None)
        with pytest.raises(UsageError, match="cannot see pictures"):
            model.generate([ask(RED)])
        with pytest.raises(UsageError, match="cannot see pictures"):
            model.score([ask(RED)], [["a"]])
    with pytest.raises(UsageError, match="images of a message"):
        lm.load("uniform").generate([ask("http://example.org/a.png")])


def test_an_image_text_model_sees(folder: Path, tmp_path: Path) -> None:
    model = Cached(lm.load(f"hf:{folder}", cache=None).model, Store(tmp_path / "a.sqlite"))
    assert (model.verbs, model.evidence) == ({"generate", "score", "see"}, "L0")
    texts = model.generate([ask(RED), ask(BLUE), ask(), "What is it?"], 3, SHORT)
    assert texts[0] != texts[1]
    assert model.model.generate([ask(BLUE)], 2, SHORT, first=1)[0] == texts[1][1:]
    before = torch.get_rng_state()
    model.model.generate([ask(RED)], 1, SHORT)
    assert torch.equal(before, torch.get_rng_state())
    red, blue, again = (
        s.logprobs for s in model.score([ask(RED), ask(BLUE), ask(RED)], [["a mug", "look"]] * 3)
    )
    assert np.abs(red - blue).max() > 1e-3
    assert red.tobytes() == again.tobytes()
    assert Archive(tmp_path / "a.sqlite").export(tmp_path / "a.jsonl").written == 14
    replayed = lm.load(f"replay:{tmp_path / 'a.jsonl'}")
    assert replayed.generate([ask(RED), ask(BLUE)], 3, SHORT) == texts[:2]


def test_an_outline_of_an_image_text_model_says_the_same(folder: Path) -> None:
    """Its weights stay on the disk."""
    _, whole = build(f"hf:{folder}", {})
    _, outline = build(f"hf:{folder}", {}, outline=True)
    for name in ("name", "revision", "verbs", "evidence", "dim", "context", "parameters", "prompting"):
        assert getattr(outline, name) == getattr(whole, name), name
    assert outline.network.device.type == "meta"


def test_the_score_is_what_the_network_says(folder: Path) -> None:
    model = lm.load(f"hf:{folder}", cache=None).model
    scores = model.score([ask(RED)], [["a mug", "look"]])[0]
    processor = transformers.AutoProcessor.from_pretrained(folder)
    from hunch.lm.backends.seeing import opened

    prompt = "system: Look.user: <image>What is it?assistant:"
    for place, option in enumerate(("a mug", "look")):
        head, whole = (
            processor(text=text, images=[opened(RED)], return_tensors="pt")
            for text in (prompt, f"{prompt} {option}")
        )
        start = head["input_ids"].shape[1]
        with torch.inference_mode():
            logprobs = model.network(**whole).logits[0].log_softmax(-1)
        tail = whole["input_ids"][0, start:]
        total = sum(float(logprobs[start - 1 + i, token]) for i, token in enumerate(tail))
        assert scores.logprobs[place] == pytest.approx(total, abs=1e-4)


def test_neither_marks_nor_a_second_space_come_between(tmp_path: Path) -> None:
    """A tokenizer as LLaVA's, which begins every text with a mark and a space, and ends it with a mark."""
    model = lm.load(f"hf:{save_llava(tmp_path / 'llava', 'metaspace')}", cache=None).model
    whole = model.tokenizer("system: Look.user: What is it?assistant: take mug 3")["input_ids"][:-1]
    head = model._inputs(tuple(ask()))["input_ids"][0].tolist()
    assert head == whole[: len(head)]
    with torch.inference_mode():
        logprobs = model.network(input_ids=torch.tensor([whole])).logits[0].log_softmax(-1)
    total = sum(float(logprobs[at - 1, whole[at]]) for at in range(len(head), len(whole)))
    assert model.score([ask()], [["take mug 3"]])[0].logprobs[0] == pytest.approx(total, abs=1e-4)
    greedy = model.generate([ask()], 1, Sampling(max_tokens=4, temperature=0, stop=()))[0][0]
    best = int(logprobs[len(head) - 1].argmax())
    assert greedy.startswith(seam.continuation(model.tokenizer, head[-1], [best]).rstrip())


def test_servers_get_pictures(server: Server) -> None:
    blind = lm.load("openai:gpt2", cache=None, base_url=server.url)
    with pytest.raises(UsageError, match="cannot see pictures"):
        blind.generate([ask(RED)])
    model = lm.load("openai:gpt2?see=true", cache=None, base_url=server.url)
    model.generate([ask(RED)], sampling=SHORT)
    content = server.seen[-1][2]["messages"][1]["content"]
    assert content[0] == {"type": "image_url", "image_url": {"url": RED}}
    assert content[1] == {"type": "text", "text": "What is it?"}
    claude = lm.load("anthropic:gpt2?see=true", cache=None, base_url=server.url.removesuffix("/v1"))
    claude.generate([ask(BLUE)], sampling=SHORT)
    source = server.seen[-1][2]["messages"][0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": BLUE.partition(",")[2]}
    assert model.name == "openai:gpt2"
