"""Weights in a pickle to safetensors, without running what the pickle says.

    maskwalk convert last.ckpt runs/mdlm --tokenizer gpt2-folder      a Lightning checkpoint of MDLM
    maskwalk convert folder-with-pytorch_model.bin runs/bert          a folder of transformers

Files are read by torch's weights-only reader, which makes tensors and plain containers and nothing
else. A file that names other classes (a configuration, a tokenizer, as Lightning keeps them) is
refused by their names; with `shells` each becomes an empty object of no behaviour, and still
nothing of theirs is imported or run.

Of a Lightning checkpoint the moving average is taken, as the public code does when it samples: its
tensors come without names, in the order of the network's parameters, and must fit them one by one.

Source: the layout of the checkpoints, kuleshov-group/mdlm c112c52 (diffusion.py, models/ema.py).
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from maskwalk.denoisers.files import PREFIX
from maskwalk.denoisers.language.mdlm import FREQUENCIES, settings_of, shape_of
from maskwalk.errors import MaskwalkError, memory_ran_out

PICKLED = ("pytorch_model*.bin", "*.ckpt", "*.pt", "*.pth")
COPIED = ("*.json", "*.txt", "*.model", "*.jinja")


@dataclass(frozen=True)
class Converted:
    """What was written."""

    directory: Path
    tensors: int
    notes: tuple[str, ...] = ()


class Shell:
    """In place of an object whose class is not imported: holds what was in it, and does nothing."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.state = given, named

    def __setstate__(self, state: Any) -> None:
        self.given, self.state = (), state


def convert(
    source: str | Path,
    target: str | Path,
    *,
    tokenizer: str | Path | None = None,
    ema: bool = True,
    shells: bool = False,
) -> Converted:
    """Writes the model in a pickled file or folder as safetensors into `target`."""
    source, target = Path(source), Path(target)
    files = [source]
    if source.is_dir():
        files = sorted({file for pattern in PICKLED for file in source.glob(pattern)})
        shards = [file for file in files if file.name.startswith("pytorch_model")]
        files = shards or files[:1]
    if not files or not files[0].is_file():
        raise MaskwalkError(f"{source} holds no pickled weights (.bin, .ckpt, .pt, .pth).")
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise MaskwalkError(f"{target} is not empty; name a new directory.")
    read = [read_pickled(file, shells) for file in files]
    notes: list[str] = []
    if "state_dict" in read[0]:
        tensors, about = lightning(read[0], files[0], ema, notes)
    else:
        tensors = {name: value for part in read for name, value in part.items()}
        about = None
        odd = [name for name, value in tensors.items() if not isinstance(value, Tensor)]
        if odd or not tensors:
            what = f"{odd[0]} is a {type(tensors[odd[0]]).__name__}" if odd else "it is empty"
            raise MaskwalkError(f"{files[0]} is no table of weights: {what}.")
    target.mkdir(parents=True, exist_ok=True)
    for pattern in COPIED if source.is_dir() else ():
        for file in source.glob(pattern):
            if "index" not in file.name:
                shutil.copyfile(file, target / file.name)
    _copy_tokenizer(tokenizer, target)
    clean = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
    save_file(clean, target / "model.safetensors", {"format": "pt"})
    if about is not None:
        (target / "config.json").write_text(json.dumps(about, indent=2))
    elif not (target / "config.json").exists():
        notes.append("there is no config.json; write one, or say --kind when it is loaded")
    return Converted(target, len(clean), tuple(notes))


def _copy_tokenizer(tokenizer: str | Path | None, target: Path) -> None:
    if tokenizer is None:
        return
    place = Path(tokenizer)
    files = [place] if place.is_file() else [f for p in COPIED for f in place.glob(p)]
    found = [file for file in files if file.name != "config.json"]
    if not found:
        raise MaskwalkError(f"{place} holds no tokenizer; give its folder, or its vocabulary file.")
    for file in found:
        shutil.copyfile(file, target / file.name)


def read_pickled(file: Path, shells: bool) -> dict[str, Any]:
    """What a pickled file holds, by torch's weights-only reader; a sentence if it refuses."""
    try:
        names = get_unsafe_globals_in_checkpoint(file)
        foreign = sorted(names, key=lambda name: (name.startswith("builtins."), name))
    except Exception:  # the old format, or no such file: the reader says what it is
        foreign = []
    if foreign and not shells:
        raise MaskwalkError(
            f"{file} names classes that are not weights ({', '.join(foreign[:3])}"
            f"{', …' if len(foreign) > 3 else ''}), which would be run to read it. Say --shells "
            "to read each as an empty object (nothing of theirs is imported), or save the weights "
            "alone where you trust the file: torch.save({'state_dict': …, 'ema': …}, 'new.ckpt')."
        )
    try:
        with _as_shells(foreign):
            found = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as problem:  # of a damaged file, or one that does more than hold weights
        if memory_ran_out(problem):
            raise
        parts = [part for part in str(problem).split("\n\n") if part.strip()]
        told = parts[1] if len(parts) > 2 else str(problem)  # between what torch says every time
        why = " ".join(told.rpartition("WeightsUnpickler error:")[2].split())[:200]
        raise MaskwalkError(
            f"{file} cannot be read as weights alone ({why}). Nothing of it was run."
        ) from None
    if not isinstance(found, dict):
        raise MaskwalkError(f"{file} holds a {type(found).__name__}, not a table of weights.")
    return found


@contextmanager
def _as_shells(names: list[str]) -> Iterator[None]:
    """While it lasts, the weights-only reader takes these names for classes of empty objects."""
    with safe_globals([(type("Shell", (Shell,), {}), name) for name in names]):
        yield


def lightning(
    read: dict[str, Any], file: Path, ema: bool, notes: list[str]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, config.json) of a Lightning checkpoint of MDLM, its moving average applied."""
    state = read["state_dict"]
    if not isinstance(state, dict):
        raise MaskwalkError(f"{file}: its state_dict is no table of weights.")
    named = {name.removeprefix(PREFIX): value for name, value in state.items() if PREFIX in name}
    if not named:
        raise MaskwalkError(
            f"{file} has no weights named {PREFIX}*: only Lightning checkpoints of MDLM are read."
        )
    trained = [name for name in named if name != FREQUENCIES]
    if ema:
        named |= dict(zip(trained, _averaged(read.get("ema"), [named[n] for n in trained], file)))
        notes.append("the moving average of the weights was taken")
    said = settings_of(_plain(read.get("hyper_parameters")))
    frequencies = named.get(FREQUENCIES)
    rest = {name: value for name, value in named.items() if name != FREQUENCIES}
    shape = shape_of(rest, frequencies, said, file)
    about = {"model_type": "mdlm", "architectures": ["MDLM"], "vocab_size": shape.rows}
    about |= {"hidden_dim": shape.hidden, "cond_dim": shape.cond, "n_blocks": shape.blocks}
    about |= {"n_heads": shape.heads, "model_length": shape.length, "time_conditioning": False}
    return {f"{PREFIX}{name}": value for name, value in named.items()}, about


def _averaged(ema: Any, weights: list[Tensor], file: Path) -> list[Tensor]:
    """The moving average's tensors, checked against the weights they belong to."""
    shadow = ema.get("shadow_params") if isinstance(ema, dict) else None
    if not isinstance(shadow, list):
        raise MaskwalkError(f"{file} holds no moving average; say --no-ema to take its weights.")
    fits = len(shadow) >= len(weights) and all(
        isinstance(s, Tensor) and s.shape == w.shape for s, w in zip(shadow, weights)
    )
    if not fits:
        raise MaskwalkError(
            f"{file}: its moving average has other shapes than its weights; say --no-ema to take "
            "the weights themselves."
        )
    return shadow[: len(weights)]


def _plain(value: Any) -> Any:
    """Settings as plain tables: shells of a configuration are opened, other shells are None."""
    if isinstance(value, Shell):
        state = value.state if isinstance(value.state, dict) else {}
        inner = state.get("_content", state.get("_val"))
        return _plain(inner) if "_content" in state or "_val" in state else None
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value if isinstance(value, str | int | float | bool | list) else None
