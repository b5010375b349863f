"""Puts trained models of text into a zoo: bfloat16 under xz, beside the models of walks."""

import hashlib
import io
import json
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskwalk.denoisers.files import encode, load_pretrained
from maskwalk.denoisers.language.books import is_books
from maskwalk.errors import MaskwalkError
from maskwalk.resources import ZOO, read_file, write_file, zoo_manifest
from maskwalk.worlds.text.passages import HELD_OUT, TOKENIZER, read_tokens

PASSAGES = 1024  # held-out passages that a zoo carries


def pack(model: Path, name: str, corpus: str, zoo: Path) -> Path:
    """Adds the model in a directory as `name`; its tokenizer and passages as those of `corpus`.

    Models of one corpus share these two files.
    """
    for what, word in (("name", name), ("corpus", corpus)):
        if not re.fullmatch(r"\w[\w.-]*", word, re.ASCII):
            raise MaskwalkError(
                f"--{what} {word!r} cannot be part of a file's name: letters, digits, '_', '-' and "
                "'.', a letter or digit first, such as books_mdm."
            )
    if not is_books(model):
        raise MaskwalkError(f"{model} is not a directory that `maskwalk text train` wrote.")
    network = load_pretrained(model)
    others = {key: entry for key, entry in zoo_manifest(zoo).items() if key != name}
    shared = {TOKENIZER: (model / TOKENIZER).read_bytes(), HELD_OUT: _some(model / HELD_OUT)}
    for file, data in shared.items():
        packed, used = f"{corpus}.{file}.xz", lzma.compress(data, preset=9)
        sharing = [key for key, e in others.items() if packed in _files(e)]
        if sharing and (zoo / packed).read_bytes() != used:
            raise MaskwalkError(
                f"{sharing[0]} has another {file} under the corpus name {corpus!r}; choose another "
                "name for this corpus (--corpus)."
            )
    zoo.mkdir(parents=True, exist_ok=True)
    entry = {
        **_written(zoo / f"{name}.safetensors.xz", encode(network, torch.bfloat16)),
        "config": network.config.to_json(),
        **network.about,
        "tokenizer": _written(zoo / f"{corpus}.{TOKENIZER}.xz", shared[TOKENIZER]),
        "held_out": _written(zoo / f"{corpus}.{HELD_OUT}.xz", shared[HELD_OUT]),
    }
    manifest = {"format": ZOO, "models": {**zoo_manifest(zoo), name: entry}}
    write_file(zoo / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    return zoo / f"{name}.safetensors.xz"


def _some(passages: Path) -> bytes:
    """The first of a model's held-out passages, which lie in random order."""
    file = io.BytesIO()
    np.save(file, read_tokens(read_file(passages), passages, 2)[:PASSAGES])
    return file.getvalue()


def _files(entry: dict[str, Any]) -> set[str]:
    return {entry[key]["file"] for key in ("tokenizer", "held_out") if key in entry}


def _written(path: Path, data: bytes) -> dict[str, str]:
    packed = lzma.compress(data, preset=9)
    write_file(path, packed)
    return {"file": path.name, "sha256": hashlib.sha256(packed).hexdigest()}
