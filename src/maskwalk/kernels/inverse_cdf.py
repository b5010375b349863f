# mypy: ignore-errors
"""Drawing by inverse CDF in one pass over the marginals, instead of ten."""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Float64, Int
from torch import Tensor


@triton.jit
def _inverse_cdf(log_probs, uniforms, out, VOCAB, WIDTH: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
    inside = column < VOCAB
    x = tl.load(log_probs + row * VOCAB + column, inside, float("-inf")).to(tl.float64)
    p = tl.exp(x)
    cdf = tl.cumsum(p, 0)
    total = tl.max(cdf, 0)
    beyond = (cdf > tl.load(uniforms + row) * total) & (p > 0)
    first = tl.min(tl.where(beyond, column, WIDTH), 0)
    last = tl.max(tl.where(p > 0, column, 0), 0)
    tl.store(out + row, tl.where(first < WIDTH, first, last).to(tl.int64))


def inverse_cdf(log_probs: Float[Tensor, "n vocab"], u: Float64[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The first token of positive probability whose cumulative probability exceeds u."""
    log_probs = log_probs.contiguous()
    rows, vocab = log_probs.shape
    out = torch.empty(rows, dtype=torch.int64, device=log_probs.device)
    if rows:
        width = triton.next_power_of_2(vocab)
        _inverse_cdf[(rows,)](log_probs, u.contiguous(), out, vocab, WIDTH=width)
    return out
