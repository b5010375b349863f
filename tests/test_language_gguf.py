"""GGUF files of LLaDA and Dream answer as the models they were made from; others are refused.

The files are written with llama.cpp's own package, rows rotated as its converter does, and read
through `hf:` like any model. An autoregressive Llama brings its tokenizer with it.
"""

import json
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from maskwalk.denoisers.language import Causal, Masked, load
from maskwalk.denoisers.language import gguf as packing
from maskwalk.denoisers.language.gguf import TENSORS
from maskwalk.denoisers.language.native import NATIVE
from maskwalk.denoisers.language.standins import write_dream, write_llada
from maskwalk.errors import MaskwalkError
from tests.test_texts_judge import write_gguf as write_llama_gguf
from tests.test_texts_judge import write_llama

pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")
WRITERS = {"llada": write_llada, "dream": write_dream}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gguf"


def write_gguf(file: Path, name: str, source: Path, **more: Any) -> Path:
    """A checkpoint as llama.cpp's converter writes it, in float16 but for norms and biases."""
    about = json.loads((source / "config.json").read_text())
    if name == "llada":
        width, layers, heads = about["d_model"], about["n_layers"], about["n_heads"]
        groups, inner, length = about["n_kv_heads"], about["mlp_hidden_size"], 128
    else:
        width, layers = about["hidden_size"], about["num_hidden_layers"]
        heads, groups = about["num_attention_heads"], about["num_key_value_heads"]
        inner, length = about["intermediate_size"], about["max_position_embeddings"]
    writer = gguf.GGUFWriter(file, more.get("architecture", name))
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_block_count(layers)
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_context_length(length)
    writer.add_layer_norm_rms_eps(about["rms_norm_eps"])
    writer.add_rope_freq_base(about["rope_theta"])
    writer.add_mask_token_id(about["mask_token_id"])
    names = {theirs: ours for ours, theirs in TENSORS.items()}
    for key, weight in load_file(source / "model.safetensors").items():
        parts = NATIVE[name].renamed(key).split(".")
        block = f"blk.{parts[2]}." if parts[1] == "layers" else ""
        short = names[".".join(parts[3:-1] if block else parts[:-1])]
        if name == "llada" and short in ("attn_q", "attn_k"):
            turned = weight.view(heads, 2, -1, width).transpose(1, 2)
            weight = turned.reshape(weight.shape)
        writer.add_tensor(f"{block}{short}.{parts[-1]}", weight.contiguous().numpy())
    if "tensor" in more:
        writer.add_tensor(more["tensor"], torch.ones(4).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.parametrize("name", WRITERS)
def test_a_diffusion_model_of_llama_cpp(name: str, tmp_path: Path, cache: Path) -> None:
    source = WRITERS[name](tmp_path / name)
    (tmp_path / "packed").mkdir()
    file = write_gguf(tmp_path / "packed" / "tiny.gguf", name, source)
    original = load(source)
    for place in (file, file.parent):
        model = load(f"hf:{place}", tokenizer=source)
        assert isinstance(model.denoiser, Masked) and model.mask == original.mask
        assert model.denoiser.shifted == (name == "dream")
        tokens = torch.randint(1, 90, (2, 10), generator=torch.Generator().manual_seed(0))
        tokens[:, ::3] = model.mask
        gap = (model.denoiser(tokens) - original.denoiser(tokens)).abs()
        assert float(gap[gap.isfinite()].max()) <= 1e-5
    assert len(list(cache.iterdir())) == 1  # written out once
    with pytest.raises(MaskwalkError, match=r"no tokenizer that can be read.*--tokenizer"):
        load(file)


def test_large_files_are_written_out_in_parts(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than a part of the weights is held, and all parts are read."""
    source = write_llada(tmp_path / "llada")
    file = write_gguf(tmp_path / "tiny.gguf", "llada", source)
    alive: list[int] = []
    made: list[weakref.ref[Any]] = []

    def watched(*args: Any) -> Any:
        for name, weight in weights(*args):
            made.append(weakref.ref(weight))
            alive.append(sum(x.nbytes for x in (one() for one in made) if x is not None))
            yield name, weight
            del weight

    weights = packing._weights
    monkeypatch.setattr(packing, "_weights", watched)
    monkeypatch.setattr(packing, "PART", 40_000)
    model, original = load(file, tokenizer=source), load(source)
    parts = sorted(cache.glob("*/*.safetensors"))
    largest = max(part.stat().st_size for part in parts)
    assert len(parts) > 2 and max(alive) <= 40_000 + largest and len(made) > 10
    tokens = torch.tensor([[5, model.mask, 7, model.mask]])
    gap = (model.denoiser(tokens) - original.denoiser(tokens)).abs()
    assert float(gap[gap.isfinite()].max()) <= 1e-5


def test_an_autoregressive_model_with_the_tokenizer_of_its_file(tmp_path: Path) -> None:
    origin = write_llama(tmp_path / "llama")
    write_llama_gguf(tmp_path / "tiny.gguf", origin)
    model, original = load(tmp_path / "tiny.gguf"), load(origin)
    assert isinstance(model.denoiser, Causal) and model.end_of_text == original.end_of_text
    assert model.encode("the cat sat") == original.encode("the cat sat")
    tokens = torch.tensor([[*model.encode("the cat sat"), model.mask]])
    gap = (model.denoiser(tokens) - original.denoiser(tokens)).abs()
    assert float(gap[gap.isfinite()].max()) <= 1e-5


def test_files_that_are_not_read(tmp_path: Path) -> None:
    source = write_llada(tmp_path / "llada")
    other = write_gguf(tmp_path / "other.gguf", "llada", source, architecture="gemma3")
    with pytest.raises(MaskwalkError, match="architecture 'gemma3'; read are llama, qwen2"):
        load(other)
    more = write_gguf(tmp_path / "more.gguf", "llada", source, tensor="rope_freqs.weight")
    with pytest.raises(MaskwalkError, match=r"tensor rope_freqs\.weight"):
        load(more)
    (tmp_path / "cut.gguf").write_bytes(more.read_bytes()[:300])
    with pytest.raises(MaskwalkError, match="no GGUF file that can be read"):
        load(tmp_path / "cut.gguf")
    with pytest.raises(MaskwalkError, match="holds 3 GGUF files"):
        load(tmp_path)
