"""What the wrappers show their inner policy: a part of the canvas, or scores with noise on them."""

from functools import cached_property

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.kernels.small import small


class Behind(View):
    """A view of a view: marginals, calls and picks are the whole's, so nothing is asked twice."""

    def __init__(self, whole: View) -> None:
        self.tokens, self.masked, self.given = whole.tokens, whole.masked, whole.given
        self._masked_few = whole._masked_few
        self.round, self.mask_id, self.score_grid = whole.round, whole.mask_id, whole.score_grid
        self.span, self.block_place = whole.span, whole.block_place
        self._denoise, self._rng, self._whole = whole._denoise, whole._rng, whole
        self._noise: Tensor | float = whole._noise if isinstance(whole, Behind) else 0.0

    @cached_property
    def place(self) -> Int[Tensor, "batch length"]:
        """The whole's."""
        return self._whole.place

    @cached_property
    def whole(self) -> View:
        """The view of the whole canvas."""
        return self._whole.whole

    @property
    def scored(self) -> Float[Tensor, "rows vocab"]:
        """The whole's, at what is masked here."""
        return self._whole.scored_in(self.masked)

    @property
    def log_marginals(self) -> Float[Tensor, "rows vocab"]:
        """The whole's marginals at what is masked here."""
        return self._whole.log_marginals_in(self.masked)

    def log_marginals_in(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the whole's."""
        return self._whole.log_marginals_in(part)

    def scored_in(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the whole's."""
        return self._whole.scored_in(part)

    def log_marginals_at(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the whole's."""
        return self._whole.log_marginals_at(chosen)

    def unpack_score(self, packed: Float[Tensor, " rows"]) -> Float64[Tensor, "batch length"]:
        """The score less the noise; infinite where nothing is masked."""
        return self.unpack(packed) - self._noise

    def _pick(self, scores: Tensor, count: int | Tensor, ties: str) -> Tensor:
        return self._whole._pick(scores, count, ties)

    def _pick_each(self, scores: Tensor, group: Tensor) -> Tensor:
        return self._whole._pick_each(scores, group)


class Part(Behind):
    """A view in which only the positions in `where` look masked; `place` and `span` of its own."""

    def __init__(
        self,
        whole: View,
        where: Bool[Tensor, "batch length"],
        place: Int[Tensor, "batch length"] | None = None,
        span: int = 0,
    ) -> None:
        super().__init__(whole)
        self.masked = whole.masked & where
        self._masked_few = small(self.masked)
        if place is not None:
            self.place, self.span, self.block_place = place, span, place


class Noisy(Behind):
    """A view whose scores have `noise` subtracted; the marginals are left alone."""

    def __init__(self, whole: View, noise: Float64[Tensor, "batch length"]) -> None:
        super().__init__(whole)
        self._noise = self._noise + noise


def ask_once(view: View, inner: UnmaskingPolicy) -> None:
    """Asks for all that a wrapper and its inner policy read, where that is more than is open here:
    after less had been asked for it would be a second call."""
    if inner.reads_whole:
        view.whole.log_marginals_in(view.whole.masked)


def gumbel(uniform: Float64[Tensor, "batch length"]) -> Float64[Tensor, "batch length"]:
    """Standard Gumbel noise from uniforms in [0, 1)."""
    return -torch.log(-torch.log(uniform.clamp(min=2.0**-54)))
