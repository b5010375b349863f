"""Philox on an accelerator in one kernel: the same words as `draws.philox`.

Ten rounds of integer arithmetic on tensors are over a hundred tiny kernels, and a round of decoding
would mostly wait for their launches. Triton has the same Philox-4x32-10 built in.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor

BLOCK = 1024


@triton.jit
def _kernel(c0, c1, c2, c3, out, seed, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    a = tl.load(c0 + place, inside, 0).to(tl.uint32)
    b = tl.load(c1 + place, inside, 0).to(tl.uint32)
    c = tl.load(c2 + place, inside, 0).to(tl.uint32)
    d = tl.load(c3 + place, inside, 0).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(seed, a, b, c, d, 10)
    tl.store(out + place, w0.to(tl.int64), inside)
    tl.store(out + count + place, w1.to(tl.int64), inside)
    tl.store(out + 2 * count + place, w2.to(tl.int64), inside)
    tl.store(out + 3 * count + place, w3.to(tl.int64), inside)


def philox(counter: list[Int[Tensor, "*shape"]], key: tuple[int, int]) -> list[Tensor]:
    """Four int64 tensors holding 32-bit words in, four out; as `draws.philox`."""
    flat = [c.contiguous() for c in counter]
    out = torch.empty((4, *flat[0].shape), dtype=torch.int64, device=flat[0].device)
    count = flat[0].numel()
    if count:
        seed = key[0] | key[1] << 32
        seed -= (seed >> 63) << 64  # as the signed number with the same bits
        _kernel[(triton.cdiv(count, BLOCK),)](*flat, out, seed, count, BLOCK=BLOCK)
    return list(out.unbind(0))
