"""What a checkpoint's config.json says of it: the kind of model, its mask, whether logits shift.

mdlm      an MDLM checkpoint, read into this project's own network
masked    answers for every position: masked language models, and decoders that look both ways
          (LLaDA, Dream, or any decoder whose configuration says is_causal = false)
causal    answers for the next token only
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from maskwalk.denoisers.files import PREFIX
from maskwalk.denoisers.language.native import NATIVE, Native
from maskwalk.errors import MaskwalkError, one_of
from maskwalk.reading import Wrong, flag, json_value, listed, maybe, table, text, whole
from maskwalk.resources import need, read_file

MDLM_NAMES = ("vocab_embed.embedding", "sigma_map.mlp.0.weight")
KINDS = ("mdlm", "masked", "causal")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "n_blocks", "encoder_layers")
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "hidden_dim")
CONFIG = table(
    {
        "model_type": text(),
        "architectures": maybe(listed("names", text(), 100)),
        "mask_token_id": maybe(whole(0)),
        "auto_map": maybe(table({})),
        "is_causal": maybe(flag),
        "time_conditioning": maybe(flag),
        **dict.fromkeys(LAYERS, maybe(whole(1, 1_000))),
        **dict.fromkeys(WIDTHS, maybe(whole(1, 1_000_000))),
        **dict.fromkeys(("n_heads", "model_length", "vocab_size"), maybe(whole(1, 100_000_000))),
    },
    what="a table of settings",
)
WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """What must be known to load a checkpoint."""

    kind: str
    mask_id: int | None = None
    shifted: bool = False
    automatic: str = ""  # the Auto class of transformers that loads it
    remote: bool = False  # whether its network is Python code that comes with it
    native: Native | None = None  # whether it is a known network under other names


def describe_checkpoint(directory: Path, kind: str | None = None) -> Checkpoint:
    """The facts of the checkpoint in a directory; `kind` overrides the guess."""
    if kind is not None:
        one_of("kind", kind, KINDS)
    check_files(directory)
    config = read_config(directory)
    name = str(config.get("model_type", "")).lower()
    built = [str(a) for a in config.get("architectures") or ()]
    if kind is None and (name == "mdlm" or not config or (not name and has_mdlm_names(directory))):
        kind = "mdlm"
    if kind == "mdlm":
        return Checkpoint("mdlm")
    mask = config.get("mask_token_id")
    if name in NATIVE and kind in (None, "masked"):
        native = NATIVE[name]
        mask = native.mask_id if mask is None else mask
        return Checkpoint("masked", mask, native.shifted, native=native)
    mapped = config.get("auto_map") or {}
    reads_both_ways = config.get("is_causal") is False or mask is not None
    masked = _masked(name, built) or "AutoModelForMaskedLM" in mapped
    if kind is None:
        kind = "masked" if masked or reads_both_ways else "causal"
    automatic = "AutoModelForMaskedLM" if masked else "AutoModelForCausalLM"
    if mapped and automatic not in mapped:
        automatic = "AutoModel"
    return Checkpoint(kind, mask, False, automatic, bool(mapped))


def has_mdlm_names(directory: Path) -> bool:
    """Whether the weights in a directory have the names of MDLM's network."""
    names: set[str] = set()
    for file in directory.glob("*.safetensors"):
        try:
            with safe_open(file, framework="pt") as part:
                names |= {name.removeprefix(PREFIX) for name in part.keys()}  # noqa: SIM118
        except (SafetensorError, ValueError, OverflowError, OSError):
            return False  # whoever reads it says what is wrong
    return names.issuperset(MDLM_NAMES)


def _masked(name: str, built: list[str]) -> bool:
    """Whether transformers knows it as a masked language model, and it is not used as a decoder."""
    if any(a.endswith("ForMaskedLM") for a in built):
        return True
    known = need("transformers.models.auto.modeling_auto").MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return name in known and not any(a.endswith(("ForCausalLM", "LMHeadModel")) for a in built)


def read_config(directory: Path) -> dict[str, Any]:
    """config.json as a dictionary; empty if there is none. Its sizes are those of its weights."""
    file = directory / "config.json"
    if not file.exists():
        return {}
    try:
        config: dict[str, Any] = json_value(read_file(file))
        CONFIG(config)
    except Wrong as wrong:
        raise MaskwalkError(
            f"{file} describes no model: {wrong.told()}; it may be cut short or edited."
        ) from None
    _check_sizes(config, file)
    return config


def _check_sizes(config: dict[str, Any], file: Path) -> None:
    """Refuses what cannot be the network of these weights, before it is built."""
    weights = sum(part.stat().st_size for part in file.parent.glob("*.safetensors"))
    layers, width, tokens = (
        max((config.get(name) or 0 for name in names), default=0)
        for names in (LAYERS, WIDTHS, ("vocab_size",))
    )
    if max(layers * width * width, tokens * width) > 8 * weights + 2**20:
        raise MaskwalkError(
            f"{file} describes {layers:,} layers of width {width:,} and {tokens:,} tokens, and the "
            f"weights beside it have {weights:,} bytes: they do not belong together."
        )


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
            f"read the weights alone: maskwalk convert {directory} NEW_FOLDER."
        )
    raise MaskwalkError(
        f"{directory} holds no model: there is no .safetensors file in it. (If it came from the "
        "hub, its weights may be pickles, which are not fetched: download them and run maskwalk "
        "convert.)"
    )
