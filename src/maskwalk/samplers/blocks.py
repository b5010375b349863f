"""Blocks: the inner policy inside one block after another, left to right.

The canvas is cut into blocks of `size` positions, [0, size), [size, 2·size), …; in each sequence
only the first block that is not complete is open, and the inner policy sees nothing else as masked
(it still reads the marginals given everything revealed). It starts anew in each block: what it
remembers is reset. Defaults: size 8, one most confident position a round.

Source: semi-autoregressive decoding of LLaDA [arXiv 2502.09992] (blocks of 32 of 128 positions);
Fast-dLLM, DUS and dInfer run inside such blocks. Public code moves the whole batch to the next
block together; here every sequence has its own. A schedule in rounds ("exponential") runs on over
blocks.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import whole
from maskwalk.samplers.parts.inner import Default, Inner, policy
from maskwalk.samplers.parts.views import Part
from maskwalk.specs import Spec

ONE = Default("confidence", (), {"block": 1})


@SAMPLERS.register("blocks")
@dataclass(frozen=True)
class Blocks(UnmaskingPolicy):
    """Another policy inside blocks of `size`, left to right."""

    size: int = 8
    inner: Inner = ONE
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"size": size, "inner": Spec("confidence", (), {"block": block})}
        for size, block in ((2, 1), (4, 2), (8, 2), (8, 4), (16, 8))
    )

    def __post_init__(self) -> None:
        whole("size", self.size, 1)
        object.__setattr__(self, "inner", policy("inner", self.inner))

    def first_picks(self, length: int) -> range | None:
        """The inner policy's, in the first block."""
        return policy("inner", self.inner).first_picks(min(self.size, length))

    def init(self, canvas: Canvas) -> State:
        """`block`: the one each sequence is in; the rest is the inner policy's."""
        state = policy("inner", self.inner).init(canvas)
        none = torch.full_like(canvas.tokens[:, 0], -1)
        return {"block": none} | {f"inner {name}": value for name, value in state.items()}

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The inner policy's choice in the first open block."""
        inner = policy("inner", self.inner)
        block = torch.arange(view.masked.shape[1], device=view.masked.device) // self.size
        now = torch.where(view.masked, block, len(block)).amin(1)
        part = Part(view, block == now[:, None], self.size)
        # Outside the block nothing may look masked: any other value will do.
        tokens = torch.where(part.masked | ~view.masked, view.tokens, view.mask_id + 1)
        fresh = inner.init(Canvas(tokens, view.given, view.mask_id, view.round))
        inner_state = {name: state[f"inner {name}"] for name in fresh}
        chosen, inner_state = inner.choose(
            part, _where(now != state["block"], fresh, inner_state), rng
        )
        return chosen, {"block": now} | {
            f"inner {name}": value for name, value in inner_state.items()
        }


def _where(rows: Bool[Tensor, " batch"], one: State, other: State) -> State:
    """Some rows of one state, the rest of another."""
    return {
        name: torch.where(rows.view(-1, *[1] * (value.dim() - 1)), value, other[name])
        for name, value in one.items()
    }
