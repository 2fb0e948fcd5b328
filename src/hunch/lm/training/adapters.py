"""Low-rank adapters from the peft library: a small trained term for each frozen linear layer.

Source: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, ICLR 2022. The term is
(alpha / rank) B A x, with random A and B = 0 at first, so that an untrained adapter changes nothing. A and B
are 32-bit floats in models of 16 bits too, as in peft's own models: most steps of Adam are smaller than the
distance of two neighbouring numbers of 16 bits, and would be lost.

This module imports torch and transformers, so import it only where a model is made.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file
from transformers.pytorch_utils import Conv1D

from hunch.extras import library

NAME: Final = "default"
"""Name of the adapters within the network."""
CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
"""Names of the two files of a peft folder."""
PREFIX: Final = "base_model.model."
"""What peft writes before the name of each weight."""


def import_peft(why: str = "Low-rank adapters need peft") -> Any:
    """Import and return peft, or raise a UsageError that names the extra to install."""
    return library("peft", why, "tune")


class Adapters:
    """The adapters of every linear layer of a network's body, but not its head; other weights are frozen.

    Args:
        network: A network of the transformers library; it is changed in place.
        rank: Rank of the adapters.
        alpha: Scale of the adapters.
        seed: Seed of the random weights.

    Raises:
        HunchError: if peft is missing.
    """

    def __init__(self, network: Any, rank: int, alpha: float, seed: int) -> None:
        peft = import_peft()
        turned = any(isinstance(layer, Conv1D) for layer in network.modules())
        config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear", fan_in_fan_out=turned)
        self._tuner = peft.LoraModel(network, config, NAME)  # puts the names of the layers into the config
        self._config = config
        for weight in self._weights().values():
            weight.data = weight.data.float()
        chance = torch.Generator().manual_seed(seed)
        for layer in network.modules():
            if hasattr(layer, "lora_A"):  # the paper's Gaussian, from a generator of our own
                a = layer.lora_A[NAME].weight
                a.data.copy_(torch.randn(a.shape, generator=chance) / a.shape[1] ** 0.5)

    def _weights(self) -> dict[str, torch.nn.Parameter]:
        """Return the weights of the adapters by their names in the network."""
        named = self._tuner.model.named_parameters()
        return {name: weight for name, weight in named if f".{NAME}." in name}

    def merged(self) -> Any:
        """Return a copy of the network with the adapters added to its weights, in floats of 32 bits.

        Most of a small update is less than the distance of two neighbouring numbers of 16 bits.
        """
        return copy.deepcopy(self._tuner).float().merge_and_unload()

    def save(self, folder: Path, base: str) -> Path:
        """Save the adapters as a folder that peft loads, with :data:`CONFIG` and :data:`WEIGHTS`.

        Args:
            folder: Where to write; it is made.
            base: Name, folder or file of the model that the adapters belong to.
        """
        folder.mkdir(parents=True, exist_ok=True)
        config = copy.copy(self._config)
        config.base_model_name_or_path = base
        config.inference_mode = True
        if not self._tuner.model.config.is_encoder_decoder:
            config.task_type = "CAUSAL_LM"
        else:
            config.task_type = "SEQ_2_SEQ_LM"
        config.save_pretrained(str(folder))
        weights = {
            PREFIX + name.replace(f".{NAME}.", "."): weight.detach().contiguous()
            for name, weight in self._weights().items()
        }
        save_file(weights, str(folder / WEIGHTS), {"format": "pt"})
        return folder
