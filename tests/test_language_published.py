"""LLaDA and Dream checkpoints, as published, answer as their networks do, without their code.

The stand-ins have the published files' fields, weight names and special tokens. Their answers are
compared with transformers' Llama and Qwen2 wired by hand here, and with both networks written out
plainly; a wrong name, norm, shift or direction fails.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import LanguageModel, Masked, load
from maskwalk.denoisers.language.checkpoint import describe_checkpoint
from maskwalk.denoisers.language.standins import write_dream, write_llada
from maskwalk.errors import MaskwalkError

transformers = pytest.importorskip("transformers")
WRITERS = {"llada": write_llada, "dream": write_dream}
CLOSE = 1e-5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for name, write in WRITERS.items():
        write(folder / name)
    return folder


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, LanguageModel]:
    return {name: load(folder / name) for name in WRITERS}


def copied(source: Path, target: Path, **config: Any) -> Path:
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    about = json.loads((target / "config.json").read_text()) | config
    (target / "config.json").write_text(json.dumps(about))
    return target


def canvas(model: LanguageModel) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, 90, (3, 12), generator=generator)
    tokens[0, ::2] = tokens[1, 4] = tokens[2, 1:] = model.mask
    return tokens


def answers(model: LanguageModel, logits: Tensor, tokens: Tensor) -> Tensor:
    """log p at the masked places from logits that speak of their own position."""
    at = logits[tokens == model.mask].clone()
    at[:, list(model.denoiser.forbidden)] = -torch.inf
    return torch.log_softmax(at, -1)


def largest_gap(one: Tensor, other: Tensor) -> float:
    assert torch.equal(one.isfinite(), other.isfinite())
    return float((one - other)[one.isfinite()].abs().max())


# --- the networks, written out

LLADA = {"norm1": "attn_norm", "o": "attn_out", "norm2": "ff_norm", "gate": "ff_proj"}
LLADA |= {"up": "up_proj", "down": "ff_out", "q": "q_proj", "k": "k_proj", "v": "v_proj"}
DREAM = {"norm1": "input_layernorm", "o": "self_attn.o_proj", "gate": "mlp.gate_proj"}
DREAM |= {"norm2": "post_attention_layernorm", "up": "mlp.up_proj", "down": "mlp.down_proj"}
DREAM |= {name: f"self_attn.{name}_proj" for name in "qkv"}
OUTER = {
    "llada": ("model.transformer.wte", "model.transformer.ln_f", "model.transformer.ff_out"),
    "dream": ("model.embed_tokens", "model.norm", "lm_head"),
}


def plain(name: str, directory: Path, tokens: Tensor) -> Tensor:
    """Logits in float64, a head at a time, every position attending to every other."""
    w = {k: v.double() for k, v in load_file(directory / "model.safetensors").items()}
    about = json.loads((directory / "config.json").read_text())
    llada = name == "llada"
    heads = about["n_heads" if llada else "num_attention_heads"]
    groups = about["n_kv_heads" if llada else "num_key_value_heads"]
    inner, names = ("model.transformer.blocks", LLADA) if llada else ("model.layers", DREAM)
    embed, last, out = OUTER[name]

    def norm(x: Tensor, key: str) -> Tensor:
        return w[f"{key}.weight"] * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()

    def linear(x: Tensor, key: str) -> Tensor:
        return x @ w[f"{key}.weight"].T + w.get(f"{key}.bias", 0.0)

    def turned(x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        rates = about["rope_theta"] ** -(torch.arange(half).double() / half)
        angle = torch.arange(x.shape[1]).double()[:, None] * rates
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    eps = about["rms_norm_eps"]
    x = w[f"{embed}.weight"][tokens]
    for n in range(2):
        key = {short: f"{inner}.{n}.{long}" for short, long in names.items()}
        h = norm(x, key["norm1"])
        q, k, v = (linear(h, key[part]) for part in "qkv")
        width, mixed = x.shape[-1] // heads, []
        for head in range(heads):
            mine = slice(head * width, (head + 1) * width)
            shared = head // (heads // groups)
            theirs = slice(shared * width, (shared + 1) * width)
            scores = turned(q[..., mine]) @ turned(k[..., theirs]).mT / width**0.5
            mixed.append(scores.softmax(-1) @ v[..., theirs])
        x = x + linear(torch.cat(mixed, -1), key["o"])
        h = norm(x, key["norm2"])
        gate = linear(h, key["gate"])
        x = x + linear(gate * gate.sigmoid() * linear(h, key["up"]), key["down"])
    return linear(norm(x, last), out)


def by_hand(name: str, directory: Path, tokens: Tensor) -> Tensor:
    """Logits of transformers' class, its weights filled in and its mask opened by hand."""
    about = json.loads((directory / "config.json").read_text())
    weights = load_file(directory / "model.safetensors")
    theta = {"rope_type": "default", "rope_theta": about["rope_theta"]}
    if name == "llada":
        config = transformers.LlamaConfig(
            vocab_size=about["embedding_size"],
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            rms_norm_eps=1e-5,
            rope_parameters=theta,
        )
        model: Any = transformers.LlamaForCausalLM(config)
        renamed = {
            "model.embed_tokens.weight": weights["model.transformer.wte.weight"],
            "model.norm.weight": weights["model.transformer.ln_f.weight"],
            "lm_head.weight": weights["model.transformer.ff_out.weight"],
        }
        for n in range(2):
            for short, long in DREAM.items():
                old = f"model.transformer.blocks.{n}.{LLADA[short]}.weight"
                renamed[f"model.layers.{n}.{long}.weight"] = weights[old]
        weights = renamed
    else:
        config = transformers.Qwen2Config(
            vocab_size=about["vocab_size"],
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            rms_norm_eps=1e-6,
            rope_parameters=theta,
            tie_word_embeddings=False,
        )
        model = transformers.Qwen2ForCausalLM(config)
    model.load_state_dict(weights)
    everything = torch.zeros(len(tokens), 1, tokens.shape[1], tokens.shape[1])
    with torch.no_grad():
        logits: Tensor = model.eval()(tokens, attention_mask=everything).logits
    return logits


@pytest.mark.parametrize("name", WRITERS)
def test_it_is_the_published_network(
    name: str, folder: Path, models: dict[str, LanguageModel]
) -> None:
    model, tokens = models[name], canvas(models[name])
    found = model.denoiser(tokens)
    for logits in (plain(name, folder / name, tokens), by_hand(name, folder / name, tokens)):
        if name == "dream":  # those at i − 1 speak of i, and the first of itself
            logits = torch.cat([logits[:, :1], logits[:, :-1]], 1)
        expected = answers(model, logits.float(), tokens)
        assert expected[expected.isfinite()].std() > 0.3
        assert largest_gap(found, expected) <= CLOSE


@pytest.mark.parametrize("name", WRITERS)
def test_a_later_token_changes_an_earlier_answer(
    name: str, models: dict[str, LanguageModel]
) -> None:
    model, tokens = models[name], canvas(models[name])[:1]
    other, first = tokens.clone(), torch.arange(12)[None] == 2
    other[0, 11] = 7
    gap = (model.denoiser(tokens, first) - model.denoiser(other, first)).abs()
    assert float(gap[gap.isfinite()].max()) > 1e-3


@pytest.mark.parametrize("name", WRITERS)
def test_what_the_published_files_say(name: str, models: dict[str, LanguageModel]) -> None:
    model = models[name]
    assert isinstance(model.denoiser, Masked) and model.denoiser.shifted == (name == "dream")
    token = {"llada": "<|mdm_mask|>", "dream": "<|mask|>"}[name]
    assert model.mask == model.tokenizer.convert_tokens_to_ids(token)
    assert model.begin == model.end == () and model.notes == ()
    assert model.end_of_text == model.tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert model.longest == 4096
    # Columns beyond the tokenizer and the tokens around a text are never drawn.
    begin = {"llada": "<|startoftext|>", "dream": "<|beginoftext|>"}[name]
    never = {model.tokenizer.convert_tokens_to_ids(begin), model.mask}
    never |= set(range(len(model.tokenizer), model.denoiser.vocab_size))
    assert never <= set(model.denoiser.forbidden)
    assert model.end_of_text not in model.denoiser.forbidden


def test_dreams_tokenizer_is_qwens(models: dict[str, LanguageModel], folder: Path) -> None:
    """Read from its vocabulary and merges: the class it names comes as code, which is not run."""
    tokenizer = models["dream"].tokenizer
    text = "the cat sat on the mat"
    assert tokenizer.decode(models["dream"].encode(text)) == text
    ids = json.loads((folder / "dream" / "vocab.json").read_text())
    assert models["dream"].encode("the") == [ids["the"]]
    assert models["dream"].encode("<|mask|>") == [models["dream"].mask]


@pytest.mark.parametrize("name", WRITERS)
def test_trust_is_not_needed_and_changes_nothing(name: str, folder: Path) -> None:
    """Their code is not there at all; allowing it would run nothing."""
    assert describe_checkpoint(folder / name).native is not None
    trusted = load(folder / name, trust_remote_code=True)
    tokens = canvas(trusted)
    assert torch.equal(trusted.denoiser(tokens), load(folder / name).denoiser(tokens))


@pytest.mark.parametrize(
    ("name", "config", "says"),
    [
        ("llada", {"alibi": True}, r"says alibi = True .* published models of its kind have False"),
        ("llada", {"block_type": "sequential"}, "another network"),
        ("llada", {"activation_type": "swiglu"}, "another network"),
        ("llada", {"layer_norm_type": "default"}, "another network"),
        ("llada", {"num_experts": 64}, "mixture of experts"),
        ("llada", {"include_qkv_bias": True}, "biases"),
        ("llada", {"n_heads": 3}, "describes no such model"),
        ("llada", {"mask_token_id": 5000}, "mask 5000 is not a token of this model"),
        ("dream", {"use_sliding_window": True}, "use_sliding_window"),
        ("dream", {"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling"),
        ("dream", {"block_size": 32}, "attention by blocks"),
        ("dream", {"mask_token_id": 3}, r"names 334 as the mask, its config\.json 3"),
        ("dream", {"hidden_size": None}, "describes no such model"),
    ],
)
def test_other_networks_are_refused_by_name(
    name: str, config: dict[str, Any], says: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(MaskwalkError, match=says):
        load(copied(folder / name, tmp_path / "other", **config))


def test_tied_and_grouped_variants(folder: Path, tmp_path: Path) -> None:
    """Weight tying and grouped keys, which the layout allows, are read as the layout says."""
    tied = copied(folder / "llada", tmp_path / "tied", weight_tying=True, n_kv_heads=1)
    tensors = load_file(tied / "model.safetensors")
    del tensors["model.transformer.ff_out.weight"]
    for n in range(2):
        for part in ("k_proj", "v_proj"):
            key = f"model.transformer.blocks.{n}.{part}.weight"
            tensors[key] = tensors[key][:16].clone()
    save_file(tensors, tied / "model.safetensors")
    model = load(tied)
    tokens = canvas(model)
    key = "model.transformer.ff_out.weight"
    copy = tensors[key.replace("ff_out", "wte")].clone()
    save_file(tensors | {key: copy}, tied / "model.safetensors")
    expected = answers(model, plain("llada", tied, tokens).float(), tokens)
    assert largest_gap(model.denoiser(tokens), expected) <= CLOSE


def test_an_answer_in_the_published_chat(models: dict[str, LanguageModel]) -> None:
    model = models["llada"]
    made = generate(model, prompt="the cat", chat=True, length=100, draw="llada")
    first = model.tokenizer.convert_ids_to_tokens(made.tokens[0, :2].tolist())
    assert first == ["<|startoftext|>", "<|start_header_id|>"]
