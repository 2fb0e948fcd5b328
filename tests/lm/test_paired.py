"""Encoders of texts and pictures, CLIP and SigLIP, with random weights."""

from __future__ import annotations

from base64 import standard_b64decode
from pathlib import Path

import numpy as np
import pytest
from tokenizer import save_tokenizer

from hunch import lm
from hunch.core import HunchError, Picture, State, UsageError
from hunch.lm import Cached, Message, Store
from hunch.lm.answers.archive import Archive
from hunch.roles.encoder.features import StateFeatures, TextTable

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")
pytest.importorskip("PIL")

RED, BLUE = (lm.picture(np.full((16, 16, 3), colour, np.uint8)) for colour in ([250, 0, 0], [0, 0, 250]))
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
EYES = {"image_size": 16, "patch_size": 4}


def seen(*images: str, text: str = "") -> list[Message]:
    return [Message("user", text, images)]


def save(place: Path, kind: str) -> Path:
    save_tokenizer(place, "bytes")
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    tokenizer.pad_token, tokenizer.model_max_length = "</s>", 24
    tokenizer.save_pretrained(place)
    words = {"vocab_size": len(tokenizer), "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    name = {"clip": "CLIP", "siglip": "Siglip"}[kind]
    made = getattr(transformers, f"{name}Config")
    torch.manual_seed(5)
    config = made(
        text_config={**SIZES, **words, "max_position_embeddings": 24}, vision_config={**SIZES, **EYES}
    )
    network = getattr(transformers, f"{name}Model")(config)
    network.config.hunch_evidence = "L0"
    network.save_pretrained(place)
    square = {"height": 16, "width": 16}
    more = {"crop_size": square} if kind == "clip" else {}
    getattr(transformers, f"{name}ImageProcessorPil")(size=square, **more).save_pretrained(place)
    return place


@pytest.fixture(scope="module", params=["clip", "siglip"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp(request.param), request.param)


def test_one_verb_embeds_texts_and_pictures(folder: Path, tmp_path: Path) -> None:
    model = Cached(lm.load(f"hf:{folder}", cache=None).model, Store(tmp_path / "a.sqlite"))
    assert (model.verbs, model.evidence) == ({"embed", "see"}, "L0")
    both = model.embed(["a mug", seen(RED), seen(BLUE), "look", seen(RED)])
    assert both.shape == (5, model.dim)
    assert np.allclose(np.linalg.norm(both, axis=1), 1)
    assert both[1].tobytes() == both[4].tobytes() == model.model.embed([seen(RED)])[0].tobytes()
    assert np.abs(both[1] - both[2]).max() > 1e-4
    assert np.abs(both[0] - both[3]).max() > 1e-4
    assert model.usage.calls == 4, "a picture that is asked twice is computed once"
    Archive(tmp_path / "a.sqlite").export(tmp_path / "a.jsonl")
    replayed = lm.load(f"replay:{tmp_path / 'a.jsonl'}")
    assert replayed.embed([seen(BLUE), "look"]).tobytes() == both[[2, 3]].tobytes()


def test_vectors_are_those_of_the_library(folder: Path) -> None:
    model = lm.load(f"hf:{folder}", cache=None).model
    network = transformers.AutoModel.from_pretrained(folder)
    eyes = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    from hunch.lm.backends.seeing import opened

    with torch.inference_mode():
        picture = network.get_image_features(**eyes(images=opened(RED), return_tensors="pt")).pooler_output[0]
        padding = False if network.config.model_type == "clip" else "max_length"
        ids = model.tokenizer(["a mug"], return_tensors="pt", padding=padding)["input_ids"]
        text = network.get_text_features(input_ids=ids).pooler_output[0]
    ours = model.embed([seen(RED), "a mug"])
    assert np.allclose(ours[0], (picture / picture.norm()).numpy(), atol=1e-5)
    assert np.allclose(ours[1], (text / text.norm()).numpy(), atol=1e-5)


def test_what_it_cannot_embed_is_refused(folder: Path) -> None:
    model = lm.load(f"hf:{folder}", cache=None)
    for wrong in (seen(), seen(RED, BLUE), seen(RED, text="What is it?")):
        with pytest.raises(UsageError, match="one picture and no text"):
            model.embed([wrong])
    with pytest.raises(UsageError, match="does not have the verb"):
        model.model.generate(["What is it?"])
    with pytest.raises(UsageError, match="cannot see pictures"):
        lm.load("bag-of-words").embed([seen(RED)])
    with pytest.raises(HunchError, match="A picture cannot be read"):
        model.embed([seen("data:image/png;base64,iVBORw0KGgo=")])


def test_its_pooling_cannot_be_chosen(folder: Path) -> None:
    with pytest.raises(UsageError, match="so pooling cannot be chosen"):
        lm.load(f"hf:{folder}?pooling=last")


def test_a_folder_without_an_image_processor_is_refused(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        if file.name != "preprocessor_config.json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(HunchError, match="holds no image processor"):
        lm.load(f"hf:{tmp_path}", cache=None)


def test_q_reads_the_picture_by_an_encoder_that_sees_and_the_text_by_another(folder: Path) -> None:
    rooms = [
        State("a room", "go", ("left", "right"), pictures=(Picture.read(standard_b64decode(own)),))
        for own in (url.partition(",")[2] for url in (RED, BLUE))
    ]
    eyes = StateFeatures(TextTable(lm.load(f"hf:{folder}", cache=None)))
    numbers = eyes.number(rooms)
    one, other = eyes.vectors[numbers]
    assert np.array_equal(one[eyes.table.dim : -eyes.table.dim], eyes.table.lm.embed([seen(RED)])[0])
    assert np.abs(one - other).max() > 1e-4
    again = StateFeatures(TextTable(eyes.table.lm))
    again.load_state_dict(eyes.state_dict())
    assert np.array_equal(again.vectors, eyes.vectors)
    blind = StateFeatures(TextTable(lm.load("bag-of-words")))
    numbers = blind.number(rooms)
    assert np.array_equal(*blind.vectors[numbers]), "the lines are all that it reads"
