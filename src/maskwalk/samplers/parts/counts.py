"""How many positions a round reveals: a fixed number, 1, 2, 4, …, or all in a number of steps.

`block`: so many a round, or "exponential". `steps` = T instead spreads the N positions masked at
first over T rounds, by `spread`:

    even   ⌊N/T⌋ a round, one more in the first N mod T (LLaDA)
    late   ⌊m (1 − s/t)⌋ of the m still masked, t falling from 1 to 10⁻³ in T equal steps, and all
           in the last (Dream): later rounds reveal more, and a round that would reveal nothing is
           left out, where Dream's code calls the network for it

More steps than positions are one position a round.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, State
from maskwalk.decoding.view import View
from maskwalk.errors import ROUNDS, MaskwalkError, one_of, whole
from maskwalk.kernels.small import large, small

Block = int | str
SPREADS = ("even", "late")
LAST = 1e-3  # where time ends in `late`


def check_counts(block: object, steps: object, spread: str) -> None:
    """Refuses anything but a positive whole number or "exponential", or a number of steps."""
    if isinstance(block, str):
        if block != "exponential":
            raise MaskwalkError(f'block must be a whole number or "exponential", not {block!r}.')
    else:
        whole("block", block, 1)
    if steps is not None:
        whole("steps", steps, 1, ROUNDS)
        if block != 1:
            raise MaskwalkError("Say block or steps, not both: steps spreads the positions itself.")
    one_of("spread", spread, SPREADS)


def counted_from(canvas: Canvas, steps: int | None) -> State:
    """What counting needs to remember: how many there were, and the steps since."""
    if steps is None:
        return {}
    total = canvas.masked.sum(1)
    return {"total": total, "done": torch.zeros_like(total)}


def count_now(
    view: View, state: State, block: Block, steps: int | None, spread: str
) -> tuple[int | Int[Tensor, " batch"], State]:
    """How many positions to reveal in this round, and what to remember."""
    if steps is None:
        return 1 << min(view.round, 30) if isinstance(block, str) else block, state
    if spread == "even":
        count = spread_evenly(state["total"], state["done"], steps, least=1)
        return count, state | {"done": one_more(state["done"])}
    left, done = view.masked.sum(1), state["done"]
    count = _late(left, done, steps)
    while bool((count == 0).any()):
        done = torch.where(count == 0, done + 1, done)
        count = _late(left, done, steps)
    return count, state | {"done": done + 1}


def spread_evenly(
    total: Int[Tensor, " batch"], done: Int[Tensor, " batch"], steps: int, least: int = 0
) -> int | Int[Tensor, " batch"]:
    """How many of `total` fall to step `done` of `steps`: equal shares, the first ones larger."""
    if total.is_cpu and total.numel() == 1:  # numbers of Python cost a fraction of arrays of one
        share, more = divmod(int(total), steps)
        return max(least, share + (int(done) < more))
    numbers = small(total)
    count = large(numbers // steps + (small(done) < numbers % steps))
    return count.clamp(min=least) if least else count


def one_more(done: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
    """The steps done after this one."""
    return large(small(done) + 1)


def _late(
    left: Int[Tensor, " batch"], done: Int[Tensor, " batch"], steps: int
) -> Int[Tensor, " batch"]:
    """How many of the `left` masked ones fall to step `done` of Dream's schedule."""
    now, then = (1 - (done + j).to(torch.float64) * (1 - LAST) / steps for j in (0, 1))
    share = (left * (1 - then / now)).floor().to(torch.int64)
    return torch.where(done < steps - 1, share, left)


SWEEP = tuple({"block": block} for block in (1, 2, 4, 6, 8, "exponential"))
