# mypy: ignore-errors
"""Logits to log-marginals over a large vocabulary: shift, normalise and check in one kernel."""

import triton
import triton.language as tl
from jaxtyping import Float, Float32, Int32
from torch import Tensor

WIDTH = 4096  # tokens at a time


@triton.jit
def _shifted(logits, shift, column, VOCAB):
    """Logits plus their shift; what must never be drawn is -inf, whatever its logit is."""
    inside = column < VOCAB
    x = tl.load(logits + column, inside, 0.0).to(tl.float32)
    s = tl.load(shift + column, inside, float("-inf"))
    return tl.where(s == float("-inf"), s, x + s)


@triton.jit
def _normalise(logits, stride, shift, out, lost, VOCAB, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    column = tl.arange(0, WIDTH)
    top = tl.full((WIDTH,), float("-inf"), tl.float32)
    for start in range(0, VOCAB, WIDTH):
        top = tl.maximum(top, _shifted(logits, shift, start + column, VOCAB))
    largest = tl.max(top, 0)
    total = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, VOCAB, WIDTH):  # the row is still in the cache
        total += tl.exp(_shifted(logits, shift, start + column, VOCAB) - largest)
    nats = largest + tl.log(tl.sum(total, 0))
    for start in range(0, VOCAB, WIDTH):
        x = _shifted(logits, shift, start + column, VOCAB) - nats
        tl.store(out + row * VOCAB + start + column, x, start + column < VOCAB)
    if nats != nats:  # not a number: a logit was not finite, or no token is allowed
        tl.atomic_max(lost, 1)


def normalise(
    logits: Float[Tensor, "places padded"],
    shift: Float32[Tensor, " vocab"],
    out: Float32[Tensor, "places vocab"],
    lost: Int32[Tensor, ""],
) -> None:
    """Writes log softmax(logits + shift) to `out`; `lost` becomes 1 if a row has none."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    if len(out):
        _normalise[(len(out),)](
            logits, logits.stride(0), shift, out, lost, len(shift), WIDTH=WIDTH, num_warps=8
        )
