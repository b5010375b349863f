"""What a policy sees of the canvas in a round: tokens, marginals, scores, and fair picks."""

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import INF, Canvas, RoundStreams
from maskwalk.decoding.guard import writes
from maskwalk.decoding.picks import pick, ranks
from maskwalk.decoding.scores import on_grid, score
from maskwalk.denoiser import Denoiser
from maskwalk.kernels.rows import by_rows, keep_rows
from maskwalk.kernels.small import PICKED, first_of_each, large, of_each, small
from maskwalk.streams import Purpose

NOTHING = torch.empty(0)


class View:
    """What a policy sees in a round; marginals are computed only if it asks for them.

    `copies`: it is shown a copy of the table that tokens are drawn from (guard.py).
    """

    def __init__(
        self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams, copies: bool = False
    ) -> None:
        self.tokens, self.masked, self.given = canvas.tokens, canvas.masked, canvas.given
        self._masked_few = canvas.masked_few
        self.round, self.mask_id = canvas.round, canvas.mask_id
        self.score_grid = denoise.score_grid
        # Of the part that is worked on.
        self.span = canvas.tokens.shape[1] if canvas.span is None else canvas.span
        self.block_place, self._open = canvas.place, canvas.open
        self._denoise, self._rng = denoise, rng
        self._marginals: Tensor | None = None
        self._copies, self._copy = copies, NOTHING
        self._writes = (0, 0)  # to the marginals and their copy, when they were answered
        self._asked = self.masked  # what the marginals are of: all that is masked, or a part
        self._scored: Tensor | None = None
        self._over_all: Tensor | None = None

    @cached_property
    def place(self) -> Int[Tensor, "batch length"]:
        """Where each position lies in the part that is worked on."""
        if self.block_place is not None:
            return self.block_place
        place = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return place.expand(self.tokens.shape)

    @cached_property
    def whole(self) -> "View":
        """The view of every mask of the sequence, of which a wrapper may show a part. A rule that
        reads it says so (`Sampler.reads_whole`)."""
        return self if self._open is None else _Whole(self)

    @property
    def log_marginals(self) -> Float[Tensor, "rows vocab"]:
        """Log-marginals of all masked positions, packed in row-major order."""
        return self.log_marginals_in(self.masked)

    @property
    def scored(self) -> Float[Tensor, "rows vocab"]:
        """The log-marginals that scores are read from: the model's, or with
        draw(scores='shaped') those the tokens are drawn from; with draw(over='all') before
        the tokens that are never drawn are taken out."""
        return self.scored_in(self.masked)

    def log_marginals_in(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """`log_marginals` of a part of what is masked; nothing else is asked for, if nobody has."""
        table = self._ask(part)
        return self._shown(table) if self._asked is part else table[part[self._asked]]

    def scored_in(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """`scored` of a part of what is masked."""
        table = self._ask(part)
        if self._over_all is None and self._rng.drawing.scores == "model" and self._asked is part:
            return self._shown(table)
        told = table if self._over_all is None else self._over_all
        if self._rng.drawing.scores == "shaped":
            if self._scored is None:
                self._scored = by_rows(self._rng.drawing.score_shape, told)
            told = self._scored
        if self._asked is not part:
            return told[part[self._asked]]
        return self._shown(table) if told.data_ptr() == table.data_ptr() else told

    def _ask(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "rows vocab"]:
        """The marginals that hold a part's: those there are, or the part's own."""
        if self._marginals is not None and part is self._asked:
            return self._marginals
        if self._marginals is None or _beyond(part, self._asked):
            over_all = getattr(self._denoise, "over_all", None)
            self._asked, self._scored = part, None
            if self._rng.drawing.over == "all" and over_all is not None:
                self._marginals, self._over_all = over_all(self.tokens, part)
            else:
                self._marginals = self._denoise(self.tokens, part)
            now = writes(self._marginals)
            self._copy = self._marginals.clone() if self._copies else self._marginals
            self._writes = now, writes(self._copy) if self._copies else now
        assert self._marginals is not None
        return self._marginals

    def _shown(self, table: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
        """What a policy gets to see of the table: itself, or a copy."""
        return self._copy if self._copies else table

    @property
    def kept(self) -> bool:
        """Whether nobody wrote to the marginals since they were answered."""
        table = self._marginals
        return table is None or self._writes == (writes(table), writes(self._copy))

    def log_marginals_at(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """Log-marginals of some masked positions, without asking for the rest if nobody has."""
        if self._marginals is None:
            return self._denoise(self.tokens, chosen)
        return self._ask(chosen)[chosen[self._asked]]

    def take_marginals(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """`log_marginals_at`, when nobody asks afterwards: a large table is not copied for it."""
        if self._marginals is None:
            return self._denoise(self.tokens, chosen)
        table, self._marginals = self._ask(chosen), None
        some, asked = small(chosen), small(self._asked)
        return keep_rows(table, large(some[asked]))

    def unpack(self, packed: Float[Tensor, " rows"]) -> Float64[Tensor, "batch length"]:
        """One number per masked position, laid out on the canvas; infinite elsewhere."""
        masked, given = self._masked_few, small(packed)
        if isinstance(masked, np.ndarray) and isinstance(given, np.ndarray):
            return _laid_out(masked, given)
        canvas = torch.full(self.masked.shape, INF, dtype=torch.float64, device=self.masked.device)
        return canvas.masked_scatter(self.masked, packed.to(torch.float64))

    def score_drawn(self, tokens: Int[Tensor, " rows"]) -> Float64[Tensor, "batch length"]:
        """Minus the probability of the token drawn at each masked position, rounded to the grid."""
        scored = self.scored
        table, drawn = small(scored, PICKED), small(tokens)
        if not isinstance(table, np.ndarray) or not isinstance(self._masked_few, np.ndarray):
            return self.unpack(-on_grid(of_each(scored, tokens).exp(), self.score_grid))
        probs = table.take(drawn + first_of_each(*table.shape))
        torch.from_numpy(probs).exp_()  # torch's, as in `score`: numpy's differs in the last bit
        spacing = probs.dtype.type(self.score_grid)
        return _laid_out(self._masked_few, np.rint(probs / -spacing) * spacing)

    def score(self, name: str) -> Float64[Tensor, "batch length"]:
        """The named score (lower is sooner), rounded to the denoiser's grid."""
        return self.unpack_score(score(name, self.scored, self.score_grid))

    def unpack_score(self, packed: Float[Tensor, " rows"]) -> Float64[Tensor, "batch length"]:
        """`unpack` for a score to rank by: what `stochastic` adds its noise to."""
        return self.unpack(packed)

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

    def ranks(self, scores: Float64[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
        """The place of each masked position in the order of the scores, the lowest 0; ties as
        `decode` was told. What is not masked comes last."""
        return ranks(self._within(scores, None), self._keys(self._rng.ties))

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
        places, numbers = self._masked_few, small(scores)
        if among is not None:
            places = places & small(among)
        if isinstance(places, np.ndarray) and isinstance(numbers, np.ndarray):
            return torch.from_numpy(np.where(places, numbers, INF))
        return scores.masked_fill(~large(places), INF)

    def _keys(self, ties: str) -> Float64[Tensor, "batch length"]:
        """Who comes first among equals: a uniform number, or the position."""
        if ties == "uniform":
            return self._rng.uniform(Purpose.TIE)
        length = self.masked.shape[1]
        return torch.arange(length, dtype=torch.float64, device=self.masked.device).expand(
            self.masked.shape
        )

    def _pick(self, scores: Tensor, count: int | Tensor, ties: str) -> Tensor:
        return pick(scores, self._keys(ties) if ties == "uniform" else None, count)

    def _pick_each(self, scores: Tensor, group: Tensor) -> Tensor:
        allowed = scores.isfinite()
        tied = allowed & (scores == _least(scores, group))
        keys = self._keys(self._rng.ties).masked_fill(~tied, INF)
        return tied & (keys == _least(keys, group))


def _laid_out(masked: np.ndarray, given: np.ndarray) -> Float64[Tensor, "batch length"]:
    """What is given where it is masked, infinity elsewhere."""
    numbers: np.ndarray = np.empty(masked.shape)
    numbers.fill(INF)
    numbers[masked] = given
    return torch.from_numpy(numbers)


def _beyond(part: Bool[Tensor, "batch length"], asked: Bool[Tensor, "batch length"]) -> bool:
    """Whether a part has a position that was not asked for."""
    return bool((small(part) & ~small(asked)).any())


def _least(values: Float64[Tensor, "batch length"], group: Int[Tensor, "batch length"]) -> Tensor:
    """The smallest value in each position's group."""
    slots = torch.full_like(values, INF)
    return slots.scatter_reduce(1, group, values, "amin").gather(1, group)


class _Whole(View):
    """Every mask of a canvas of which a part is open; what is asked is asked for both at once."""

    def __init__(self, part: View) -> None:
        self.tokens, self.masked, self.given = part.tokens, part.tokens == part.mask_id, part.given
        self._masked_few = small(self.masked)
        self.round, self.mask_id, self.score_grid = part.round, part.mask_id, part.score_grid
        self.span, self.block_place, self._open = part.tokens.shape[1], None, None
        self._denoise, self._rng, self._part = part._denoise, part._rng, part

    def log_marginals_in(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the part's."""
        return self._part.log_marginals_in(part)

    def scored_in(self, part: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the part's."""
        return self._part.scored_in(part)

    def log_marginals_at(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the part's."""
        return self._part.log_marginals_at(chosen)

    def take_marginals(self, chosen: Bool[Tensor, "batch length"]) -> Float[Tensor, "n vocab"]:
        """As the part's."""
        return self._part.take_marginals(chosen)
