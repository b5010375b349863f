"""What a checkpoint's config.json says of it: the kind of model, its mask, whether logits shift.

mdlm      an MDLM checkpoint, read into this project's own network
masked    answers for every position: masked language models, and decoders that look both ways
          (LLaDA, Dream, or any decoder whose configuration says is_causal = false)
causal    answers for the next token only
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError, one_of
from maskwalk.resources import need

KINDS = ("mdlm", "masked", "causal")
SHIFTED = ("dream",)  # model types whose logits at i speak of i + 1
MASKS = {"llada": 126336, "dream": 151666}  # as public decoding code has them
WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """What must be known to load a checkpoint."""

    kind: str
    mask_id: int | None = None
    shifted: bool = False
    automatic: str = ""  # the Auto class of transformers that loads it
    remote: bool = False  # whether its network is Python code that comes with it


def describe_checkpoint(directory: Path, kind: str | None = None) -> Checkpoint:
    """The facts of the checkpoint in a directory; `kind` overrides the guess."""
    if kind is not None:
        one_of("kind", kind, KINDS)
    check_files(directory)
    config = read_config(directory)
    name = str(config.get("model_type", "")).lower()
    built = [str(a) for a in config.get("architectures") or ()]
    if kind == "mdlm" or (kind is None and (name == "mdlm" or (not config and not built))):
        return Checkpoint("mdlm")
    mask = config.get("mask_token_id", MASKS.get(name))
    mapped = config.get("auto_map") or {}
    reads_both_ways = config.get("is_causal") is False or mask is not None
    masked = _masked(name, built) or "AutoModelForMaskedLM" in mapped
    if kind is None:
        kind = "masked" if masked or reads_both_ways else "causal"
    automatic = "AutoModelForMaskedLM" if masked else "AutoModelForCausalLM"
    if mapped and automatic not in mapped:
        automatic = "AutoModel"
    return Checkpoint(kind, mask, name in SHIFTED, automatic, bool(mapped))


def _masked(name: str, built: list[str]) -> bool:
    """Whether transformers knows it as a masked language model, and it is not used as a decoder."""
    if any(a.endswith("ForMaskedLM") for a in built):
        return True
    known = need("transformers.models.auto.modeling_auto").MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return name in known and not any(a.endswith(("ForCausalLM", "LMHeadModel")) for a in built)


def read_config(directory: Path) -> dict[str, Any]:
    """config.json as a dictionary; empty if there is none."""
    file = directory / "config.json"
    if not file.exists():
        return {}
    try:
        return dict(json.loads(file.read_text()))
    except ValueError:
        raise MaskwalkError(f"{file} is not JSON; it may be cut short.") from None


def check_files(directory: Path) -> None:
    """Refuses directories that are not checkpoints, and those with pickled weights only."""
    if (directory / "model.json").exists():
        raise MaskwalkError(
            f"{directory} holds a model of walks, not of text: use it as "
            f"`maskwalk sample --denoiser {directory}`."
        )
    if any(directory.glob("*.safetensors")):
        return
    pickled = sorted(file.name for pattern in WEIGHTS for file in directory.glob(pattern))
    if pickled:
        raise MaskwalkError(
            f"{directory} has its weights only as {pickled[0]}, a pickle, which can run code when "
            "it is read; nothing is unpickled here. Take the safetensors version of the model, or "
            "convert it where you trust it (save_pretrained of transformers writes safetensors)."
        )
    raise MaskwalkError(f"{directory} holds no model: there is no .safetensors file in it.")
