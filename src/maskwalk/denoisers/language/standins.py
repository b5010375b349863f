"""Tiny stand-ins of the models people have: random weights, a tokenizer trained on a few lines.

Every recipe can be tried on them without a download:

    python -m maskwalk.denoisers.language.standins stand-ins

The MDLM one has the published keys; BERT, ModernBERT and GPT-2 are classes of `transformers`. The
LLaDA and Dream ones are not those networks, which come as code of their own: they are decoders of
`transformers` that look both ways, and share only what the adapter must know.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from maskwalk.denoisers.files import PREFIX
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.resources import need, quiet
from maskwalk.streams import Purpose, block_uniforms

LINES = (
    "the cat sat on the mat and the dog lay by the door",
    "a walk on a graph visits one node after another",
    "the sampler reveals many tokens in one call",
    "once upon a time there was a masked model",
)
WIDTH = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2}
SIZE = {**WIDTH, "intermediate_size": 64, "max_position_embeddings": 64}


def write_tokenizer(directory: Path, *, words: bool = False, mask: str | None = None) -> Any:
    """A tokenizer of about a hundred tokens: BERT's kind (`words`) or GPT-2's."""
    tokenizers, fast = need("tokenizers"), need().PreTrainedTokenizerFast
    if words:
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        inner.decoder = tokenizers.decoders.WordPiece()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=100, special_tokens=special, show_progress=False
        )
        names = dict(zip(("pad", "unk", "cls", "sep", "mask"), special))
    else:
        special = ["<|endoftext|>"] + ([mask] if mask else [])
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=100, special_tokens=special, show_progress=False
        )
        names = {"eos": special[0], "bos": special[0]} | ({"mask": mask} if mask else {})
    inner.train_from_iterator(LINES, trainer)
    if words:
        ends = [(name, inner.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        inner.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=ends
        )
    tokenizer = fast(tokenizer_object=inner, **{f"{k}_token": v for k, v in names.items()})
    tokenizer.save_pretrained(directory)
    return tokenizer


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


def write_llada(directory: str | Path, seed: int = 0) -> Path:
    """In place of LLaDA: a Llama that looks both ways; logits at i speak of i."""
    size = len(write_tokenizer(Path(directory), mask="<|mdm_mask|>"))
    return _write(directory, seed, "Llama", "ForCausalLM", vocab_size=size, is_causal=False, **SIZE)


def write_dream(directory: str | Path, seed: int = 0) -> Path:
    """In place of Dream: a Qwen2 that looks both ways; logits at i − 1 speak of i."""
    size = len(write_tokenizer(Path(directory), mask="<|mask|>"))
    return _write(directory, seed, "Qwen2", "ForCausalLM", vocab_size=size, is_causal=False, **SIZE)


def write_gpt2(directory: str | Path, seed: int = 0) -> Path:
    """As `gpt2`: autoregressive."""
    size = len(write_tokenizer(Path(directory)))
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
    return _write(directory, seed, "GPT2", "LMHeadModel", vocab_size=size, **shape)


def _write(directory: str | Path, seed: int, family: str, head: str, **shape: Any) -> Path:
    """Builds a model by `transformers` and fills it with numbers that depend on the seed alone."""
    if "ForCausalLM" in head:
        shape |= {"num_key_value_heads": shape["num_attention_heads"]}
    with quiet() as transformers:
        if family in ("Llama", "Qwen2", "GPT2"):
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
