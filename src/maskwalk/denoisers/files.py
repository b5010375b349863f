"""Models in files: a directory of your own, or a name from the zoo.

A directory holds `model.safetensors` (float32) and `model.json` (configuration, and what the model
was trained on). The zoo is one directory with a manifest; a zoo file is the weights in bfloat16, as
safetensors under xz (lossless, two thirds of the size), and is only used if its sha256 is the one
in the manifest. Nothing is ever unpickled.
"""

import hashlib
import json
import lzma
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from maskwalk.denoisers.network.weights import CONFIG, DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.reading import table, unpacked
from maskwalk.reading.models import ABOUT
from maskwalk.resources import (
    ZOO,
    checked,
    read_file,
    read_json,
    write_file,
    zoo_directory,
    zoo_manifest,
)

MODEL = "maskwalk-model/1"
DESCRIPTION = table({"config": CONFIG, "about": table(ABOUT)}, needs=("config", "about"))
SMALL = 2**26  # numbers that any machine has room for
SLACK = 2**20  # bytes of a weights file beyond its numbers: names, shapes, constants
PREFIX = "backbone."  # of the public MDLM checkpoints


@dataclass(frozen=True)
class Pretrained:
    """A model at rest: its shape, its weights (one flat row, float32), and what is known of it."""

    config: DDiTConfig
    weights: Float[Tensor, " size"]
    about: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Pretrained: {self.config.parameters:,} parameters>"

    def denoiser(self, **options: Any) -> NetworkDenoiser:
        """The model as a `Denoiser`; options as for `NetworkDenoiser`."""
        model = NetworkDenoiser(self.config, self.weights, **options)
        model.doubts = str(self.about.get("masking", "")).startswith("mistakes")
        return model


def encode(model: Pretrained, dtype: torch.dtype = torch.float32) -> bytes:
    """The weights as a safetensors file."""
    named = layout(model.config).named(model.weights[None].cpu())
    return save({name: value[0].to(dtype).contiguous() for name, value in named.items()})


def decode_weights(data: bytes, config: DDiTConfig, source: str | Path) -> Float[Tensor, " size"]:
    """The flat row in a safetensors file, also one of the public MDLM code."""
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, OverflowError, KeyError) as problem:
        raise MaskwalkError(
            f"{source} is not a complete safetensors file ({problem}); download or save it again."
        ) from None
    if config.parameters > max(len(data), SMALL):  # before as much memory is asked for
        raise MaskwalkError(
            f"{source} has {len(data):,} bytes, too few for the {config.parameters:,} numbers of "
            "the configuration beside it: one of the two is damaged, or of another model."
        )
    names = {name.removeprefix(PREFIX): value for name, value in tensors.items()}
    names.pop("rotary_emb.inv_freq", None)  # a constant there, a function of the shape here
    try:
        return layout(config).pack({name: value[None] for name, value in names.items()})[0]
    except MaskwalkError as problem:
        raise MaskwalkError(f"{source}: {problem}") from None


def save_pretrained(model: Pretrained, directory: str | Path) -> None:
    """Writes `model.safetensors` and `model.json`; the JSON last, as it makes the model visible."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    about = {"format": MODEL, "config": model.config.to_json(), "about": model.about}
    write_file(directory / "model.safetensors", encode(model))
    write_file(directory / "model.json", (json.dumps(about, indent=1) + "\n").encode())


def load_pretrained(source: str | Path) -> Pretrained:
    """The model in a directory, or the zoo's model of that name (`zoo:` in front is optional)."""
    directory = Path(source)
    if not directory.is_dir():
        return load_zoo(str(source).removeprefix("zoo:"))
    described = load_description(directory)
    config = _config(described["config"], directory / "model.json")
    file = directory / "model.safetensors"
    return Pretrained(config, decode_weights(read_file(file), config, file), described["about"])


def load_description(directory: Path) -> dict[str, Any]:
    """What `model.json` says: the configuration, and what the model was trained on."""
    if not (directory / "model.json").exists():
        raise MaskwalkError(
            f"{directory} holds no finished model: there is no model.json in it. If training was "
            "interrupted, go on with `maskwalk train … --resume`."
        )
    return read_json(directory / "model.json", MODEL, "a maskwalk model", DESCRIPTION)


def _config(values: Any, source: object) -> DDiTConfig:
    """The configuration in a file, or a sentence that names the file."""
    checked({"config": values}, table({"config": CONFIG}), source, "a maskwalk model")
    try:
        return DDiTConfig.from_json(values)
    except MaskwalkError as problem:
        raise MaskwalkError(f"{source}: {problem}") from None


def from_pretrained(source: str | Path, **options: Any) -> NetworkDenoiser:
    """The denoiser in a directory or of a zoo name; options as for `NetworkDenoiser`."""
    model = load_pretrained(source).denoiser(**options)
    if not options:  # a record may call it by this name
        name = str(source)
        model.source = name if Path(name).is_dir() else f"zoo:{name.removeprefix('zoo:')}"
    return model


def load_zoo(name: str, directory: Path | None = None) -> Pretrained:
    """The zoo's model of that name, after checking its hash."""
    directory = zoo_directory() if directory is None else directory
    models = zoo_manifest(directory)
    if name not in models:
        raise unknown(
            f"model (no directory of that name, nor in the zoo at {directory})", name, models
        )
    entry = models[name]
    file = directory / entry["file"]
    packed = read_file(file)
    digest = hashlib.sha256(packed).hexdigest()
    if digest != entry["sha256"]:
        raise MaskwalkError(
            f"{file} is not the file its manifest describes (sha256 {digest[:12]}…, expected "
            f"{entry['sha256'][:12]}…); fetch it again."
        )
    config = _config(entry["config"], f"{directory / 'manifest.json'} ({name})")
    weights = decode_weights(unpacked(packed, 4 * config.parameters + SLACK, file), config, file)
    return Pretrained(config, weights, {k: v for k, v in entry.items() if k != "config"})


def save_zoo(models: dict[str, Pretrained], directory: str | Path) -> None:
    """Writes models in bfloat16 under xz, and (last) the manifest with their hashes.

    Models that are in the directory already stay.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)

    def packed(model: Pretrained) -> bytes:
        return lzma.compress(encode(model, torch.bfloat16), preset=9)

    with ThreadPoolExecutor() as pool:  # lzma lets other threads run
        data = dict(zip(models, pool.map(packed, models.values())))
    entries = {}
    for name, model in models.items():
        file = f"{name}.safetensors.xz"
        write_file(directory / file, data[name])
        entries[name] = {
            "file": file,
            "sha256": hashlib.sha256(data[name]).hexdigest(),
            "config": model.config.to_json(),
            **model.about,
        }
    known = zoo_manifest(directory) if (directory / "manifest.json").exists() else {}
    manifest = {"format": ZOO, "models": {**known, **entries}}
    write_file(directory / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
