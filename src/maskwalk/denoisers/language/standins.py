"""Tiny stand-ins of the models people have: random weights, a tokenizer trained on a few lines.

Every recipe can be tried on them without a download:

    python -m maskwalk.denoisers.language.standins stand-ins

The MDLM, LLaDA and Dream ones have the published fields of config.json, weight names and names of
special tokens; BERT, ModernBERT and GPT-2 are classes of `transformers`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from maskwalk.denoisers.files import PREFIX
from maskwalk.denoisers.language.published import write_dream, write_llada, write_tokenizer
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.resources import quiet
from maskwalk.streams import Purpose, block_uniforms

WIDTH = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2}
SIZE = {**WIDTH, "intermediate_size": 64, "max_position_embeddings": 64}


def write_mdlm(directory: str | Path, seed: int = 0) -> Path:
    """As `kuleshov-group/mdlm-owt`: safetensors under the public keys, a tokenizer like GPT-2's."""
    directory = Path(directory)
    size = len(write_tokenizer(directory))
    config = DDiTConfig(vocab_size=size, length=64, hidden=32, cond=16, blocks=2, heads=2)
    flat = layout(config).initial([seed])
    noise = block_uniforms(seed, Purpose.TRAIN, 0, 1, flat.numel(), stream=99)
    flat += torch.from_numpy(noise - 0.5).float()  # nothing left at zero
    named = layout(config).named(flat)
    tensors = {f"{PREFIX}{name}": value[0].clone() for name, value in named.items()}
    rates = 10_000.0 ** -(torch.arange(8) / 8)
    save_file({**tensors, f"{PREFIX}rotary_emb.inv_freq": rates}, directory / "model.safetensors")
    about = {"model_type": "mdlm", "architectures": ["MDLM"], "vocab_size": size + 1}
    about |= {"hidden_dim": 32, "cond_dim": 16, "n_blocks": 2, "n_heads": 2, "model_length": 64}
    about |= {"time_conditioning": False, "dropout": 0.1}
    (directory / "config.json").write_text(json.dumps(about))
    return directory


def write_bert(directory: str | Path, seed: int = 0) -> Path:
    """As `bert-base-uncased`."""
    size = len(write_tokenizer(Path(directory), words=True))
    return _write(directory, seed, "Bert", "ForMaskedLM", vocab_size=size, **SIZE)


def write_modernbert(directory: str | Path, seed: int = 0) -> Path:
    """As `answerdotai/ModernBERT-base`."""
    size = len(write_tokenizer(Path(directory), words=True))
    ids = {f"{name}_token_id": i for name, i in (("pad", 0), ("cls", 2), ("sep", 3))}
    ids |= {"bos_token_id": 2, "eos_token_id": 3}
    return _write(directory, seed, "ModernBert", "ForMaskedLM", vocab_size=size, **SIZE, **ids)


def write_gpt2(directory: str | Path, seed: int = 0) -> Path:
    """As `gpt2`: autoregressive."""
    size = len(write_tokenizer(Path(directory)))
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
    return _write(directory, seed, "GPT2", "LMHeadModel", vocab_size=size, **shape)


def _write(directory: str | Path, seed: int, family: str, head: str, **shape: Any) -> Path:
    """Builds a model by `transformers` and fills it with numbers that depend on the seed alone."""
    with quiet() as transformers:
        if family == "GPT2":
            shape |= {"bos_token_id": 0, "eos_token_id": 0}
        config = getattr(transformers, f"{family}Config")(**shape)
        with torch.random.fork_rng(devices=[]):  # its own initialisation is then overwritten
            model = getattr(transformers, f"{family}{head}")(config)
        with torch.no_grad():
            for stream, weight in enumerate(model.parameters()):
                u = block_uniforms(seed, Purpose.TRAIN, 0, 1, weight.numel(), stream)
                weight.copy_(torch.from_numpy(u - 0.5).view(weight.shape))
        model.save_pretrained(directory)
    return Path(directory)


STAND_INS: dict[str, Callable[..., Path]] = {
    "mdlm": write_mdlm,
    "bert": write_bert,
    "modernbert": write_modernbert,
    "llada": write_llada,
    "dream": write_dream,
    "gpt2": write_gpt2,
}


def main(folder: str) -> None:
    """Writes all of them into a folder."""
    for name, write in STAND_INS.items():
        print(write(Path(folder) / name))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "stand-ins")
