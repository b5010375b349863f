"""GGUF files, as llama.cpp keeps models, written out as `transformers` reads them.

    hf:path/to/model.gguf      or a folder that holds one and no safetensors

Read are the plain Llama and Qwen2, and the two diffusion models that llama.cpp knows, LLaDA (a
Llama there too) and Dream (a Qwen2). Quantised weights are multiplied out to float32, once, into
the cache, a gigabyte at a time. `transformers` reads some GGUF files too, but wants `accelerate`
for it, takes three times as long, and knows neither diffusion model.

llama.cpp rotates neighbouring numbers where `transformers` rotates the two halves of a head, so the
rows of a Llama's queries and keys are put in the other order; a Qwen2's are not touched.

Source: the converters of ggml-org/llama.cpp (LLaDAModel, DreamModel), and the keys of its package
gguf 0.19.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.resources import cache_directory, need, quiet

TENSORS = {  # the name in a GGUF file, the name in transformers
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


PART = 1 << 30  # bytes of a file that is written


@dataclass(frozen=True)
class Kind:
    """An architecture of a GGUF file, as a model of `transformers`."""

    model_type: str
    architecture: str
    turned: bool  # whether neighbours are rotated
    both_ways: bool = False


KINDS = {
    "llama": Kind("llama", "LlamaForCausalLM", True),
    "qwen2": Kind("qwen2", "Qwen2ForCausalLM", False),
    "llada": Kind("llama", "LlamaForCausalLM", True, both_ways=True),
    "dream": Kind("Dream", "DreamModel", False, both_ways=True),
}


def gguf_in(place: Path) -> Path | None:
    """The GGUF file that a path means; None if it means none."""
    if place.suffix == ".gguf" and place.is_file():
        return place
    if not place.is_dir() or any(place.glob("*.safetensors")):
        return None
    files = sorted(place.glob("*.gguf"))
    if len(files) > 1:
        raise MaskwalkError(
            f"{place} holds {len(files)} GGUF files; name the one you mean: hf:{files[0]}."
        )
    return files[0] if files else None


def unpacked(file: Path) -> Path:
    """The file as safetensors with its tokenizer, from the cache if it was read before."""
    state = file.stat()
    marks = f"{file.resolve()} {state.st_size} {state.st_mtime_ns}".encode()
    name = f"{file.stem[:80]}-{hashlib.sha256(marks).hexdigest()[:12]}"
    directory = cache_directory() / "gguf" / name
    if directory.exists():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=directory.parent))
        try:
            unpack(file, unfinished)
            if not directory.exists():  # nobody else was quicker
                unfinished.rename(directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as problem:
        raise MaskwalkError(
            f"{file} could not be written out to {directory} ({problem}). In float32 it takes up "
            "to eight times its size; set MASKWALK_CACHE to a directory with room."
        ) from None
    return directory


def unpack(file: Path, directory: Path) -> None:
    """Writes weights, configuration and, where it can be read, the tokenizer of a GGUF file."""
    gguf = need("gguf")
    try:
        reader = gguf.GGUFReader(file)
    except Exception as problem:  # nobody lists what a damaged file may raise
        raise MaskwalkError(f"{file} is no GGUF file that can be read ({problem}).") from None
    named = _said(reader, "general.architecture", file)
    kind = KINDS.get(named)
    if kind is None:
        raise MaskwalkError(
            f"{file} holds a model of the architecture {named!r}; read are {', '.join(KINDS)}. "
            "Take its safetensors version."
        )
    about = _settings(reader, named, kind, file)
    where = _written(_weights(gguf, reader, kind, about, file), directory)
    if "vocab_size" not in about:
        raise MaskwalkError(f"{file} has no table of embeddings: it is no whole model.")
    about["tie_word_embeddings"] = "lm_head.weight" not in where
    (directory / "config.json").write_text(json.dumps(about, indent=2))
    try:
        with quiet() as transformers:
            reading = transformers.AutoTokenizer
            reading.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(directory)
    except Exception:  # whoever loads it says that a tokenizer has to be given
        for part in directory.glob("*token*"):
            part.unlink()


def _said(reader: Any, name: str, file: Path) -> Any:
    field = reader.fields.get(name)
    if field is None:
        raise MaskwalkError(f"{file} does not say {name}: it is no whole model.")
    return field.contents()


def _settings(reader: Any, named: str, kind: Kind, file: Path) -> dict[str, Any]:
    """config.json from the file's own fields."""

    def said(name: str) -> Any:
        return _said(reader, f"{named}.{name}", file)

    rope = float(said("rope.freq_base")) if f"{named}.rope.freq_base" in reader.fields else 10_000.0
    about: dict[str, Any] = {
        "model_type": kind.model_type,
        "architectures": [kind.architecture],
        "dtype": "float32",
        "hidden_size": said("embedding_length"),
        "intermediate_size": said("feed_forward_length"),
        "num_hidden_layers": said("block_count"),
        "num_attention_heads": said("attention.head_count"),
        "num_key_value_heads": said("attention.head_count_kv"),
        "max_position_embeddings": said("context_length"),
        "rms_norm_eps": said("attention.layer_norm_rms_epsilon"),
        "rope_theta": rope,
        "rope_parameters": {"rope_type": "default", "rope_theta": rope},
    }
    scaling = reader.fields.get(f"{named}.rope.scaling.type")
    if scaling is not None and scaling.contents() != "none":
        raise MaskwalkError(f"{file} stretches its rotary frequencies, which is not read here.")
    if kind.both_ways:
        about |= {"is_causal": False}
        mask = reader.fields.get("tokenizer.ggml.mask_token_id")
        about |= {} if mask is None else {"mask_token_id": int(mask.contents())}
    return about


def _written(weights: Iterable[tuple[str, Tensor]], directory: Path) -> dict[str, str]:
    """Weights in files of `PART` bytes, so that no more of them is in memory, and their index:
    name -> file."""
    where: dict[str, str] = {}
    held: dict[str, Tensor] = {}

    def write() -> None:
        name = f"model-{len(set(where.values())) + 1:05}.safetensors"
        save_file(held, directory / name, metadata={"format": "pt"})
        where.update(dict.fromkeys(held, name))
        held.clear()

    for name, weight in weights:
        if held and sum(x.nbytes for x in held.values()) + weight.nbytes > PART:
            write()
        held[name] = weight
    write()
    index = {"metadata": {}, "weight_map": where}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return where


def _weights(
    gguf: Any, reader: Any, kind: Kind, about: dict[str, Any], file: Path
) -> Iterator[tuple[str, Tensor]]:
    """The tensors under the names of `transformers`; sets the size of the vocabulary."""
    heads = {"attn_q": about["num_attention_heads"], "attn_k": about["num_key_value_heads"]}
    for tensor in reader.tensors:
        *block, short, last = tensor.name.split(".")
        if short not in TENSORS or last not in ("weight", "bias"):
            raise MaskwalkError(
                f"{file} has the tensor {tensor.name}, which no plain model of its kind has; take "
                "its safetensors version."
            )
        weight = torch.from_numpy(np.array(gguf.dequantize(tensor.data, tensor.tensor_type)))
        weight = weight.float()
        if kind.turned and short in heads:
            shape = weight.shape
            weight = weight.view(heads[short], -1, 2, *shape[1:]).transpose(1, 2).reshape(shape)
        layer = f"model.layers.{block[1]}." if block else ""
        if short == "token_embd":
            about["vocab_size"] = len(weight)
        yield f"{layer}{TENSORS[short]}.{last}", weight.contiguous()
