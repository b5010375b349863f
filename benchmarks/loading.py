"""Loads a model of LLaDA-8B's shape (random weights) onto a device: seconds, and peaks of memory.

    PYTHONPATH=src python benchmarks/loading.py FOLDER [--layers 32] [--device cuda]

FOLDER takes the files, 16 GB at 32 layers. The network's peak on the device should be its weights
and one tensor; main memory should hold no copy. For a small one on a CPU:
`--device cpu --layers 2 --width 64 --inner 128 --vocab 2000`.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import load
from maskwalk.denoisers.language.standins import write_llada

HEADS = 32  # fewer where the width has no room for them


def write(folder: Path, layers: int, width: int, inner: int, vocab: int) -> float:
    """The files, a layer each; their size in GB."""
    write_llada(folder)
    heads = min(HEADS, width // 16)
    (folder / "model.safetensors").unlink()
    about = json.loads((folder / "config.json").read_text())
    about |= {"d_model": width, "n_heads": heads, "n_kv_heads": heads, "n_layers": layers}
    about |= {"mlp_hidden_size": inner, "vocab_size": vocab, "embedding_size": vocab}
    about |= {"max_sequence_length": 4096}
    (folder / "config.json").write_text(json.dumps(about))
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def random(*shape: int) -> torch.Tensor:
        return (0.02 * torch.randn(shape, device=device)).bfloat16().cpu()

    square = ("q_proj", "k_proj", "v_proj", "attn_out")
    parts = []
    for n in range(layers):
        block = {name: random(width, width) for name in square}
        block |= {"ff_proj": random(inner, width), "up_proj": random(inner, width)}
        block |= {"ff_out": random(width, inner)}
        block |= {name: torch.ones(width).bfloat16() for name in ("attn_norm", "ff_norm")}
        parts.append({f"blocks.{n}.{name}.weight": tensor for name, tensor in block.items()})
        _save(parts.pop(), folder / f"model-{n + 1:05}-of-{layers + 1:05}.safetensors")
    last = {"wte.weight": random(vocab, width), "ff_out.weight": random(vocab, width)}
    last |= {"ln_f.weight": torch.ones(width).bfloat16()}
    _save(last, folder / f"model-{layers + 1:05}-of-{layers + 1:05}.safetensors")
    return sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e9


def _save(tensors: dict[str, torch.Tensor], file: Path) -> None:
    save_file({f"model.transformer.{name}": t for name, t in tensors.items()}, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--inner", type=int, default=12_288, help="the width between")
    parser.add_argument("--vocab", type=int, default=126_464)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    size = write(given.folder, given.layers, given.width, given.inner, given.vocab)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    if given.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    precision = "bfloat16" if given.device == "cuda" else "float32"
    model = load(given.folder, device=given.device, precision=precision)
    seconds = time.perf_counter() - began
    peak = torch.cuda.max_memory_allocated() / 1e9 if given.device == "cuda" else 0.0
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{size:.2f} GB of weights loaded and asked in {seconds:.1f} s")
    print(f"peak on the device {peak:.2f} GB; main memory {before:.2f} -> {after:.2f} GB (peak)")
    sampler = "blocks(size=32, inner=low_confidence(steps=8))"
    for length in (34, 128):  # the first loads what is loaded on first use
        made = generate(model, sampler, prompt="the cat", length=length, draw="llada")
    print(f"{int(made.calls[0])} calls, {made.seconds / int(made.calls[0]) * 1e3:.1f} ms a call")


if __name__ == "__main__":
    main()
