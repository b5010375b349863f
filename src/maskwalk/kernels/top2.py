# mypy: ignore-errors
"""The two largest log-probabilities of every marginal, in one pass over a table of gigabytes."""

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

WIDTH = 1024  # tokens at a time


@triton.jit
def _top2(log_probs, out, VOCAB, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, WIDTH)
    first = tl.full((WIDTH,), float("-inf"), log_probs.dtype.element_ty)
    second = first
    for start in range(0, VOCAB, WIDTH):  # each lane keeps the two largest that it sees
        column = start + lane
        x = tl.load(log_probs + row * VOCAB + column, column < VOCAB, float("-inf"))
        second = tl.maximum(second, tl.minimum(first, x))
        first = tl.maximum(first, x)
    winner = tl.argmax(first, 0)
    tl.store(out + 2 * row, tl.max(first, 0))
    tl.store(out + 2 * row + 1, tl.max(tl.where(lane == winner, second, first), 0))


def top2(log_probs: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows 2"]:
    """The two largest of every row, the larger first; -inf where a row has only one."""
    log_probs = log_probs.contiguous()
    rows, vocab = log_probs.shape
    out = log_probs.new_empty((rows, 2))
    if rows:
        _top2[(rows,)](log_probs, out, vocab, WIDTH=WIDTH)
    return out
