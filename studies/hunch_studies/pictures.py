"""Stored questions of the audition about pictures: rooms with a red ball, with their facts and distances.

python -m hunch_studies.pictures src/hunch/audition/pictures.json
"""

from __future__ import annotations

import io
import json
import sys
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any, Final

from PIL import Image

from hunch.runs.files import write_atomically
from hunch_studies.laboratory import clip
from hunch_studies.laboratory.tiles import actions_away
from hunch_studies.worlds.babyai.facts import SCHEMA, TARGET, steps_from

KEPT: Final = 200


def packed(pixels: clip.Pixels) -> str:
    """Return a picture of few colours as a small PNG file, in base64."""
    Image.fromarray(pixels).quantize(256).save(file := io.BytesIO(), "PNG", optimize=True)
    return b64encode(file.getvalue()).decode()


def questions() -> dict[str, Any]:
    """Draw rooms of layouts that no model is trained on."""
    rooms = Random("audition").sample(list(clip.unseen_states()), KEPT)
    return {
        "task": f"go to the {TARGET}",
        "near": steps_from(TARGET, 1),
        "schema": {name: dict(values) for name, values in SCHEMA.fields.items()},
        "seen": [
            {
                "png": packed(room.picture),
                "facts": [room.facts[name] for name in SCHEMA.fields],
                "left": actions_away(room.facts),
            }
            for room in rooms
        ],
    }


def laid_out(found: dict[str, Any]) -> str:
    """Return questions as JSON, each picture on a line of its own."""
    *head, _ = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    seen = ",\n".join(map(json.dumps, found["seen"]))
    return "{\n" + ",\n".join([*head, f'"seen": [\n{seen}\n]']) + "\n}\n"


if __name__ == "__main__":
    write_atomically(Path(sys.argv[1]), laid_out(questions()).encode())
