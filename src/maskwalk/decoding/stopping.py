"""Where a text is over: what lies behind an end of it is not asked for.

`StopAt`: as soon as a sequence holds an end token at a position that was not given, every masked
position behind it is filled with the first of the end tokens at no cost, so the sequence is done
when what lies before is. Tokens that were revealed behind it earlier stay; the text ends before
them. Passages that begin with the token are allowed by `first`: before that position it ends
nothing.

`StopText`: the same for strings, which may lie across tokens: a sequence is over when what is
revealed without a gap behind its prompt contains one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError


@dataclass(frozen=True)
class Stopping(Sampler):
    """Another sampler that may end sooner."""

    inner: Sampler

    def __post_init__(self) -> None:
        if self.inner.remasks:
            raise MaskwalkError(
                f"{self.inner!r} takes revealed tokens back, an end-of-text too, so it cannot stop "
                "there; leave stop out, or say stop=False (--no-stop)."
            )

    def init(self, canvas: Canvas) -> State:
        """The inner sampler's."""
        return self.inner.init(canvas)

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """The inner sampler's."""
        return self.inner.finished(canvas)

    def max_rounds(self, length: int) -> int:
        """The inner sampler's."""
        return self.inner.max_rounds(length)


@dataclass(frozen=True)
class StopAt(Stopping):
    """Another sampler that stops where `token`, or one of several, is drawn."""

    token: int | tuple[int, ...]
    first: int = 0

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One round, and what follows from an end-of-text in it."""
        after = self.inner.step(canvas, denoise, rng)
        over = ends(after.tokens, after.given, self.token, self.first)
        behind = after.masked & (over.cumsum(1) > 0)
        filler = self.token if isinstance(self.token, int) else self.token[0]
        return replace(after, tokens=after.tokens.masked_fill(behind, filler))


@dataclass(frozen=True)
class StopText(Stopping):
    """Another sampler that stops when one of `strings` stands behind the prompt; what is masked
    then is filled with `filler`. `read` makes text of tokens."""

    strings: tuple[str, ...]
    read: Callable[[list[int]], str]
    filler: int

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One round, and what follows from a stop string in it."""
        after = self.inner.step(canvas, denoise, rng)
        tokens = after.tokens.clone()
        for row, given in zip(tokens, after.given):
            begin = int(given.to(torch.int64).cumprod(0).sum())
            masked = (row == after.mask_id).nonzero()[:, 0]
            end = int(masked[0]) if len(masked) else len(row)
            text = self.read(row[begin:end].tolist()) if len(masked) else ""
            if stop_in(text, self.strings) is not None:
                row[masked] = self.filler
        return replace(after, tokens=tokens)


def stop_in(text: str, strings: tuple[str, ...]) -> int | None:
    """Where the first of some strings begins in a text; None if none of them is there."""
    places = [place for place in (text.find(string) for string in strings) if place >= 0]
    return min(places, default=None)


def ends(
    tokens: Int[Tensor, "batch length"],
    given: Bool[Tensor, "batch length"],
    token: int | tuple[int, ...],
    first: int = 0,
) -> Bool[Tensor, "batch length"]:
    """Where an end-of-text was drawn, from position `first` on."""
    some = torch.tensor(token, device=tokens.device)
    drawn = torch.isin(tokens, some) & ~given
    drawn[:, :first] = False
    return drawn
