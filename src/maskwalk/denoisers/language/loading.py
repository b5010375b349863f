"""`hf:PATH_OR_NAME` to a `LanguageModel`: a directory, or a name on the Hugging Face hub.

Weights are read from safetensors only. What the checkpoint says of itself decides how it is loaded
(see `checkpoint`); every guess can be overruled by an argument. Code that comes with a checkpoint
runs only if `trust_remote_code` says so; LLaDA and Dream need none (see `native`). Before it is
given out, a model is asked a few questions that a wrong one does not answer (see `selftest`).
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from maskwalk.denoisers.language.base import TextDenoiser
from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.checkpoint import Checkpoint, describe_checkpoint
from maskwalk.denoisers.language.gguf import gguf_in, unpacked
from maskwalk.denoisers.language.masked import Masked, place_of
from maskwalk.denoisers.language.mdlm import load_mdlm
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.networks import native_network, network_of
from maskwalk.denoisers.language.selftest import self_test
from maskwalk.denoisers.language.streaming import DeviceMap
from maskwalk.denoisers.language.tokenizer import (
    Ends,
    around,
    check_vocabulary,
    ends_of,
    forbidden_tokens,
    longest,
    read_tokenizer,
    token_of,
)
from maskwalk.errors import MaskwalkError, memory_ran_out, one_of
from maskwalk.resources import need, quiet, zoo_manifest

HF = "hf:"
READERS = ("*.json", "*.txt", "*.model", "*.jinja")  # tokenizers and settings
FILES = (*READERS, "*.safetensors", "*.py")


def load(
    source: str | Path,
    *,
    tokenizer: str | Path | None = None,
    kind: str | None = None,
    mask: int | str | None = None,
    shifted: bool | None = None,
    end_of_text: int | str | Sequence[int | str] | None = None,
    rows: int = 1,
    cache: bool = True,
    device: str = "cpu",
    precision: str = "float32",
    device_map: DeviceMap | None = None,
    check: bool = True,
    trust_remote_code: bool = False,
) -> LanguageModel:
    """The model in a directory or of a hub name (`hf:` in front is optional).

    kind, mask and end_of_text (an id, or the token's text; several are several ends), shifted:
    overrule what the checkpoint says. rows: how many sequences run together; a text is the same in
    any batch at one value. precision: of the network's weights; float32 on a CPU. device_map:
    "auto" spreads a large model over all accelerators (needs the package accelerate). check:
    whether to ask it a few questions.
    """
    one_of("precision", precision, ("float32", "float16", "bfloat16"))
    if precision != "float32" and device == "cpu":
        raise MaskwalkError(f"On a CPU the network runs in float32, not {precision}.")
    need()
    directory = find(source)
    known = describe_checkpoint(directory, kind)
    if known.kind == "mdlm" and device_map is not None:
        raise MaskwalkError(
            f"{directory} is an MDLM: its network here lies on one device and has no device_map; "
            "leave it out (--device says which)."
        )
    where = directory if tokenizer is None else find(tokenizer)
    reader = read_tokenizer(where, directory, trust_remote_code)
    ends = ends_of(end_of_text, reader, directory)
    try:
        if known.kind == "mdlm":
            model = _mdlm(directory, reader, mask, ends, rows, device, precision)
        else:
            network, notes = (native_network if known.native else network_of)(
                directory, known, device, precision, device_map, trust_remote_code
            )
            check_vocabulary(reader, int(network.config.vocab_size), directory)
            if known.kind == "causal":
                model = _causal(network, reader, ends, rows, cache)
            else:
                told = known.shifted if shifted is None else shifted
                mask_id = mask_of(mask, reader, known, directory)
                model = _masked(network, reader, mask_id, told, ends, rows)
            model = replace(model, notes=notes)
        if check and isinstance(model.denoiser, TextDenoiser):
            self_test(model.denoiser, directory, model.device)
    except MaskwalkError:
        raise
    except Exception as problem:  # of a network that is called in a way its authors did not mean
        if memory_ran_out(problem):
            raise
        why = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
        raise MaskwalkError(
            f"{directory} was read as a {known.kind} model, which then failed ({why}). Say what it "
            "is (--kind), or load it yourself and wrap it: maskwalk.Masked(model, mask_id=…)."
        ) from None
    return model


def _causal(network: Any, reader: Any, ends: Ends, rows: int, cache: bool) -> LanguageModel:
    begin, _ = around(reader)
    first = begin[0] if begin else reader.bos_token_id
    first = reader.eos_token_id if first is None else first
    never = forbidden_tokens(reader, int(network.config.vocab_size), ends)
    denoiser = Causal(
        network, begin=first, adds=bool(begin), cache=cache, rows=rows, forbidden=never
    )
    limit = longest(network.config, reader)
    where, stop = str(place_of(network)), ends[0] if ends else None
    return LanguageModel(denoiser, reader, (), (), stop, limit, device=where, more_ends=ends[1:])


def _masked(
    network: Any, reader: Any, mask_id: int, shifted: bool, ends: Ends, rows: int
) -> LanguageModel:
    begin, end = around(reader)
    ends = tuple(stop for stop in ends if stop not in end)  # there the canvas ends
    never = forbidden_tokens(reader, int(network.config.vocab_size), ends)
    denoiser = Masked(network, mask_id=mask_id, shifted=shifted, rows=rows, forbidden=never)
    limit = longest(network.config, reader)
    where, stop = str(place_of(network)), ends[0] if ends else None
    return LanguageModel(
        denoiser, reader, begin, end, stop, limit, device=where, more_ends=ends[1:]
    )


def mask_of(mask: int | str | None, reader: Any, known: Checkpoint, directory: Path) -> int:
    """The mask's id: what was said, or what tokenizer and config.json agree on."""
    if mask is not None:
        return token_of(mask, reader)
    named = {reader.mask_token_id, known.mask_id} - {None}
    if len(named) > 1:
        raise MaskwalkError(
            f"The tokenizer of {directory} names {reader.mask_token_id} as the mask, its "
            f"config.json {known.mask_id}; say which one it was trained with: mask=… (--mask)."
        )
    if not named:
        raise MaskwalkError(
            f"Neither the tokenizer nor config.json of {directory} names a mask token; give its "
            "id or text: mask=… (--mask)."
        )
    return int(named.pop())


def find(source: str | Path) -> Path:
    """The directory itself, or where the hub's files of that name are (fetched if need be);
    NAME@REVISION is a branch, a tag or a commit."""
    name = str(source).removeprefix(HF)
    if name.startswith("zoo:"):
        text = "tokenizer" in zoo_manifest().get(name.removeprefix("zoo:"), {})
        how = "load_books" if text else "from_pretrained"
        raise MaskwalkError(
            f"{name} is a model of the zoo, not a checkpoint: maskwalk.{how}({name!r}) loads it."
        )
    file = gguf_in(Path(name))
    if file is not None:
        return unpacked(file)
    if Path(name).is_dir():
        return Path(name)
    hub = need("huggingface_hub")
    where, _, revision = name.partition("@")
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    try:
        with quiet():
            hub.utils.disable_progress_bars()
            told = {"allow_patterns": list(FILES), "local_files_only": offline}
            return Path(hub.snapshot_download(where, revision=revision or None, **told))
    except Exception as problem:  # of the network, of the hub, of the name: all mean the same here
        why = "HF_HUB_OFFLINE is set" if offline else str(problem).strip().split("\n")[0]
        raise MaskwalkError(
            f"There is no directory {name!r}, and no model of that name could be had from the "
            f"Hugging Face hub ({why}). Give the path of a downloaded checkpoint, or go online."
        ) from None


def _mdlm(
    directory: Path,
    reader: Any,
    mask: int | str | None,
    ends: Ends,
    rows: int,
    device: str,
    precision: str,
) -> LanguageModel:
    mask_id = token_of(mask, reader) if mask is not None else reader.mask_token_id
    denoiser = load_mdlm(directory, mask_id=mask_id, rows=rows, device=device, precision=precision)
    check_vocabulary(reader, denoiser.vocab_size, directory)
    forbidden = {*forbidden_tokens(reader, denoiser.vocab_size, ends), *denoiser.forbidden}
    denoiser.forbidden = tuple(sorted(forbidden - {reader.cls_token_id, reader.sep_token_id}))
    return LanguageModel(
        denoiser,
        reader,
        end_of_text=ends[0] if ends else None,
        longest=denoiser.config.length,
        device=device,
        wrapped=True,
        more_ends=ends[1:],
    )


def content_hash(files: Iterable[Path]) -> str:
    """What tells models in directories of one name apart: the names and content of their files."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as data:
            content = hashlib.file_digest(data, "sha256").digest()
        digest.update(file.name.encode() + b"\0" + content)
    return digest.hexdigest()


def read_of(directory: Path, kinds: Sequence[str] = FILES) -> list[Path]:
    """The files in a directory that a model and its tokenizer are made of."""
    return sorted({file for kind in kinds for file in directory.glob(kind) if file.is_file()})
