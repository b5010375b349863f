"""Stop at end-of-text: what lies behind the first drawn end-of-text token is not asked for.

As soon as a sequence holds the token at a position that was not given, every masked position
behind it is filled with the same token at no cost, so the sequence is done when what lies before
is. Tokens that were revealed behind it earlier stay; the text ends before them. Passages that begin
with the token are allowed by `first`: before that position it ends nothing.
"""

from dataclasses import dataclass, replace

from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError


@dataclass(frozen=True)
class StopAt(Sampler):
    """Another sampler that stops where `token` is drawn."""

    inner: Sampler
    token: int
    first: int = 0

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

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One round, and what follows from an end-of-text in it."""
        after = self.inner.step(canvas, denoise, rng)
        over = ends(after.tokens, after.given, self.token, self.first)
        behind = after.masked & (over.cumsum(1) > 0)
        return replace(after, tokens=after.tokens.masked_fill(behind, self.token))


def ends(
    tokens: Int[Tensor, "batch length"],
    given: Bool[Tensor, "batch length"],
    token: int,
    first: int = 0,
) -> Bool[Tensor, "batch length"]:
    """Where an end-of-text was drawn, from position `first` on."""
    drawn = (tokens == token) & ~given
    drawn[:, :first] = False
    return drawn
