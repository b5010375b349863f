"""MDLM checkpoints: keys as published, against the network written out plainly here."""

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.language.mdlm import load_mdlm
from maskwalk.errors import MaskwalkError

ROWS, HIDDEN, COND, BLOCKS, HEADS, LENGTH = 12, 24, 6, 2, 3, 7


def checkpoint() -> dict[str, Tensor]:
    """Random weights under the public keys."""
    shapes: dict[str, tuple[int, ...]] = {
        "vocab_embed.embedding": (ROWS, HIDDEN),
        "sigma_map.mlp.0.weight": (COND, 256),
        "sigma_map.mlp.0.bias": (COND,),
        "sigma_map.mlp.2.weight": (COND, COND),
        "sigma_map.mlp.2.bias": (COND,),
        "output_layer.norm_final.weight": (HIDDEN,),
        "output_layer.linear.weight": (ROWS, HIDDEN),
        "output_layer.linear.bias": (ROWS,),
        "output_layer.adaLN_modulation.weight": (2 * HIDDEN, COND),
        "output_layer.adaLN_modulation.bias": (2 * HIDDEN,),
    }
    for n in range(BLOCKS):
        shapes |= {
            f"blocks.{n}.norm1.weight": (HIDDEN,),
            f"blocks.{n}.attn_qkv.weight": (3 * HIDDEN, HIDDEN),
            f"blocks.{n}.attn_out.weight": (HIDDEN, HIDDEN),
            f"blocks.{n}.norm2.weight": (HIDDEN,),
            f"blocks.{n}.mlp.0.weight": (4 * HIDDEN, HIDDEN),
            f"blocks.{n}.mlp.0.bias": (4 * HIDDEN,),
            f"blocks.{n}.mlp.2.weight": (HIDDEN, 4 * HIDDEN),
            f"blocks.{n}.mlp.2.bias": (HIDDEN,),
            f"blocks.{n}.adaLN_modulation.weight": (6 * HIDDEN, COND),
            f"blocks.{n}.adaLN_modulation.bias": (6 * HIDDEN,),
        }
    generator = torch.Generator().manual_seed(0)
    tensors = {k: 0.4 * torch.randn(s, generator=generator) for k, s in shapes.items()}
    tensors["rotary_emb.inv_freq"] = 10_000 ** -(torch.arange(0, 8, 2) / 8)
    return {f"backbone.{name}": value for name, value in tensors.items()}


def plain(w: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """The logits of one sequence, written from the published description, one head at a time."""
    w = {name.removeprefix("backbone."): value for name, value in w.items()}

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return weight * centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    def turned(x: Tensor) -> Tensor:
        """Pairs (j, j + half) turned by position × frequency."""
        half = x.shape[1] // 2
        out = torch.empty_like(x)
        for position in range(len(x)):
            for j in range(half):
                angle = position * float(w["rotary_emb.inv_freq"][j])
                a, b = x[position, j], x[position, j + half]
                out[position, j] = a * math.cos(angle) - b * math.sin(angle)
                out[position, j + half] = b * math.cos(angle) + a * math.sin(angle)
        return out

    # σ = 0: the cosines are one and the sines zero.
    c = torch.cat([torch.ones(128), torch.zeros(128)])
    c = w["sigma_map.mlp.0.weight"] @ c + w["sigma_map.mlp.0.bias"]
    c = w["sigma_map.mlp.2.weight"] @ F.silu(c) + w["sigma_map.mlp.2.bias"]
    c = F.silu(c)
    x = w["vocab_embed.embedding"][tokens]
    for n in range(BLOCKS):
        b = {k.removeprefix(f"blocks.{n}."): v for k, v in w.items() if f"blocks.{n}." in k}
        adaptive = b["adaLN_modulation.weight"] @ c + b["adaLN_modulation.bias"]
        shift1, scale1, gate1, shift2, scale2, gate2 = adaptive.chunk(6)
        h = norm(x, b["norm1.weight"]) * (1 + scale1) + shift1
        qkv = h @ b["attn_qkv.weight"].T
        width, mixed = HIDDEN // HEADS, []
        for head in range(HEADS):
            at = slice(head * width, (head + 1) * width)
            q, k, v = (part[:, at] for part in qkv.chunk(3, 1))
            scores = turned(q) @ turned(k).T / math.sqrt(width)
            mixed.append(scores.softmax(1) @ v)
        x = x + gate1 * (torch.cat(mixed, 1) @ b["attn_out.weight"].T)
        h = norm(x, b["norm2.weight"]) * (1 + scale2) + shift2
        h = F.gelu(h @ b["mlp.0.weight"].T + b["mlp.0.bias"], approximate="tanh")
        x = x + gate2 * (h @ b["mlp.2.weight"].T + b["mlp.2.bias"])
    adaptive = w["output_layer.adaLN_modulation.weight"] @ c
    shift, scale = (adaptive + w["output_layer.adaLN_modulation.bias"]).chunk(2)
    h = norm(x, w["output_layer.norm_final.weight"]) * (1 + scale) + shift
    return h @ w["output_layer.linear.weight"].T + w["output_layer.linear.bias"]


def write(directory: Path, tensors: dict[str, Tensor], **config: object) -> Path:
    directory.mkdir(exist_ok=True)
    save_file(tensors, directory / "model.safetensors")
    about = {"model_type": "mdlm", "vocab_size": ROWS, "hidden_dim": HIDDEN, "n_heads": HEADS}
    about |= {"time_conditioning": False}
    (directory / "config.json").write_text(json.dumps(about | config))
    return directory


@pytest.fixture
def tokens() -> Tensor:
    tokens = torch.randint(0, ROWS - 1, (3, LENGTH), generator=torch.Generator().manual_seed(1))
    tokens[0, ::2] = tokens[1, 3] = tokens[2, :] = ROWS - 1
    return tokens


def test_it_is_the_published_network(tmp_path: Path, tokens: Tensor) -> None:
    weights = checkpoint()
    denoiser = load_mdlm(write(tmp_path, weights))
    assert isinstance(denoiser, Denoiser)
    assert (denoiser.vocab_size, denoiser.mask_id, denoiser.config.heads) == (11, 11, 3)
    logits = torch.stack([plain(weights, row) for row in tokens])
    expected = torch.log_softmax(logits[tokens == 11][:, :11], -1)
    assert expected.std() > 0.3
    torch.testing.assert_close(denoiser(tokens), expected, rtol=1e-4, atol=1e-4)
    # Without the prefix, without the frequencies, several sequences at a time: the same.
    bare = {k.removeprefix("backbone."): v for k, v in weights.items() if "rotary" not in k}
    other = load_mdlm(write(tmp_path, bare), rows=2)
    torch.testing.assert_close(other(tokens), expected, rtol=1e-4, atol=1e-4)


def test_answers_are_packed_float32_and_the_same_bits_in_any_batch(
    tmp_path: Path, tokens: Tensor
) -> None:
    denoiser = load_mdlm(write(tmp_path, checkpoint()), rows=2)
    answer = denoiser(tokens)
    assert answer.shape == (int((tokens == 11).sum()), 11) and answer.dtype == torch.float32
    torch.testing.assert_close(answer.exp().sum(1), torch.ones(len(answer)))
    assert torch.equal(denoiser(tokens[2:]), answer[-LENGTH:])
    assert torch.equal(denoiser(tokens.flip(0))[:LENGTH], answer[-LENGTH:])
    at = torch.zeros_like(tokens, dtype=torch.bool)
    at[2, 4] = True
    assert torch.equal(denoiser(tokens, at), answer[[-3]])
    assert denoiser(tokens, at & False).shape == (0, 11)


def test_a_mask_of_the_tokenizers_own(tmp_path: Path, tokens: Tensor) -> None:
    """As in the LM1B checkpoint, where [MASK] is one of BERT's tokens."""
    weights = checkpoint()
    denoiser = load_mdlm(write(tmp_path, weights), mask_id=4)
    assert (denoiser.vocab_size, denoiser.mask_id) == (12, 4)
    tokens = torch.where(tokens == 11, 4, tokens)
    logits = torch.stack([plain(weights, row) for row in tokens])[tokens == 4]
    logits[:, 4] = -torch.inf
    torch.testing.assert_close(
        denoiser(tokens), torch.log_softmax(logits, -1), rtol=1e-4, atol=1e-4
    )
    with pytest.raises(MaskwalkError, match="load it with device='meta'"):
        denoiser(tokens.to("meta"), torch.ones(tokens.shape, dtype=torch.bool))
    with pytest.raises(MaskwalkError, match=r"mask 12 is not a token .* 0\.\.11"):
        load_mdlm(tmp_path, mask_id=12)


def test_what_does_not_fit_is_a_sentence(tmp_path: Path) -> None:
    weights = checkpoint()
    fewer = {k: v for k, v in weights.items() if k != "backbone.blocks.1.attn_out.weight"}
    with pytest.raises(MaskwalkError, match=r"lacks blocks\.1\.attn_out\.weight \(1 missing"):
        load_mdlm(write(tmp_path, fewer))
    with pytest.raises(MaskwalkError, match=r"has lm_head\.weight \(0 missing, 1 unknown"):
        load_mdlm(write(tmp_path, weights | {"backbone.lm_head.weight": torch.ones(3)}))
    with pytest.raises(MaskwalkError, match=r"config\.json says vocab_size = 50258, the weights"):
        load_mdlm(write(tmp_path, weights, vocab_size=50258))
    with pytest.raises(MaskwalkError, match=r"config\.json says n_heads = 4"):
        load_mdlm(write(tmp_path, weights, n_heads=4))
    with pytest.raises(MaskwalkError, match="time conditioning"):
        load_mdlm(write(tmp_path, weights, time_conditioning=True))
    with pytest.raises(MaskwalkError, match="another configuration"):
        wrong = weights | {"backbone.output_layer.linear.bias": torch.ones(ROWS - 1)}
        load_mdlm(write(tmp_path, wrong))
    with pytest.raises(MaskwalkError, match="not an MDLM checkpoint"):
        load_mdlm(write(tmp_path, {"bert.pooler.bias": torch.ones(3)}))
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-3])
    with pytest.raises(MaskwalkError, match="not a complete safetensors file"):
        load_mdlm(tmp_path)
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "model.safetensors").write_bytes(whole)
    with pytest.raises(MaskwalkError, match="must be JSON"):
        load_mdlm(tmp_path)


def test_the_public_checkpoint_would_fit() -> None:
    """Its shapes (50,258 tokens, 768 wide, 12 blocks, conditioning 128), without its weights."""
    from maskwalk.denoisers.network.weights import MDLM as SHAPE
    from maskwalk.denoisers.network.weights import layout

    named = layout(SHAPE).named(torch.empty(1, layout(SHAPE).size, device="meta"))
    assert named["vocab_embed.embedding"].shape[1:] == (50_258, 768)
    assert named["blocks.11.adaLN_modulation.weight"].shape[1:] == (6 * 768, 128)
    assert named["sigma_map.mlp.0.weight"].shape[1:] == (128, 256)
    assert len(named) == 10 + 12 * 10 == len(checkpoint()) - 1 + 10 * 10
