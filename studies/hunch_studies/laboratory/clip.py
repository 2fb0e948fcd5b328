"""The small model with eyes: pictures of rooms and captions, and a CLIP that learns which belong together.

A scene is an 8 x 8 room of BabyAI with one or two things. A caption is one or two true sentences about it:
rows, columns, the heading, or how far the agent is from a thing. In a fifth of all pairs of an agent's cell
and a thing's cell, no scene is trained on; these are the unseen layouts. Every picture is seen in a skin of
its own: other strengths and mixtures of the colours, and noise.

The loss is that of Radford et al., "Learning Transferable Visual Models From Natural Language Supervision"
(ICML 2021): each picture finds its caption in the batch, and each caption its picture.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hunch.core import UsageError
from hunch.envs import make
from hunch.lm.backends.weights import CARD, quietly
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt
from hunch.runs.files import write_atomically
from hunch_studies.laboratory.pretrain import schedule
from hunch_studies.worlds.babyai.facts import FACING, SCHEMA, TARGET, at, faces, name_of, steps_from

if TYPE_CHECKING:
    from hunch.lm.training import Learner

COLOURS: Final = ("red", "green", "blue", "purple", "yellow", "grey")
KINDS: Final = ("ball", "box", "key")
PIXELS: Final = 64
PATCH: Final = 16
"""Pixels of the side of a patch, which is two cells. One of few patches stands out more than one of many."""
SPREAD: Final = 0.25
"""What pixels from 0 to 1 are divided by. Bare floor is nearly black, so that things stand out."""
HELD_OUT: Final = 5
"""One of so many pairs of cells is unseen."""
Pixels = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class ClipConfig:
    """Settings of the training."""

    updates: NonNegativeInt = 2000
    """Updates of the weights."""
    pool: PositiveInt = 8000
    """Scenes that are drawn once, and trained on in ever new skins."""
    batch: PositiveInt = 128
    """Pictures with captions per update."""
    width: PositiveInt = 64
    """Width of the hidden states of texts, and dimensions of the vectors."""
    seen: PositiveInt = 96
    """Width of the hidden states of pictures."""
    layers: PositiveInt = 2
    """Layers of each of both networks."""
    learning_rate: PositiveFloat = 4e-3
    """Maximum learning rate of AdamW."""
    warmup: NonNegativeInt = 100
    """Warm-up steps of the learning rate."""
    seed: NonNegativeInt = 0
    """Seed of weights, scenes and captions."""
    shuffled: bool = False
    """Give each picture the caption of another one: the control."""


class Scene(NamedTuple):
    """A room: its picture, (height, width, 3), the true sentences, and the facts if there is a red ball."""

    picture: Pixels
    sentences: tuple[str, ...]
    facts: dict[str, str]


def scenes(
    seed: str, n: int, unseen: bool = False, things: tuple[int, ...] = (1, 1, 2), whole: bool = False
) -> Iterator[Scene]:
    """Draw rooms, all of them of unseen layouts or none.

    Args:
        seed: The same seed gives the same scenes.
        n: Number of scenes.
        unseen: Draw only layouts that are not trained on: all pairs of the agent's cell and a thing's are.
        things: How many things there may be; a number that is named twice is twice as likely.
        whole: Pictures in the size in which they are drawn.
    """
    rng, inside = Random(seed), [(x, y) for x in range(1, 7) for y in range(1, 7)]
    while n:
        agent, *cells = rng.sample(inside, 1 + rng.choice(things))
        heading, names = rng.randrange(4), rng.sample(range(len(COLOURS) * len(KINDS)), len(cells))
        if rng.random() < 0.5:
            names[0] = 0  # the red ball, which most levels name, is in half of the scenes and more
        if len({*names}) == len(names) and all(_unseen(agent, cell) is unseen for cell in cells):
            n -= 1
            drawn = _scene(agent, heading, dict(zip(cells, names, strict=True)))
            yield drawn if whole else drawn._replace(picture=small(drawn.picture))


def unseen_states() -> Iterator[Scene]:
    """Draw every room with nothing but a red ball whose layout is not trained on."""
    inside = [(x, y) for x in range(1, 7) for y in range(1, 7)]
    for agent, ball in product(inside, inside):
        if agent != ball and _unseen(agent, ball):
            yield from (_scene(agent, heading, {ball: 0}) for heading in range(4))


def _unseen(agent: tuple[int, int], cell: tuple[int, int]) -> bool:
    return hashlib.sha256(repr((agent, cell)).encode()).digest()[0] % HELD_OUT == 0


def _scene(agent: tuple[int, int], heading: int, things: dict[tuple[int, int], int]) -> Scene:
    from minigrid.core.world_object import Ball, Box, Key

    level: Any = _level()
    for i, cell in enumerate(level.grid.grid):
        if cell is not None and cell.type != "wall":
            level.grid.grid[i] = None
    sentences = [at("agent", "column", agent[0]), at("agent", "row", agent[1]), faces(FACING[heading])]
    for cell, number in things.items():
        kind, colour = divmod(number, len(COLOURS))
        thing = (Ball, Box, Key)[kind](COLOURS[colour])
        level.grid.set(*cell, thing)
        away = abs(cell[0] - agent[0]) + abs(cell[1] - agent[1])
        name = name_of(thing)
        sentences += [at(name, "column", cell[0]), at(name, "row", cell[1]), steps_from(name, away)]
    level.agent_pos, level.agent_dir = agent, heading
    known = dict[str, str]()
    if ball := [cell for cell, number in things.items() if number == 0]:
        known = dict(zip(SCHEMA.fields, map(str, (*agent, FACING[heading], *ball[0])), strict=True))
    return Scene(level.get_frame(), tuple(sentences), known)


@cache
def _level() -> Any:
    env = make("hunch/BabyAI-GoToRedBallNoDists-v0", history=0)
    env.reset(seed=0)
    return env.unwrapped.level  # type: ignore[attr-defined]


def small(pixels: Pixels) -> Pixels:
    """Return a picture in the size that the model reads, (64, 64, 3), as its image processor does."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((PIXELS, PIXELS), Image.Resampling.BILINEAR))


def caption(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return one or two of a scene's sentences."""
    chosen = rng.choice(len(sentences), size=int(rng.integers(1, 3)), replace=False)
    return " ".join(sentences[i] for i in chosen)


def skinned(pixels: Any, rng: np.random.Generator) -> Any:
    """Return pictures in skins, colours weakened and mixed, and noise: (n, 3, 64, 64), values 0 to 1."""
    import torch

    n = len(pixels)
    mix = np.eye(3) * rng.uniform(0.6, 1.1, (n, 3, 1)) + rng.uniform(0, 0.15, (n, 3, 3))
    seen = torch.einsum("nij,njhw->nihw", torch.from_numpy(mix).float(), pixels)
    noise = torch.from_numpy(rng.standard_normal(seen.shape, dtype=np.float32))
    strength = torch.from_numpy(rng.uniform(0, 0.1, (n, 1, 1, 1))).float()
    return (seen + noise * strength).clamp(0, 1)


def words() -> Any:
    """Return the tokenizer: a token a word, with marks for begin, end and unknown words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    said = " ".join(
        [
            *(steps_from("x", 1), steps_from("x", 2), at("agent row column", "x", "x"), *map(faces, FACING)),
            *(*COLOURS, *KINDS, *map(str, range(13)), "there is no a next to and of"),
        ]
    )
    names = sorted({*said.lower().replace(".", " . ").split()} - {"x"})
    marks = ["<pad>", "<unknown>", "<begin>", "<end>"]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*marks, *names])}, unk_token="<unknown>"))
    raw.normalizer, raw.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(
        single="<begin> $A <end>", special_tokens=[("<begin>", 2), ("<end>", 3)]
    )
    named = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), marks, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=32, **named)


def build(config: ClipConfig, vocabulary: int) -> Any:
    """Make the two networks with random weights from torch's generator."""
    from transformers import CLIPConfig, CLIPModel

    def sizes(width: int) -> dict[str, int]:
        layers = {"num_hidden_layers": config.layers, "num_attention_heads": width // 16}
        return {**layers, "hidden_size": width, "intermediate_size": 2 * width}

    marks = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    network = CLIPModel(
        CLIPConfig(
            text_config={
                **sizes(config.width),
                **marks,
                "vocab_size": vocabulary,
                "max_position_embeddings": 32,
            },
            vision_config={**sizes(config.seen), "image_size": PIXELS, "patch_size": PATCH},
            projection_dim=config.width,
            hunch_evidence="L1",
        )
    )
    # The library's positions are faint beside the patches, so that rows and columns are learned late.
    network.vision_model.embeddings.position_embedding.weight.data *= 20
    network.text_model.embeddings.token_embedding.weight.data *= 20
    network.text_model.embeddings.position_embedding.weight.data *= 20
    return network


def _learner(network: Any, config: ClipConfig) -> Learner:
    """Muon for the matrices of the layers, AdamW for embeddings, norms and projections."""
    import torch

    from hunch.lm.training import Learner  # loads torch
    from hunch_studies.laboratory.muon import Muon  # loads torch

    towers = (network.text_model.encoder, network.vision_model.encoder)
    layers = [p for tower in towers for p in tower.parameters() if p.ndim == 2]
    known = {id(p) for p in layers}
    others = [p for p in network.parameters() if id(p) not in known]
    rate = config.learning_rate
    adam = torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)
    return Learner(Muon(layers, lr=rate), adam, limited=list(network.parameters()))


class Training:
    """Training in progress."""

    def __init__(self, config: ClipConfig) -> None:
        import torch

        self.config, self.step, self.tokenizer = config, 0, words()
        torch.manual_seed(config.seed)
        self.network = build(config, len(self.tokenizer))
        self.learner = _learner(self.network, config)
        rooms = list(scenes(f"scenes-{config.seed}", config.pool if config.updates else 1))
        self.pictures = torch.from_numpy(np.stack([room.picture for room in rooms])).permute(0, 3, 1, 2)
        self.sentences = [room.sentences for room in rooms]
        if config.shuffled:
            order = np.random.default_rng([config.seed, 1]).permutation(config.pool)
            self.sentences = [self.sentences[i] for i in order]

    def advance(self) -> float:
        """Make one update; return its loss."""
        c, rng = self.config, np.random.default_rng([self.config.seed, 2, self.step])
        drawn = rng.integers(c.pool, size=c.batch)
        texts = [caption(self.sentences[i], rng) for i in drawn]
        read = self.tokenizer(texts, padding=True, return_tensors="pt")
        pixels = skinned(self.pictures[drawn].float() / 255, rng) / SPREAD
        loss = self.network(
            input_ids=read["input_ids"],
            attention_mask=read["attention_mask"],
            pixel_values=pixels,
            return_loss=True,
        ).loss
        rate = c.learning_rate * schedule(self.step, self.step / c.updates, max(1, c.warmup))
        self.step += 1
        return self.learner.update(loss, rate)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume; batches depend on seed and step only."""
        parts = {"network": self.network.state_dict(), "optimisers": self.learner.state_dict()}
        return {**parts, "config": asdict(self.config), "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`.

        Raises:
            UsageError: if it is of other settings.
        """
        if state["config"] != asdict(self.config):
            raise UsageError("The folder holds training with other settings: choose another folder.")
        self.network.load_state_dict(state["network"])
        self.learner.load_state_dict(state["optimisers"])
        self.step = state["step"]


def held_out(network: Any, tokenizer: Any, n: int = 400, skin: bool = False) -> dict[str, float]:
    """Return how often each fact about the red ball is read from pictures of unseen layouts."""
    import torch

    rooms = [room for room in scenes("held out", 2 * n, unseen=True) if room.facts][:n]
    pixels = torch.from_numpy(np.stack([room.picture for room in rooms])).permute(0, 3, 1, 2).float() / 255
    pixels = skinned(pixels, np.random.default_rng(0)) if skin else pixels
    with torch.no_grad():
        seen = network.get_image_features(pixel_values=pixels / SPREAD).pooler_output
        right = {}
        for field, values in SCHEMA.fields.items():
            ids = tokenizer(list(values.values()), padding=True, return_tensors="pt")
            said = network.get_text_features(
                **{k: ids[k] for k in ("input_ids", "attention_mask")}
            ).pooler_output
            best = (seen @ torch.nn.functional.normalize(said, dim=-1).T).argmax(-1).tolist()
            names = list(values)
            right[field] = float(
                np.mean([names[i] == room.facts[field] for i, room in zip(best, rooms, strict=True)])
            )
    return right


def train(config: ClipConfig, out: Path, tell: Callable[[str], None], every: int = 200) -> Path:
    """Train, or resume training, and save the model in ``out / "model"`` with a card of held-out figures."""
    import torch

    out.mkdir(parents=True, exist_ok=True)
    training, kept, begun = Training(config), out / "checkpoint.pt", time.process_time()
    if kept.exists():
        training.load_state_dict(torch.load(kept, weights_only=True))
    losses: list[float] = []
    while training.step < config.updates:
        losses.append(training.advance())
        if training.step % every == 0 or training.step == config.updates:
            right = held_out(training.network, training.tokenizer, 200)
            shares = "  ".join(f"{name} {share:.2f}" for name, share in right.items())
            spent = f"{time.process_time() - begun:.0f} CPU s"
            tell(f"{training.step:>6} updates, {spent}: loss {np.mean(losses):.3f}  {shares}")
            buffer = io.BytesIO()
            torch.save(training.state_dict(), buffer)
            write_atomically(kept, buffer.getbuffer())
            losses = []
    return save(training, out / "model")


def save(training: Training, folder: Path) -> Path:
    """Write model, tokenizer, image processor and card; the weights in bfloat16."""
    import copy

    import torch
    from transformers import CLIPImageProcessorPil, CLIPProcessor

    square = {"height": PIXELS, "width": PIXELS}
    eyes = CLIPImageProcessorPil(
        size=square,
        crop_size=square,
        do_center_crop=False,
        resample=2,
        image_mean=[0.0] * 3,
        image_std=[SPREAD] * 3,
    )
    with quietly():
        copy.deepcopy(training.network).to(torch.bfloat16).save_pretrained(str(folder))
        CLIPProcessor(eyes, training.tokenizer).save_pretrained(str(folder))
    card = {"corpus": "clip", "games": "", "pictures": training.step * training.config.batch}
    card |= {"seed": training.config.seed, "shuffled": training.config.shuffled}
    right = held_out(training.network, training.tokenizer)
    card["held out"] = {name: round(share, 3) for name, share in right.items()}
    (folder / CARD).write_text(json.dumps(card) + "\n", encoding="utf-8")
    return folder


__all__ = ["TARGET", "ClipConfig", "Scene", "Training", "scenes", "train"]
