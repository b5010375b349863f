"""The same network as ordinary PyTorch modules, one model at a time, one operation a line.

It is what the benchmark's eager loop trains, and what the tests compare the real one with. The
attribute names spell the keys of model files, so `load_state_dict` takes a model's named weights.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwalk.denoisers.network.weights import FREQUENCIES, DDiTConfig


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return F.layer_norm(x.float(), (x.shape[-1],)) * self.weight


class Embedding(nn.Module):
    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(rows, width))
        nn.init.kaiming_uniform_(self.embedding, a=math.sqrt(5))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.embedding[tokens]


class Sigma(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, sigma: Tensor) -> Tensor:
        half = FREQUENCIES // 2
        rates = torch.exp(-math.log(10_000) * torch.arange(half, device=sigma.device) / half)
        angles = sigma[:, None] * rates
        return F.silu(self.mlp(torch.cat([angles.cos(), angles.sin()], -1)))


def rotary(x: Tensor) -> Tensor:
    """Positions on axis 1 of (batch, length, heads, width)."""
    half = x.shape[-1] // 2
    rates = 10_000.0 ** -(torch.arange(half, device=x.device) / half)
    angle = (torch.arange(x.shape[1], device=x.device)[:, None] * rates)[:, None]
    a, b = x.float().chunk(2, -1)
    turned = [a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()]
    return torch.cat(turned, -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, config: DDiTConfig, dropout: float) -> None:
        super().__init__()
        d = config.hidden
        self.heads, self.dropout, self.causal = config.heads, dropout, config.causal
        self.norm1, self.norm2 = Norm(d), Norm(d)
        self.attn_qkv = nn.Linear(d, 3 * d, bias=False)
        self.attn_out = nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d)
        )
        self.adaLN_modulation = zero(nn.Linear(config.cond, 6 * d))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        batch, length, d = x.shape
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN_modulation(c)[:, None].chunk(
            6, -1
        )
        qkv = self.attn_qkv(self.norm1(x) * (1 + scale1) + shift1)
        q, k, v = qkv.view(batch, length, 3, self.heads, -1).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (rotary(q), rotary(k), v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        a = a.transpose(1, 2).reshape(batch, length, d)
        x = x + gate1 * F.dropout(self.attn_out(a), self.dropout, self.training)
        h = self.mlp(self.norm2(x) * (1 + scale2) + shift2)
        return x + gate2 * F.dropout(h, self.dropout, self.training)


class Output(nn.Module):
    def __init__(self, config: DDiTConfig) -> None:
        super().__init__()
        self.norm_final = Norm(config.hidden)
        self.linear = zero(nn.Linear(config.hidden, config.rows))
        self.adaLN_modulation = zero(nn.Linear(config.cond, 2 * config.hidden))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift, scale = self.adaLN_modulation(c)[:, None].chunk(2, -1)
        return self.linear(self.norm_final(x) * (1 + scale) + shift)


def zero(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class PlainDDiT(nn.Module):
    """(batch, length) tokens and (batch,) noise levels to (batch, length, rows) logits."""

    def __init__(self, config: DDiTConfig, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_embed = Embedding(config.rows, config.hidden)
        self.sigma_map = Sigma(config.cond)
        self.blocks = nn.ModuleList(Block(config, dropout) for _ in range(config.blocks))
        self.output_layer = Output(config)
        if config.tied:
            self.output_layer.linear.weight = self.vocab_embed.embedding

    def forward(self, tokens: Tensor, sigma: Tensor | None = None) -> Tensor:
        if sigma is None:
            sigma = torch.zeros(len(tokens), device=tokens.device)
        if self.config.causal:
            begin = torch.full_like(tokens[:, :1], self.config.mask_id)
            tokens = torch.cat([begin, tokens[:, :-1]], 1)
        x, c = self.vocab_embed(tokens), self.sigma_map(sigma)
        for block in self.blocks:
            x = block(x, c)
        return self.output_layer(x, c)
