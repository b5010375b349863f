"""What a sampler works on: the canvas, what a policy sees of it, and the two kinds of sampler.

A `UnmaskingPolicy` only says *where*: it names positions before anything is drawn there, and the
base class then draws. Choosing by what was drawn biases the law even with a perfect denoiser, so
rules that do so (or that remask) are written as a general `Sampler` instead.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.denoisers.protocol import Denoiser
from maskwalk.draws import Draw, Purpose, Streams, inverse_cdf
from maskwalk.errors import MaskwalkError
from maskwalk.scores import score
from maskwalk.slices import keep_rows

State = dict[str, Tensor]  # what a policy remembers: tensors with a leading batch axis
INF = float("inf")


@dataclass(frozen=True)
class Canvas:
    """A batch of partly revealed sequences in one round of decoding."""

    tokens: Int[Tensor, "batch length"]
    given: Bool[Tensor, "batch length"]
    mask_id: int
    round: int = 0
    state: State = field(default_factory=dict)

    @property
    def masked(self) -> Bool[Tensor, "batch length"]:
        """Where nothing is revealed yet."""
        return self.tokens == self.mask_id

    def select(self, rows: Tensor) -> "Canvas":
        """Some of the rows, with what the policy remembers of them."""
        state = {name: value[rows] for name, value in self.state.items()}
        return replace(self, tokens=self.tokens[rows], given=self.given[rows], state=state)

    def reveal(
        self,
        chosen: Bool[Tensor, "batch length"],
        tokens: Int[Tensor, " n"],
        state: State | None = None,
    ) -> "Canvas":
        """The canvas with `tokens` (packed) written where `chosen` is true."""
        new = self.tokens.masked_scatter(chosen, tokens)
        return replace(self, tokens=new, state=self.state if state is None else state)


class RoundStreams:
    """The random streams of one round of a batch, and how tokens are drawn in it."""

    def __init__(self, streams: Streams, round: int, length: int, draw: Draw, ties: str) -> None:
        self.streams, self.round, self.length = streams, round, length
        self.drawing, self.ties = draw, ties
        self.watch: Callable[[Tensor, Tensor, Tensor], None] | None = None

    def uniform(self, purpose: Purpose = Purpose.CHOICE) -> Float64[Tensor, "batch length"]:
        """A uniform for every position, to choose by."""
        return self.streams.uniform(purpose, self.round, self.length)

    def draw(
        self, log_probs: Float[Tensor, "n vocab"], at: Bool[Tensor, "batch length"]
    ) -> Int[Tensor, " n"]:
        """One token for every position in `at` (packed), from its log-marginal."""
        rows, positions = at.nonzero(as_tuple=True)
        tokens = self.drawing(log_probs, self.streams, self.round, rows, positions)
        self.note(at, log_probs, tokens)
        return tokens

    def redraw(
        self, log_probs: Float[Tensor, "n vocab"], at: Bool[Tensor, "batch length"]
    ) -> Int[Tensor, " n"]:
        """A second token in the same round, from log-probabilities that are shaped already."""
        rows, positions = at.nonzero(as_tuple=True)
        u = self.streams.uniform_at(Purpose.REDRAW, self.round, rows, positions)
        return inverse_cdf(log_probs, u)

    def note(
        self,
        at: Bool[Tensor, "batch length"],
        log_probs: Float[Tensor, "n vocab"],
        tokens: Int[Tensor, " n"],
    ) -> None:
        """Tells the trace which marginals the tokens at `at` come from (`draw` does so itself)."""
        if self.watch is not None:
            self.watch(at, log_probs, tokens)


class View:
    """What a policy sees in a round; marginals are computed only if it asks for them."""

    def __init__(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> None:
        self.tokens, self.masked, self.given = canvas.tokens, canvas.masked, canvas.given
        self.round, self.mask_id = canvas.round, canvas.mask_id
        self.grid = denoise.grid
        # Where each position lies in the part that is worked on, and how long that part is.
        self.span = canvas.tokens.shape[1]
        self.place = torch.arange(self.span, device=canvas.tokens.device)
        self._denoise, self._rng = denoise, rng
        self._marginals: Tensor | None = None

    @property
    def log_marginals(self) -> Float[Tensor, "rows vocab"]:
        """Log-marginals of all masked positions, packed in row-major order."""
        if self._marginals is None:
            self._marginals = self._denoise(self.tokens, self.masked)
        return self._marginals

    def log_marginals_at(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """Log-marginals of some masked positions, without asking for the rest if nobody has."""
        if self._marginals is None:
            return self._denoise(self.tokens, chosen)
        return self._marginals[chosen[self.masked]]

    def last_look(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """`log_marginals_at`, when nobody asks afterwards: a large table is not copied for it."""
        if self._marginals is None:
            return self._denoise(self.tokens, chosen)
        table, self._marginals = self._marginals, None
        return keep_rows(table, chosen[self.masked])

    def spread(self, packed: Float[Tensor, " rows"]) -> Float64[Tensor, "batch length"]:
        """One number per masked position, laid out on the canvas; infinite elsewhere."""
        canvas = torch.full(self.masked.shape, INF, dtype=torch.float64, device=self.masked.device)
        return canvas.masked_scatter(self.masked, packed.to(torch.float64))

    def score(self, name: str) -> Float64[Tensor, "batch length"]:
        """The named score (lower is sooner), rounded to the denoiser's grid."""
        return self.lay(score(name, self.log_marginals, self.grid))

    def lay(self, packed: Float[Tensor, " rows"]) -> Float64[Tensor, "batch length"]:
        """`spread` for a score to rank by: what `stochastic` adds its noise to."""
        return self.spread(packed)

    def lowest(
        self,
        scores: Float64[Tensor, "batch length"],
        count: int | Int[Tensor, " batch"] = 1,
        among: Bool[Tensor, "batch length"] | None = None,
    ) -> Bool[Tensor, "batch length"]:
        """The `count` lowest-scored masked positions of each row; ties as `decode` was told."""
        return self._pick(self._within(scores, among), count, self._rng.ties)

    def random(self, count: int | Int[Tensor, " batch"] = 1) -> Bool[Tensor, "batch length"]:
        """`count` masked positions of each row, uniformly at random, whatever the ties."""
        return self._pick(
            self._within(torch.zeros_like(self.masked, dtype=torch.float64), None), count, "uniform"
        )

    def lowest_of_all(
        self, scores: Float64[Tensor, "batch length"], count: int | Int[Tensor, " batch"]
    ) -> Bool[Tensor, "batch length"]:
        """The `count` lowest finite scores of each row, masked or revealed: what to remask."""
        return self._pick(scores, count, self._rng.ties)

    def lowest_of_each(
        self,
        scores: Float64[Tensor, "batch length"],
        group: Int[Tensor, "batch length"],
        among: Bool[Tensor, "batch length"] | None = None,
    ) -> Bool[Tensor, "batch length"]:
        """The lowest-scored candidate of every group (a number in 0..length-1 per position)."""
        return self._pick_each(self._within(scores, among), group)

    def _within(self, scores: Tensor, among: Tensor | None) -> Tensor:
        allowed = self.masked if among is None else self.masked & among
        return scores.masked_fill(~allowed, INF)

    def _keys(self, ties: str) -> Float64[Tensor, "batch length"]:
        """Who comes first among equals: a uniform number, or the position."""
        if ties == "uniform":
            return self._rng.uniform(Purpose.TIE)
        length = self.masked.shape[1]
        return torch.arange(length, dtype=torch.float64, device=self.masked.device).expand(
            self.masked.shape
        )

    def _pick(self, scores: Tensor, count: int | Tensor, ties: str) -> Tensor:
        keys, allowed = self._keys(ties), scores.isfinite()
        if isinstance(count, int) and count == 1:
            tied = allowed & (scores == scores.amin(1, keepdim=True))
            first = keys.masked_fill(~tied, INF).argmin(1, keepdim=True)
            return torch.zeros_like(allowed).scatter(1, first, True) & allowed
        by_key = keys.argsort(1)
        order = by_key.gather(1, scores.gather(1, by_key).argsort(dim=1, stable=True))
        places = torch.arange(scores.shape[1], device=scores.device).expand(scores.shape)
        rank = torch.empty_like(order).scatter(1, order, places)
        limit = count[:, None] if isinstance(count, Tensor) else count
        return (rank < limit) & allowed

    def _pick_each(self, scores: Tensor, group: Tensor) -> Tensor:
        allowed = scores.isfinite()
        tied = allowed & (scores == _least(scores, group))
        keys = self._keys(self._rng.ties).masked_fill(~tied, INF)
        return tied & (keys == _least(keys, group))


def _least(values: Float64[Tensor, "batch length"], group: Int[Tensor, "batch length"]) -> Tensor:
    """The smallest value in each position's group."""
    slots = torch.full_like(values, INF)
    return slots.scatter_reduce(1, group, values, "amin").gather(1, group)


class Sampler(ABC):
    """A decoding rule: one `step` is one round; every denoiser call in it is counted.

    The class attributes tell the contract test and the benchmark what to expect; none is needed.
    """

    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)  # settings that draw its whole curve
    ranks_by: ClassVar[str | None] = None  # the score whose lowest positions come first
    remasks: ClassVar[bool] = False  # whether it takes revealed tokens back

    def first_picks(self, length: int) -> range | None:
        """Where its first pick is uniform if all scores tie (None: not decided by ties)."""
        return None

    def init(self, canvas: Canvas) -> State:
        """What the sampler remembers before the first round."""
        return {}

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Which rows are done: for a sampler that may still remask, not all complete ones are."""
        return ~canvas.masked.any(1)

    def max_rounds(self, length: int) -> int:
        """More rounds than this on `length` positions is an endless loop, not a slow sampler."""
        return length

    @abstractmethod
    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """The canvas after one round."""


class UnmaskingPolicy(Sampler):
    """The common case: choose positions, then draw there, independently given the canvas."""

    @abstractmethod
    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The masked positions to reveal now (at least one a row), and what to remember."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One round: choose, ask, draw, reveal."""
        view = View(canvas, denoise, rng)
        chosen, state = self.choose(view, canvas.state, rng)
        self.check_choice(chosen, view)
        return canvas.reveal(chosen, rng.draw(view.last_look(chosen), chosen), state)

    def check_choice(self, chosen: Bool[Tensor, "batch length"], view: View) -> None:
        """Refuses a choice that reveals nothing in some row, or what is revealed already."""
        if not bool((chosen.any(1) & ~(chosen & ~view.masked).any(1)).all()):
            raise MaskwalkError(
                f"{self!r} must choose at least one masked position in every row and nothing else; "
                f"it did not in round {view.round}."
            )
