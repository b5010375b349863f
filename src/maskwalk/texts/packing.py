"""Puts trained models of text into a zoo: bfloat16 under xz, beside the models of walks."""

import hashlib
import json
import lzma
from pathlib import Path

import torch

from maskwalk.denoisers.pretrained import (
    ZOO,
    encode,
    load_pretrained,
    write,
    zoo_manifest,
)
from maskwalk.language.own import HELD_OUT, TOKENIZER


def pack(model: Path, name: str, corpus: str, zoo: Path) -> Path:
    """Adds the model in a directory as `name`; its tokenizer and passages as those of `corpus`.

    Models of one corpus share these two files.
    """
    found = load_pretrained(model)
    zoo.mkdir(parents=True, exist_ok=True)
    entry = {
        **_written(zoo / f"{name}.safetensors.xz", encode(found, torch.bfloat16)),
        "config": found.config.to_json(),
        **found.about,
        "tokenizer": _written(zoo / f"{corpus}.{TOKENIZER}.xz", (model / TOKENIZER).read_bytes()),
        "held_out": _written(zoo / f"{corpus}.{HELD_OUT}.xz", (model / HELD_OUT).read_bytes()),
    }
    manifest = {"format": ZOO, "models": {**zoo_manifest(zoo), name: entry}}
    write(zoo / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    return zoo / f"{name}.safetensors.xz"


def _written(path: Path, data: bytes) -> dict[str, str]:
    packed = lzma.compress(data, preset=9)
    write(path, packed)
    return {"file": path.name, "sha256": hashlib.sha256(packed).hexdigest()}
