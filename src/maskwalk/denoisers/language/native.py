"""LLaDA, Dream and DiffuCoder in classes of `transformers`: no code that comes with a model is run.

Their networks are known ones under other names, with attention both ways:

    LLaDA        a Llama: a RMS norm before each part, rotary halves, SiLU gates. Twelve weights are
                 renamed; logits at i speak of i.
    Dream        a Qwen2, weight for weight; logits at i − 1 speak of i. DiffuCoder and Dream-Coder
                 are Dreams.

A configuration that asks for something else (experts, ALiBi, another norm) is refused by name.
LLaDA's own code rotates in float32 whatever the weights are; here the rotation is in the precision
of the weights, as in `transformers`, so in bfloat16 the two agree to that precision only.

Source: Nie et al., Large Language Diffusion Models, arXiv 2502.09992; Ye et al., Dream 7B, arXiv
2508.15487; Gong et al., DiffuCoder, arXiv 2506.20639. Read: modeling_llada.py in
Feng-Hong/WINO-DLLM 9549a1d, modeling_dream.py and tokenization_dream.py in NVlabs/Fast-dLLM
24cc59e.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError, shown

Settings = dict[str, Any]

LLADA_FIXED: Settings = {  # what makes it a Llama; other values are other networks
    "block_type": "llama",
    "layer_norm_type": "rms",
    "activation_type": "silu",
    "block_group_size": 1,
    "rope": True,
    "alibi": False,
    "attention_layer_norm": False,
    "layer_norm_with_affine": True,
    "bias_for_layer_norm": False,
    "input_emb_norm": False,
    "scale_logits": False,
}
LLADA_NAMES = {
    "model.transformer.wte.": "model.embed_tokens.",
    "model.transformer.ln_f.": "model.norm.",
    "model.transformer.ff_out.": "lm_head.",
    "model.transformer.blocks.": "model.layers.",
    ".attn_norm.": ".input_layernorm.",
    ".q_proj.": ".self_attn.q_proj.",
    ".k_proj.": ".self_attn.k_proj.",
    ".v_proj.": ".self_attn.v_proj.",
    ".attn_out.": ".self_attn.o_proj.",
    ".ff_norm.": ".post_attention_layernorm.",
    ".ff_proj.": ".mlp.gate_proj.",
    ".up_proj.": ".mlp.up_proj.",
    ".ff_out.": ".mlp.down_proj.",
}
DREAM_FIXED: Settings = {"use_mrope": False, "use_sliding_window": False, "rope_scaling": None}


@dataclass(frozen=True)
class Native:
    """A published layout, and the class of `transformers` that computes the same."""

    family: str  # the class is {family}ForCausalLM
    settings: Callable[[Settings, Path], Settings]
    names: dict[str, str]
    shifted: bool
    mask_id: int  # as public decoding code has it, where config.json does not say

    def renamed(self, name: str) -> str:
        """The name in `transformers` of a published weight."""
        for old, new in self.names.items():
            name = name.replace(old, new, 1)
        return name


def llada_settings(config: Settings, source: Path) -> Settings:
    """A Llama's configuration from LLaDA's."""
    if config.get("num_experts") or "d_model" not in config:
        raise MaskwalkError(
            f"{source} is a LLaDA of another layout (a mixture of experts, or one that was "
            "converted): only the dense ones, LLaDA-8B and LLaDA-1.5, are read. If its weights "
            'have the names of a Llama, write "model_type": "llama", "is_causal": false in its '
            "config.json."
        )
    _check_fixed(config, LLADA_FIXED, source)
    width, heads = config["d_model"], config["n_heads"]
    plain, biased = bool(config.get("include_bias")), bool(config.get("include_qkv_bias"))
    if biased and not plain:
        raise MaskwalkError(
            f"{source} has biases in queries, keys and values alone; no published LLaDA has."
        )
    few = 1 if config.get("multi_query_attention") else heads
    return {
        "vocab_size": config.get("embedding_size") or config["vocab_size"],
        "hidden_size": width,
        "intermediate_size": config.get("mlp_hidden_size") or config.get("mlp_ratio", 4) * width,
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": heads,
        "num_key_value_heads": config.get("n_kv_heads") or few,
        "max_position_embeddings": config.get("max_sequence_length", 1024),
        "rms_norm_eps": config.get("rms_norm_eps", 1e-5),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": float(config.get("rope_theta", 10_000.0)),
        },
        "attention_bias": plain,
        "mlp_bias": plain,
        "tie_word_embeddings": bool(config.get("weight_tying")),
    }


def dream_settings(config: Settings, source: Path) -> Settings:
    """A Qwen2's configuration from Dream's."""
    _check_fixed(config, DREAM_FIXED, source)
    if config.get("block_size") or config.get("attention_bias") is False:
        raise MaskwalkError(
            f"{source} is a Dream of another layout (attention by blocks, or without biases): only "
            "those of Dream-v0, Dream-Coder and DiffuCoder are read."
        )
    same = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"]
    same += ["num_attention_heads", "num_key_value_heads", "max_position_embeddings"]
    more = {
        "hidden_act": config.get("hidden_act", "silu"),
        "rms_norm_eps": config.get("rms_norm_eps", 1e-6),
        "tie_word_embeddings": bool(config.get("tie_word_embeddings")),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": float(config.get("rope_theta", 10_000.0)),
        },
    }
    return {name: config[name] for name in same} | more


def _check_fixed(config: Settings, fixed: Settings, source: Path) -> None:
    for name, value in fixed.items():
        given = config.get(name, value)
        if given != value and not (given is None and value is False):
            raise MaskwalkError(
                f"{source} says {name} = {shown(given)} in its config.json, and the published "
                f"models of its kind have {shown(value)}: this is another network, which is not "
                "read here. Load it yourself and wrap it: maskwalk.Masked(model, mask_id=…)."
            )


NATIVE = {
    "llada": Native("Llama", llada_settings, LLADA_NAMES, False, 126_336),
    "dream": Native("Qwen2", dream_settings, {}, True, 151_666),
}


def native_config(native: Native, config: Settings, source: Path, transformers: Any) -> Any:
    """The configuration of `transformers`, looking both ways."""
    try:
        settings = native.settings(config, source)
        maker = getattr(transformers, f"{native.family}Config")
        return maker(**settings, is_causal=False, use_cache=False)
    except MaskwalkError:
        raise
    except Exception as problem:  # of a setting that is missing, or that `transformers` refuses
        what = f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)
        raise MaskwalkError(
            f"{source / 'config.json'} describes no such model: {' '.join(what.split())[:200]}."
        ) from None
