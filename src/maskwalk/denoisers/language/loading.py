"""`hf:PATH_OR_NAME` to a `LanguageModel`: a directory, or a name on the Hugging Face hub.

Weights are read from safetensors only. What the checkpoint says of itself decides how it is loaded
(see `checkpoint`); every guess can be overruled by an argument. Code that comes with a checkpoint
runs only if `trust_remote_code` says so.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import torch

from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.checkpoint import Checkpoint, describe_checkpoint
from maskwalk.denoisers.language.masked import Masked
from maskwalk.denoisers.language.mdlm import load_mdlm
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.tokenizer import (
    around,
    check_vocabulary,
    forbidden_tokens,
    longest,
    read_tokenizer,
    token_of,
)
from maskwalk.errors import MaskwalkError, one_of
from maskwalk.resources import need, quiet

HF = "hf:"
FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*.py"]


def load(
    source: str | Path,
    *,
    tokenizer: str | Path | None = None,
    kind: str | None = None,
    mask: int | str | None = None,
    shifted: bool | None = None,
    end_of_text: int | str | None = None,
    rows: int = 1,
    cache: bool = True,
    device: str = "cpu",
    precision: str = "float32",
    trust_remote_code: bool = False,
) -> LanguageModel:
    """The model in a directory or of a hub name (`hf:` in front is optional).

    kind, mask and end_of_text (an id, or the token's text), shifted: overrule what the checkpoint
    says. rows: how many sequences run together; a text is the same in any batch at one value.
    precision: of the network's weights; float32 on a CPU.
    """
    one_of("precision", precision, ("float32", "float16", "bfloat16"))
    if precision != "float32" and device == "cpu":
        raise MaskwalkError(f"On a CPU the network runs in float32, not {precision}.")
    need()
    directory = find(source)
    known = describe_checkpoint(directory, kind)
    where = directory if tokenizer is None else find(tokenizer)
    reader = read_tokenizer(where, directory, trust_remote_code)
    if end_of_text is None:
        end_of_text = reader.eos_token_id
    stop = None if end_of_text is None else token_of(end_of_text, reader)
    if known.kind == "mdlm":
        return _mdlm(directory, reader, mask, stop, rows, device, precision)
    model, notes = _network(directory, known, device, precision, trust_remote_code)
    size = int(model.config.vocab_size)
    check_vocabulary(reader, size, directory)
    begin, end = around(reader)
    limit = longest(model.config, reader)
    if known.kind == "causal":
        first = begin[0] if begin else reader.bos_token_id
        first = reader.eos_token_id if first is None else first
        forbidden = forbidden_tokens(reader, size, stop)
        denoiser = Causal(model, begin=first, cache=cache, rows=rows, forbidden=forbidden)
        return LanguageModel(denoiser, reader, (), (), stop, limit, notes, device)
    stop = None if stop in end else stop  # the text's end is where the canvas ends
    mask_id = token_of(mask, reader) if mask is not None else reader.mask_token_id
    mask_id = known.mask_id if mask_id is None else mask_id
    if mask_id is None:
        raise MaskwalkError(
            f"Neither the tokenizer nor config.json of {directory} names a mask token; give its "
            "id or text: mask=… (--mask)."
        )
    masked = Masked(
        model,
        mask_id=mask_id,
        shifted=known.shifted if shifted is None else shifted,
        rows=rows,
        forbidden=forbidden_tokens(reader, size, stop),
    )
    return LanguageModel(masked, reader, begin, end, stop, limit, notes, device)


def find(source: str | Path) -> Path:
    """The directory itself, or where the hub's files of that name are (fetched if need be)."""
    name = str(source).removeprefix(HF)
    if Path(name).is_dir():
        return Path(name)
    hub = need("huggingface_hub")
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    try:
        with quiet():
            hub.utils.disable_progress_bars()
            return Path(hub.snapshot_download(name, allow_patterns=FILES, local_files_only=offline))
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
    stop: int | None,
    rows: int,
    device: str,
    precision: str,
) -> LanguageModel:
    mask_id = token_of(mask, reader) if mask is not None else reader.mask_token_id
    denoiser = load_mdlm(directory, mask_id=mask_id, rows=rows, device=device, precision=precision)
    check_vocabulary(reader, denoiser.vocab_size, directory)
    forbidden = {*forbidden_tokens(reader, denoiser.vocab_size, stop), *denoiser.forbidden}
    denoiser.forbidden = tuple(sorted(forbidden - {reader.cls_token_id, reader.sep_token_id}))
    return LanguageModel(
        denoiser, reader, end_of_text=stop, longest=denoiser.config.length, device=device
    )


def _network(
    directory: Path, known: Checkpoint, device: str, precision: str, trusted: bool
) -> tuple[Any, tuple[str, ...]]:
    """The model by `transformers`, whole, and what is odd about its file."""
    if known.remote and not trusted:
        raise MaskwalkError(
            f"The network of {directory} is Python code that comes with it. Read it, then allow it "
            "with trust_remote_code=True (--trust-remote-code); or load the model yourself and "
            "wrap it: maskwalk.Masked(model, mask_id=…)."
        )
    try:
        with quiet() as transformers:
            model, about = getattr(transformers, known.automatic).from_pretrained(
                directory,
                dtype=getattr(torch, precision),
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=trusted,
                output_loading_info=True,
            )
    except Exception as problem:  # nobody lists what a damaged or foreign checkpoint may raise
        why = " ".join(str(problem).split())[:300]
        raise MaskwalkError(
            f"{directory} cannot be loaded as a {known.kind} model: {why} Check that config.json "
            "and weights belong together, or say what it is: kind=… (--kind)."
        ) from None
    missing, extra = sorted(about["missing_keys"]), sorted(about["unexpected_keys"])
    if missing:
        raise MaskwalkError(
            f"{directory} lacks {missing[0]} ({len(missing)} weights in all), which would be left "
            "random: this is not a whole model of the kind its config.json describes."
        )
    notes = [f"{len(extra)} weights of the file are not used, such as {extra[0]}"] if extra else []
    return model.to(device), tuple(notes)


def weights_hash(directory: Path) -> str:
    """What tells models in directories of one name apart: the content of their weights."""
    digest = hashlib.sha256()
    for file in sorted(directory.glob("*.safetensors")):
        with file.open("rb") as data:
            digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()
