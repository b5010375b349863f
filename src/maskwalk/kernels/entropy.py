# mypy: ignore-errors
"""Entropy of every marginal in one pass: a table of gigabytes is read once and never written."""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Float64
from torch import Tensor

WIDTH = 512  # tokens at a time


@triton.jit
def _entropy(log_probs, out, VOCAB, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    nats = tl.zeros((WIDTH,), tl.float64)
    for start in range(0, VOCAB, WIDTH):
        column = start + tl.arange(0, WIDTH)
        at = log_probs + row * VOCAB + column
        x = tl.load(at, column < VOCAB, float("-inf")).to(tl.float64)
        p = tl.exp(x)
        nats += tl.where(p > 0, -p * x, 0.0)
    tl.store(out + row, tl.sum(nats, 0))


def entropy(log_probs: Float[Tensor, "rows vocab"]) -> Float64[Tensor, " rows"]:
    """-Σ p log p of every row, in float64."""
    log_probs = log_probs.contiguous()
    rows, vocab = log_probs.shape
    out = log_probs.new_empty(rows, dtype=torch.float64)
    if rows:
        _entropy[(rows,)](log_probs, out, vocab, WIDTH=WIDTH)
    return out
