"""How many calls bisection takes.

The paper says O(k log(l/k)) for l masked positions; these bounds have their constants:

    plain    k ⌈log₂(l/k + 1)⌉            after r levels the longest run has at most (l+k)/2^r − k
    guided   k (1 + ⌈log_{4/3}(l/k)⌉)     for l ≥ k, else l: the pivot may be off by a quarter

Checked: the calls of the policies themselves, for l = 1 … 64 and k = 1 … 8 (guided: led by random
scores), and the most that scores could ever make guided bisection take: a level costs min(k, run)
calls, and from a run of l the longest that can be left is one side of the outermost pivot's
separator.
"""

from collections.abc import Callable, Iterator
from math import ceil, log

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.denoiser import masked_positions
from maskwalk.paper.theory.check import Check
from maskwalk.samplers import Bisection, GuidedBisection
from maskwalk.streams import Streams

LONGEST, WIDEST, TRIES = 64, 8, 8
FAR, WIDE = 600, 40  # of the worst case, which needs no decoding


class Restless:
    """Two tokens with other marginals at every call: scores that lead anywhere."""

    vocab_size, mask_id, score_grid = 2, 2, 1e-12

    def __init__(self) -> None:
        self._noise = torch.Generator().manual_seed(0)

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Random marginals."""
        rows = int(masked_positions(tokens, self.mask_id, at).sum())
        noise = torch.randn((rows, 2), generator=self._noise, dtype=torch.float64)
        return torch.log_softmax(noise, -1)


def plain_bound(length: int, order: int) -> int:
    """k ⌈log₂(l/k + 1)⌉, in whole numbers."""
    levels = 0
    while order * 2**levels < length + order:
        levels += 1
    return order * levels


def guided_bound(length: int, order: int) -> int:
    """k (1 + ⌈log_{4/3}(l/k)⌉); l where a run is no longer than a separator."""
    if length <= order:
        return length
    return order * (1 + ceil(log(length / order) / log(4 / 3) - 1e-9))


def calls(policy: UnmaskingPolicy, tries: int = 1) -> Int[Tensor, " lengths"]:
    """The most calls of `tries` decodings, for 1 … LONGEST masked positions beside given ones."""
    size = torch.arange(1, LONGEST + 1).repeat_interleave(tries)
    tokens = torch.where(torch.arange(LONGEST) < size[:, None], Restless.mask_id, 0)
    decoded = decode(policy, Restless(), tokens, streams=Streams(0, len(tokens)))
    return decoded.calls.view(LONGEST, tries).amax(1)


def worst(length: int, order: int) -> int:
    """The most calls guided bisection can take, whatever the scores."""
    total = 0
    while length > 0:
        total += min(order, length)
        length = _left(length, order)
    return total


def _left(length: int, order: int) -> int:
    """The longest run that can be left of one: the separator grows away from it, if it can."""
    half = (length + 1) // 2
    before = (length - half) // 2  # the outermost pivots have so many positions beyond them
    behind = length - before - half
    grown = min(order, length) - 1
    sides = ((before, length - before - 1), (behind, length - behind - 1))
    # What does not fit into the short side is taken from the long one.
    return max(far - max(0, grown - near) for near, far in sides)


def depth() -> Iterator[Check]:
    """Both bounds, and the depth of the paper's run on text."""
    orders = range(1, WIDEST + 1)
    plain = {k: calls(Bisection(k)) for k in orders}
    guided = {k: calls(GuidedBisection(k), TRIES) for k in orders}
    yield _within("bisection: calls ≤ k⌈log₂(l/k+1)⌉", plain, plain_bound)
    yield _within("guided: calls ≤ k(1+⌈log_4/3(l/k)⌉)", guided, guided_bound)
    yield _within("guided: calls ≤ the worst case", guided, worst)
    pairs = [(n, k) for n in range(1, FAR) for k in range(1, WIDE)]
    over = max(worst(n, k) - guided_bound(n, k) for n, k in pairs)
    yield Check("guided: worst case, l < 600, k < 40", "none above", f"over by {over}", over <= 0)
    text = decode(
        Bisection(32),
        Restless(),
        torch.full((1, 1024), Restless.mask_id),
        streams=Streams(0, 1),
    )
    taken = int(text.calls)
    yield Check("bisection: calls, k=32, L=1024", "161", str(taken), taken == 161)


def _within(claim: str, found: dict[int, Tensor], bound: Callable[[int, int], int]) -> Check:
    """The check that no number of calls is above its bound; says how many are at it."""
    room = torch.tensor(
        [bound(n, k) - int(taken) for k, row in found.items() for n, taken in enumerate(row, 1)]
    )
    reached = f"{int((room == 0).sum())} reach it"
    return Check(claim, "none above", reached, bool((room >= 0).all()))
