# mypy: ignore-errors
"""log softmax in float64 of the rows asked for, in one pass over their logits."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _log_marginals(logits, bias, rows, out, VOCAB: tl.constexpr, PADDED, WIDTH: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row, column = tl.load(rows + program), tl.arange(0, WIDTH)
    inside = column < VOCAB
    x = tl.load(logits + row * PADDED + column, inside, float("-inf"))
    x = (x + tl.load(bias + column, inside, 0.0).to(tl.float32)).to(tl.float64)
    x -= tl.max(x, 0)
    x -= tl.log(tl.sum(tl.exp(x), 0))
    tl.store(out + program * VOCAB + column, x, inside)


def log_marginals(
    logits: Tensor, bias: Tensor, rows: Tensor, vocab: int, out: Tensor | None = None
) -> Tensor:
    """log softmax(logits + bias) in float64, of the rows asked for only (no gradient)."""
    if out is None:
        out = logits.new_empty((len(rows), vocab), dtype=torch.float64)
    if len(rows):
        _log_marginals[(len(rows),)](
            logits,
            bias,
            rows,
            out,
            VOCAB=vocab,
            PADDED=logits.shape[-1],
            WIDTH=triton.next_power_of_2(vocab),
        )
    return out
