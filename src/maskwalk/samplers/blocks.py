"""Blocks: the inner sampler inside one block after another, left to right.

What comes after the prompt (the tokens given at the start of a sequence) is cut into blocks of
`size` positions; in each sequence only the first block that is not finished is open, and the inner
sampler sees nothing else as masked. It still reads the marginals given everything revealed, with
the mask at all that is not. It starts anew in each block: what it remembers is reset, unless it
says that it lasts (pc's frequencies, klass's histories). Any sampler can be the inner one: a
policy, a rule that draws first (`blocks(size=32, inner=low_confidence(steps=32))` is LLaDA's), one
that takes tokens back, which is asked for the open block only. Defaults: size 8, one most confident
position a round.

Source: semi-autoregressive decoding of LLaDA [arXiv 2502.09992] (blocks of 32 of 128 positions,
counted from the end of the prompt, as here); Fast-dLLM, DUS and dInfer run inside such blocks.
Public code moves the whole batch to the next block together; here every sequence has its own. A
schedule in rounds (block="exponential") runs on over blocks; one in `steps` is a block's own.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import whole
from maskwalk.samplers.parts.inner import Default, Inner, policy, sampler
from maskwalk.samplers.parts.views import Part
from maskwalk.specs import Spec

ONE = Default("confidence", (), {"block": 1})


@SAMPLERS.register("blocks")
@dataclass(frozen=True)
class Blocks(Sampler):
    """Another sampler inside blocks of `size`, left to right from the end of the prompt."""

    size: int = 8
    inner: Inner = ONE
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"size": size, "inner": Spec("confidence", (), {"block": block})}
        for size, block in ((2, 1), (4, 2), (8, 2), (8, 4), (16, 8))
    )

    def __new__(cls, size: int = 8, inner: Inner = ONE) -> "Blocks":
        """A policy where the inner sampler is one: it can be enumerated and replayed then."""
        plain = cls is Blocks and isinstance(sampler("inner", inner), UnmaskingPolicy)
        return object.__new__(PolicyBlocks if plain else cls)

    def __post_init__(self) -> None:
        whole("size", self.size, 1)
        object.__setattr__(self, "inner", sampler("inner", self.inner))

    @property
    def block_size(self) -> int:  # type: ignore[override]
        """The positions of a block."""
        return self.size

    @property
    def law_kind(self) -> str:
        """The inner sampler's: what it does it does in every block."""
        return sampler("inner", self.inner).law_kind

    @property
    def reveals_one(self) -> bool:
        """As the inner sampler."""
        return sampler("inner", self.inner).reveals_one

    @property
    def remasks(self) -> bool:  # type: ignore[override]
        """Whether the inner sampler does."""
        return sampler("inner", self.inner).remasks

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the inner sampler remembers from one block to the next, also of larger blocks."""
        return tuple(f"inner {name}" for name in sampler("inner", self.inner).lasting)

    def first_picks(self, length: int) -> range | None:
        """The inner sampler's, in the first block."""
        return sampler("inner", self.inner).first_picks(min(self.size, length))

    def init(self, canvas: Canvas) -> State:
        """`block`: the one each sequence is in (-1: none yet); the rest is the inner sampler's."""
        state = sampler("inner", self.inner).init(canvas)
        return {"block": torch.full_like(canvas.tokens[:, 0], -1)} | _named(state)

    def max_rounds(self, length: int) -> int:
        """The inner sampler's in every block."""
        blocks = -(-length // self.size)
        return blocks * sampler("inner", self.inner).max_rounds(min(self.size, length))

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Nothing masked, and the inner sampler has done with the last block."""
        complete = ~canvas.masked.any(1)
        if not self.remasks or not bool(complete.any()):
            return complete
        return complete & (self._done(canvas) | (canvas.state["block"] < 0))

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """The inner sampler's step in each sequence's block."""
        inner, before = sampler("inner", self.inner), canvas.state["block"]
        block = self._block(canvas, before)
        following = self._first(_place(canvas), canvas.masked)
        now = torch.where((before < 0) | inner.finished(block), following, before)
        if not torch.equal(now, before):
            block = self._block(canvas, now)
        after = inner.step(block, denoise, rng)
        return replace(canvas, tokens=after.tokens, state={"block": now} | _named(after.state))

    def _first(self, place: Tensor, masked: Tensor) -> Int[Tensor, " batch"]:
        """The number of the first block with a masked position."""
        number = place.div(self.size, rounding_mode="floor")
        return number.masked_fill(~masked, number.shape[1]).amin(1)

    def _done(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Where the inner sampler has finished the block each sequence is in."""
        return sampler("inner", self.inner).finished(self._block(canvas, canvas.state["block"]))

    def _block(self, canvas: Canvas, now: Int[Tensor, " batch"]) -> Canvas:
        """The canvas as the inner sampler sees it: only the block is open, the rest is given."""
        place = _place(canvas)
        inside = place.div(self.size, rounding_mode="floor") == now[:, None]
        inside = inside if canvas.open is None else inside & canvas.open
        length = canvas.tokens.shape[1] if canvas.span is None else canvas.span
        place, span = self._inner_place(place, length)
        block = replace(canvas, given=canvas.given | ~inside, open=inside, place=place, span=span)
        return replace(block, state=self._state(block, now, canvas.state))

    def _inner_place(self, place: Tensor, length: int) -> tuple[Int[Tensor, "batch length"], int]:
        """(where each position lies in its block, the positions of a block); inside the prompt,
        where nothing is ever chosen, some place of a block."""
        span = min(self.size, length)
        return place.remainder(self.size).clamp(max=span - 1), span

    def _state(self, block: Canvas, now: Int[Tensor, " batch"], state: State) -> State:
        """What the inner sampler remembers in this block: begun anew where the block is new."""
        inner, before = sampler("inner", self.inner), state["block"]
        kept, anew = {}, now != before
        for name, fresh in inner.init(block).items():
            kept[name] = state[f"inner {name}"]
            if name not in inner.lasting:
                shape = (-1, *[1] * (fresh.ndim - 1))
                kept[name] = torch.where(anew.view(shape), fresh, kept[name])
        return kept


class PolicyBlocks(Blocks, UnmaskingPolicy):
    """Blocks of a policy: a policy as well."""

    law_kind, step = UnmaskingPolicy.law_kind, UnmaskingPolicy.step

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The inner policy's choice in the first open block."""
        inner, place = policy("inner", self.inner), view.block_place
        place = _after_prompt(view.given) if place is None else place
        now = self._first(place, view.masked)
        inside = place.div(self.size, rounding_mode="floor") == now[:, None]
        place, span = self._inner_place(place, view.span)
        part = Part(view, inside, place, span)
        block = Canvas(view.tokens, view.given, view.mask_id, view.round, {}, part.masked)
        block = replace(block, place=place, span=span)
        chosen, inner_state = inner.choose(part, self._state(block, now, state), rng)
        return chosen, {"block": now} | _named(inner_state)


def _place(canvas: Canvas) -> Int[Tensor, "batch length"]:
    """Where each position lies in what is cut into blocks: the sequence, or a larger block."""
    return _after_prompt(canvas.given) if canvas.place is None else canvas.place


def _after_prompt(given: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    """How far each position lies behind the end of the prompt; negative inside it."""
    prompt = given.to(torch.int64).cumprod(1).sum(1, keepdim=True)
    return torch.arange(given.shape[1], device=given.device) - prompt


def _named(state: State) -> State:
    return {f"inner {name}": value for name, value in state.items()}
