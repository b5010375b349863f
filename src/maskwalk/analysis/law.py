"""The exact law of a policy's output, by dynamic programming over partial assignments.

A policy's own randomness is only in how it picks among equals, and those picks go through the view:
`EnumeratedView` lists every equally likely outcome instead of taking one. So the law is computed
with the very policy objects that `decode` runs, ties and all:

    weight(x_U) → for each outcome B of the choice, each x_B: weight(x_U) · Pr(B) · ∏_{i∈B} p_i(x_i)

and equal partial assignments (with equal policy state) are merged after every round.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.arguments import as_sampler, as_tokens
from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser, masked_positions
from maskwalk.denoisers.arguments import as_denoiser
from maskwalk.errors import MaskwalkError, shown
from maskwalk.streams import Purpose, Streams
from maskwalk.worlds.walks.laws import WalkLaw

Outcomes = Callable[[list[float], int], list[list[bool]]]


class EnumeratedView(View):
    """A view whose picks are enumerated: row r takes its `which[r]`-th equally likely outcome."""

    def __init__(
        self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams, which: Tensor | None = None
    ) -> None:
        super().__init__(canvas, denoise, rng, copies=True)
        self.counts = torch.ones(len(canvas.tokens), dtype=torch.int64)
        self._which = which
        self._branched = False

    def _pick(self, scores: Tensor, count: int | Tensor, ties: str) -> Tensor:
        if ties == "index":
            return super()._pick(scores, count, ties)
        size = torch.as_tensor(count).expand(len(scores)).to(scores)
        return self._branch(torch.cat([size[:, None], scores], 1), _subsets)

    def _pick_each(self, scores: Tensor, group: Tensor) -> Tensor:
        if self._rng.ties == "index":
            return super()._pick_each(scores, group)
        return self._branch(torch.cat([scores, group.to(scores)], 1), _one_of_each)

    def _branch(self, patterns: Tensor, outcomes: Outcomes) -> Tensor:
        first, inverse = _distinct(patterns)
        table = [outcomes(row, self.masked.shape[1]) for row in patterns[first].tolist()]
        counts = torch.tensor([len(rows) for rows in table])[inverse]
        if int(counts.max()) > 1:
            if self._branched:
                raise MaskwalkError(
                    "A policy that picks at random twice a round is not enumerable."
                )
            self._branched, self.counts = True, counts
        which = self._which if self._which is not None else torch.zeros_like(inverse)
        which = torch.minimum(which, counts - 1)
        widest = max(len(rows) for rows in table)
        padded = torch.zeros((len(table), widest, self.masked.shape[1]), dtype=torch.bool)
        for i, rows in enumerate(table):
            padded[i, : len(rows)] = torch.tensor(rows)
        return padded[inverse, which]


def _subsets(row: list[float], length: int) -> list[list[bool]]:
    """All ways to take the `row[0]` lowest of the scores row[1:], ties in every way."""
    scores, finite = row[1:], sorted(s for s in row[1:] if s != float("inf"))
    size = min(int(row[0]), len(finite))
    if size == 0:
        return [[False] * length]
    bar = finite[size - 1]
    tied = [i for i, s in enumerate(scores) if s == bar]
    sure = {i for i, s in enumerate(scores) if s < bar}
    return [
        [i in sure or i in some for i in range(length)]
        for some in map(set, combinations(tied, size - len(sure)))
    ]


def _one_of_each(row: list[float], length: int) -> list[list[bool]]:
    """All ways to take one lowest-scored position of every group."""
    scores, groups = row[:length], row[length:]
    best: dict[float, float] = {}
    for s, g in zip(scores, groups):
        best[g] = min(s, best.get(g, float("inf")))
    tied = [
        [i for i in range(length) if groups[i] == g and scores[i] == low]
        for g, low in best.items()
        if low != float("inf")
    ]
    return [[i in some for i in range(length)] for some in map(set, product(*tied))]


class _NoStreams(RoundStreams):
    """Streams that refuse: a policy that reads uniforms itself cannot be enumerated."""

    def uniform(self, purpose: Purpose = Purpose.CHOICE) -> Tensor:
        raise MaskwalkError("A policy that reads random numbers itself is not enumerable.")


class _Known:
    """A denoiser for copies of a view's rows: looks the answers up instead of asking again."""

    def __init__(self, view: View, denoiser: Denoiser, row: Int[Tensor, " copies"]) -> None:
        self.vocab_size, self.mask_id = denoiser.vocab_size, denoiser.mask_id
        self.score_grid = denoiser.score_grid
        self._answers, self._row = view.log_marginals_at(view.masked), row
        self._index = (view.masked.flatten().cumsum(0) - 1).view_as(view.masked)

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """The answers at the places in `at` (all masked if None)."""
        return self._answers[self._index[self._row][masked_positions(tokens, self.mask_id, at)]]


def sampler_law(
    policy: Sampler | str,
    denoiser: Denoiser | str,
    tokens: Any,
    *,
    ties: str = "uniform",
    draw: Draw | None = None,
    limit: int = 2_000_000,
) -> tuple[Int[Tensor, "n length"], Float64[Tensor, " n"]]:
    """Every output of `policy` from the canvas `tokens` (length), with its exact probability.

    Several canvases are as many equally likely starts.
    """
    draw = draw or Draw()
    if draw.precision != "float64":
        raise MaskwalkError("Only float64 draws have an exact law; bfloat16 races do not.")
    rule, asked = _enumerable(policy), as_denoiser(denoiser)
    one = isinstance(tokens, Tensor) and tokens.ndim == 1
    starts = as_tokens(tokens[None] if one else tokens)
    canvas = Canvas(starts, starts != asked.mask_id, asked.mask_id)
    canvas = replace(canvas, state=rule.init(canvas))
    weight = torch.full((len(starts),), 1.0 / len(starts), dtype=torch.float64)
    done: list[tuple[Tensor, Tensor]] = []
    while len(weight):
        still = canvas.masked.any(1)
        done.append((canvas.tokens[~still], weight[~still]))
        canvas, weight = canvas.select(still), weight[still]
        if len(weight):
            canvas, weight = _round(rule, asked, canvas, weight, draw, ties, limit)
    return _collect(torch.cat([t for t, _ in done]), torch.cat([w for _, w in done]))


def _enumerable(given: Sampler | str) -> UnmaskingPolicy:
    """A policy whose choices can be listed, or a sentence."""
    rule = as_sampler(given)
    if isinstance(rule, UnmaskingPolicy):
        return rule
    raise MaskwalkError(
        f"{rule!r} draws in a step of its own, so its law cannot be listed; sampler_law is for an "
        "UnmaskingPolicy, which chooses positions before anything is drawn there."
    )


def _round(
    policy: UnmaskingPolicy,
    denoiser: Denoiser,
    canvas: Canvas,
    weight: Tensor,
    draw: Draw,
    ties: str,
    limit: int,
) -> tuple[Canvas, Tensor]:
    """One round: choose once to count the outcomes, and again to take each if there are several."""
    rng = _NoStreams(Streams(0, 1), canvas.round, canvas.tokens.shape[1], draw, ties)
    view = EnumeratedView(canvas, denoiser, rng)
    chosen, state = policy.choose(view, canvas.state, rng)
    if int(view.counts.max()) > 1:
        row = torch.arange(len(weight)).repeat_interleave(view.counts)
        which = torch.arange(len(row)) - (view.counts.cumsum(0) - view.counts)[row]
        canvas, weight = canvas.select(row), weight[row] / view.counts[row]
        view = EnumeratedView(canvas, _Known(view, denoiser, row), rng, which)
        chosen, state = policy.choose(view, canvas.state, rng)
    policy.check_choice(chosen, view)
    probs = draw.shape(view.log_marginals_at(chosen)).to(torch.float64).exp()
    canvas = replace(canvas, state=state, round=canvas.round + 1)
    return _merge(*_expand(canvas, weight, chosen, probs, limit))


def _expand(
    canvas: Canvas, weight: Tensor, chosen: Tensor, probs: Tensor, limit: int
) -> tuple[Canvas, Tensor]:
    """Every assignment of the chosen positions, weighted by the product of their marginals."""
    first = chosen.sum(1).cumsum(0) - chosen.sum(1)
    order = torch.arange(len(weight))
    for j in range(int(chosen.sum(1).max())):
        here = chosen[order] & (chosen[order].cumsum(1) == j + 1)
        has = here.any(1)
        rows = torch.zeros((len(order), probs.shape[1]), dtype=torch.float64)
        rows[has] = probs[first[order[has]] + j]
        rows[~has, 0] = 1.0  # nothing more to fill in this row: keep it once
        row, token = (rows > 0).nonzero(as_tuple=True)
        if len(row) > limit:
            raise MaskwalkError(f"The exact law has over {limit} partial assignments: too many.")
        canvas, weight = canvas.select(row), weight[row] * rows[row, token]
        filled = torch.where(here[row], token[:, None], canvas.tokens)
        canvas, order = replace(canvas, tokens=filled), order[row]
    return canvas, weight


def _merge(canvas: Canvas, weight: Tensor) -> tuple[Canvas, Tensor]:
    """Adds up the weights of rows that agree in tokens and in what the policy remembers."""
    keys = [canvas.tokens, *(v.reshape(len(v), -1) for v in canvas.state.values())]
    first, inverse = _distinct(torch.cat(keys, 1))
    total = torch.zeros(len(first), dtype=torch.float64).index_add(0, inverse, weight)
    return canvas.select(first), total


def _collect(tokens: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Equal sequences once, with the sum of their weights."""
    first, inverse = _distinct(tokens)
    total = torch.zeros(len(first), dtype=torch.float64).index_add(0, inverse, weight)
    return tokens[first], total


def _distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Where each different row first occurs, in lexicographic order, and which one each row is.

    As `unique(dim=0)`, but the columns are packed into one number first: several times as fast.
    """
    codes = torch.unique(rows, return_inverse=True)[1] if rows.is_floating_point() else rows
    key, room = torch.zeros(len(rows), dtype=torch.int64), 1
    codes = codes - codes.amin(0) if len(rows) else codes
    spans = (codes.amax(0) + 1).tolist() if len(rows) else []
    for column, span in zip(codes.unbind(1), spans):
        if room * span > 1 << 62:
            seen, key = torch.unique(key, return_inverse=True)
            room = len(seen)
        key, room = key * span + column, room * span
    seen, inverse = torch.unique(key, return_inverse=True)
    place = torch.arange(len(rows))
    first = torch.full((len(seen),), len(rows)).scatter_reduce(0, inverse, place, "amin")
    return first, inverse


Law = tuple[Int[Tensor, "n length"], Float64[Tensor, " n"]]


def total_variation(
    one: Law, other: tuple[Int[Tensor, "m length"], Float64[Tensor, " m"]]
) -> float:
    """½ Σ |p(x) - q(x)| of two laws given as (sequences, probabilities)."""
    for law in (one, other):
        _check_law(law)
    _, difference = _collect(torch.cat([one[0], other[0]]), torch.cat([one[1], -other[1]]))
    return float(0.5 * difference.abs().sum())


def _check_law(law: Any) -> None:
    """A law is a table of sequences and as many probabilities, or a sentence."""
    pair = isinstance(law, tuple | list) and len(law) == 2
    if not pair or not all(isinstance(part, Tensor) for part in law):
        raise MaskwalkError(
            f"A law is (sequences, probabilities), two tensors as sampler_law gives them, not "
            f"{shown(law)}."
        )
    if law[0].ndim != 2 or law[1].shape != law[0].shape[:1]:
        raise MaskwalkError(
            "A law is sequences (n, length) and n probabilities, not tensors of shape "
            f"{tuple(law[0].shape)} and {tuple(law[1].shape)}."
        )


def bridge_law(law: WalkLaw, tokens: Int[Tensor, " length"], mask_id: int) -> Law:
    """The law of walks given what `tokens` reveals, by enumeration of the support."""
    walks, log_probs = law.support()
    fits = ((walks == tokens) | (tokens == mask_id)).all(1)
    if not bool(fits.any()):
        raise MaskwalkError("No walk of positive probability agrees with what is revealed.")
    return walks[fits], torch.softmax(log_probs[fits], 0)
