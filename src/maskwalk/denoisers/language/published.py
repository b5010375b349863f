"""Stand-ins in the layout of the published files: LLaDA and Dream, small and with random weights.

The fields of config.json, the names of weights and special tokens, and the files of the tokenizers
are the published ones; only sizes and ids are their own.
"""

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from maskwalk.resources import need
from maskwalk.streams import Purpose, block_uniforms

LINES = (
    "the cat sat on the mat and the dog lay by the door",
    "a walk on a graph visits one node after another",
    "the sampler reveals many tokens in one call",
    "once upon a time there was a masked model",
)
END = "<|endoftext|>"
LONG = 4096  # tokens that LLaDA and Dream read: rotary positions cost no weights
LLADA_TOKENS = (
    "<|startoftext|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "[CLS]",
    "[gMASK]",
    "<|mdm_mask|>",
)
DREAM_TOKENS = (END, "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>")
LLADA_CHAT = (
    "{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim }}"
    "{{ '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] + '\n' + m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# the fields of the published files, in their order; sizes and ids are the stand-in's own
LLADA_CONFIG: dict[str, Any] = {
    "activation_type": "silu",
    "alibi": False,
    "alibi_bias_max": 8.0,
    "architectures": ["LLaDAModelLM"],
    "attention_dropout": 0.0,
    "attention_layer_norm": False,
    "attention_layer_norm_with_affine": True,
    "auto_map": {
        "AutoConfig": "configuration_llada.LLaDAConfig",
        "AutoModelForCausalLM": "modeling_llada.LLaDAModelLM",
        "AutoModel": "modeling_llada.LLaDAModelLM",
    },
    "bias_for_layer_norm": False,
    "block_group_size": 1,
    "block_type": "llama",
    "embedding_dropout": 0.0,
    "flash_attention": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "init_cutoff_factor": None,
    "init_device": "meta",
    "init_fn": "mitchell",
    "init_std": 0.02,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "mlp_ratio": 4,
    "model_type": "llada",
    "multi_query_attention": None,
    "precision": "amp_bf16",
    "residual_dropout": 0.0,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_full_precision": True,
    "scale_logits": False,
    "transformers_version": "4.46.3",
    "use_cache": False,
    "weight_tying": False,
}
DREAM_CONFIG: dict[str, Any] = {
    "architectures": ["DreamModel"],
    "attention_dropout": 0.0,
    "auto_map": {
        "AutoConfig": "configuration_dream.DreamConfig",
        "AutoModel": "modeling_dream.DreamModel",
    },
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_window_layers": 28,
    "model_type": "Dream",
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1_000_000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.46.2",
    "use_cache": True,
    "use_mrope": False,
    "use_sliding_window": False,
}


def write_tokenizer(
    directory: Path,
    *,
    words: bool = False,
    extra: tuple[str, ...] = (),
    names: dict[str, str] | None = None,
) -> Any:
    """A small tokenizer: BERT's kind (`words`) or GPT-2's, which knows every byte as theirs does.

    `extra`: more special tokens, the last of its vocabulary; `names`: which of them is the mask, …
    """
    tokenizers, fast = need("tokenizers"), need().PreTrainedTokenizerFast
    if words:
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        inner.decoder = tokenizers.decoders.WordPiece()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=100, special_tokens=special, show_progress=False
        )
        told = dict(zip(("pad", "unk", "cls", "sep", "mask"), special))
    else:
        special = [] if END in extra else [END]
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=330,  # the bytes, and about as many merges as there are words
            special_tokens=special,
            initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        told = {"eos": END, "bos": END} | ({"pad": END} if extra else {}) | (names or {})
    inner.train_from_iterator(LINES, trainer)
    if words:
        ends = [(name, inner.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        inner.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=ends
        )
    inner.add_special_tokens(list(extra))
    tokenizer = fast(tokenizer_object=inner, **{f"{k}_token": v for k, v in told.items()})
    tokenizer.save_pretrained(directory)
    return tokenizer


def write_llada(directory: str | Path, seed: int = 0) -> Path:
    """As `GSAI-ML/LLaDA-8B-Instruct`: the mask is a token of its own, named in config.json only."""
    directory = Path(directory)
    reader = write_tokenizer(directory, extra=LLADA_TOKENS, names={"bos": "<|startoftext|>"})
    reader.chat_template = LLADA_CHAT
    reader.save_pretrained(directory)
    size = len(reader)
    mask, end = reader.convert_tokens_to_ids(["<|mdm_mask|>", END])
    about = LLADA_CONFIG | {"d_model": 32, "n_heads": 2, "n_kv_heads": 2, "n_layers": 2}
    about |= {"mlp_hidden_size": 64, "max_sequence_length": LONG, "rope_theta": 500_000.0}
    about |= {"vocab_size": size, "embedding_size": size, "mask_token_id": mask}
    about |= {"eos_token_id": end, "pad_token_id": end}
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (size, 32),
        "ln_f.weight": (32,),
        "ff_out.weight": (size, 32),
    }
    for n in range(2):
        block: dict[str, tuple[int, ...]] = {"attn_out": (32, 32), "q_proj": (32, 32)}
        block |= {"k_proj": (32, 32), "v_proj": (32, 32)}
        block |= {"attn_norm": (32,), "ff_norm": (32,), "ff_out": (32, 64)}
        block |= {"ff_proj": (64, 32), "up_proj": (64, 32)}
        shapes |= {f"blocks.{n}.{name}.weight": shape for name, shape in block.items()}
    named = {f"model.transformer.{name}": shape for name, shape in shapes.items()}
    return _write_published(directory, about, named, seed)


def write_dream(directory: str | Path, seed: int = 0) -> Path:
    """As `Dream-org/Dream-v0-Instruct-7B`: a tokenizer class that is code, logits shifted."""
    directory = Path(directory)
    reader = write_tokenizer(
        directory, extra=DREAM_TOKENS, names={"bos": "<|beginoftext|>", "mask": "<|mask|>"}
    )
    _as_dream_tokenizer(directory, reader)
    size = len(reader)
    mask, end = reader.convert_tokens_to_ids(["<|mask|>", END])
    about = DREAM_CONFIG | {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    about |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": LONG}
    about |= {"vocab_size": size + 3, "mask_token_id": mask}  # more columns than tokens
    about |= {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (size + 3, 32),
        "model.norm.weight": (32,),
        "lm_head.weight": (size + 3, 32),
    }
    for n in range(2):
        block: dict[str, tuple[int, ...]] = {"self_attn.q_proj": (32, 32)}
        block |= {"self_attn.k_proj": (16, 32), "self_attn.v_proj": (16, 32)}
        block |= {"self_attn.o_proj": (32, 32), "mlp.gate_proj": (64, 32), "mlp.up_proj": (64, 32)}
        block |= {"mlp.down_proj": (32, 64), "input_layernorm": (32,)}
        block |= {"post_attention_layernorm": (32,)}
        shapes |= {f"model.layers.{n}.{name}.weight": shape for name, shape in block.items()}
        for name in ("q_proj", "k_proj", "v_proj"):
            width = block[f"self_attn.{name}"][0]
            shapes |= {f"model.layers.{n}.self_attn.{name}.bias": (width,)}
    return _write_published(directory, about, shapes, seed)


def _as_dream_tokenizer(directory: Path, reader: Any) -> None:
    """The files of Dream's tokenizer: a vocabulary, its merges, and a class that is not here."""
    whole = json.loads((directory / "tokenizer.json").read_text())
    (directory / "tokenizer.json").unlink()
    added = {token["content"]: token for token in whole["added_tokens"]}
    plain = {t: i for t, i in whole["model"]["vocab"].items() if t not in added}
    (directory / "vocab.json").write_text(json.dumps(plain, ensure_ascii=False))
    merges = [m if isinstance(m, str) else " ".join(m) for m in whole["model"]["merges"]]
    (directory / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    decoder = {str(t["id"]): {"content": c, **flags, "special": True} for c, t in added.items()}
    about: dict[str, Any] = {"tokenizer_class": "DreamTokenizer", "added_tokens_decoder": decoder}
    about |= {"auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]}}
    about |= {"bos_token": "<|beginoftext|>", "mask_token": "<|mask|>", "add_bos_token": False}
    about |= dict.fromkeys(("eos_token", "pad_token", "unk_token"), END)
    about |= {"chat_template": CHATML, "model_max_length": 131_072, "errors": "replace"}
    (directory / "tokenizer_config.json").write_text(json.dumps(about))


def _write_published(
    directory: Path, about: dict[str, Any], shapes: dict[str, tuple[int, ...]], seed: int
) -> Path:
    """Weights of these names, numbers that depend on the seed alone, and the configuration."""
    tensors = {}
    for stream, (name, shape) in enumerate(shapes.items()):
        u = block_uniforms(seed, Purpose.TRAIN, 0, 1, math.prod(shape), stream)
        tensors[name] = torch.from_numpy(u - 0.5).float().view(shape).clone()
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    (directory / "config.json").write_text(json.dumps(about))
    return directory
