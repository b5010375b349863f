"""Random order with block sizes of its own: `sizes[r]` random positions in round r.

Which sizes lose least for a number of calls depends on the law only through its information curve:
`maskwalk.optimal_sizes(curve, calls)` computes them, and the spec then holds all there is
to know: `optimal_random(sizes=(1, 2, 4, 7, 10))`.

Source: this project (analysis/plans). The same schedules, as the optimum over an information curve
of random orders, are in [arXiv 2511.04647] and [arXiv 2510.25544].
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import MaskwalkError, whole


@SAMPLERS.register("optimal_random")
@dataclass(frozen=True)
class OptimalRandom(UnmaskingPolicy):
    """Uniformly random: `sizes[r]` positions in round r; the last size repeats until done."""

    sizes: tuple[int, ...] = (1,)
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"sizes": (1, 2, 3)},
        {"sizes": (2, 1)},
        {"sizes": (1, 1, 2, 4, 8)},
    )

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, tuple) or not self.sizes:
            raise MaskwalkError(
                f"sizes must be a tuple of whole numbers, such as (1, 2, 4), not {self.sizes!r}."
            )
        for size in self.sizes:
            whole("every size", size, 1)

    def first_picks(self, length: int) -> range:
        """Any position, always."""
        return range(length)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """A uniform subset of this round's size."""
        return view.random(self.sizes[min(view.round, len(self.sizes) - 1)]), state
