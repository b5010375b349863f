"""The exact oracle of a time-inhomogeneous first-order law: products of different step kernels.

With a revealed at position s, b at position e and s < i < e,

    p_i(x) ∝ P_{s→i}[a, x] · P_{i→e}[x, b],    P_{s→t} = P_{s+1} P_{s+2} ⋯ P_t.

No power of one matrix serves here. But a product depends only on which laws took turns between s
and t, its *word*: laws that alternate have 2 (L − 1) of the L (L − 1) / 2 words that there could
be. There is a table for every word, by source on the left and by target on the right, and after
them a row for every position: ρ P_{0→i}, and P_{i→L−1} 1, the chance to get to the end at all.

Where no walk joins a and b, the limit of a vanishing leak (see base.py) is the sum over the ways to
split the fewest leaks j between both sides, each of low rank, since a leak forgets everything. With
the uniform row vector u, fresh_{r→t} = u P_{r→t} and alive_{t→r} = P_{t→r} 1,

    K^(j)_{s→i}[a, x] = Σ_{s<r≤i} c^(j−1)_{s→r−1}(a) · fresh_{r→i}[x],    the last leak lands at r,
    K^(j)_{i→e}[x, b] = Σ_{i<r≤e} alive_{i→r−1}[x] · d^(j−1)_{r→e}(b),    the first one lands at r,

where c is the mass that has come as far as r − 1, and d the chance to get from a leak at r to b.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw
from maskwalk.worlds.walks.oracles.base import TOO_SMALL
from maskwalk.worlds.walks.oracles.gaps import SCALE, Gap, GapOracle, Sides

LIMIT = 10**9  # bytes of tables

Word = tuple[int, ...]  # which laws took turns


@dataclass(frozen=True)
class Tables(Sides):
    """Row w V + a of `left` is 2^500 P_w[a, ·], and row w V + b of `right` is 2^500 P_w[·, b] of
    word number w; then a row for every position."""

    fresh: Float[Tensor, "length length vocab"]  # [r, t]: where a leak to position r has got to
    alive: Float[Tensor, "length length vocab"]  # [t, r]: the chance to be still walking at r
    begun: Float[Tensor, " length"]  # the mass of ρ P_{0→t}


class ScheduleOracle(GapOracle[Tables]):
    """Exact marginals of laws that take turns, from a table for every word of turns."""

    def __init__(self, law: ScheduleLaw, limit: int = LIMIT) -> None:
        super().__init__(law)
        size = schedule_bytes(law)
        if size > limit:
            raise MaskwalkError(
                f"The tables of this schedule, {law.vocab_size} nodes and length {law.length}, "
                f"take {size / 1e9:.1f} GB, more than the {limit / 1e9:g} GB allowed. Use "
                "SparseOracle, which needs no tables, or fewer nodes or shorter walks."
            )
        self.law = law
        self.words = {word: number for number, word in enumerate(_words(law))}
        self._number = torch.zeros((law.length, law.length), dtype=torch.int64)
        for s in range(law.length):
            for t in range(s + 1, law.length):
                self._number[s, t] = self.words[law.turns[s:t]]

    def _build(self, device: torch.device) -> Tables:
        return _build(self.law, list(self.words), device)

    def _rows(self, gap: Gap) -> tuple[Tensor, Tensor]:
        here, vocab = gap.position, self.vocab_size
        number = self._number.to(here.device)
        edge = len(self.words) * vocab + here
        before, after = here - gap.steps_left, here + gap.steps_right
        left = number[before.clamp(min=0), here] * vocab + gap.left
        right = number[here, after.clamp(max=self.length - 1)] * vocab + gap.right
        return torch.where(before < 0, edge, left), torch.where(after == self.length, edge, right)

    def _leak(self, tables: Tables, gap: Gap) -> Tensor:
        """The weights with the fewest leaks, for gaps that no walk joins."""
        rows = self._rows(gap)
        left, right = [tables.left[rows[0]] / SCALE], [tables.right[rows[1]] / SCALE]
        come, go = _masses(tables, gap, self.length, self.vocab_size)
        total = tables.fresh.sum(2)
        weights = torch.zeros_like(left[0])
        # As many leaks as steps always suffice, so this ends; each round adds one to each side.
        while bool((weights.sum(1) == 0).any()):
            left.append(_spread(come[:, :-1], tables.fresh.transpose(0, 1), gap.position))
            right.append(_spread(go[:, 1:], tables.alive, gap.position))
            come, go = _leaked(come, total), _leaked(go.flip(1), total.T.flip(0, 1)).flip(1)
            joint = sum(x * y for x, y in zip(left, reversed(right)))
            weights = torch.where(weights.sum(1, keepdim=True) > 0, weights, joint)
        return weights


def _words(law: ScheduleLaw) -> list[Word]:
    """The different words of turns, the short ones first."""
    spans = range(1, law.length)
    return list(dict.fromkeys(law.turns[s : s + n] for n in spans for s in range(law.length - n)))


def schedule_bytes(law: ScheduleLaw) -> int:
    """The size of the two tables of words."""
    return 2 * 8 * len(_words(law)) * law.vocab_size**2


def _build(law: ScheduleLaw, words: list[Word], device: torch.device) -> Tables:
    vocab, length = law.vocab_size, law.length
    on = [_sparse(one, device) for one in law.laws]
    left = torch.empty((len(words) * vocab + length, vocab), dtype=torch.float64, device=device)
    right = torch.empty_like(left)
    whole = torch.eye(vocab, dtype=torch.float64, device=device) * SCALE
    products: dict[Word, Tensor] = {(): whole}
    reached: dict[Word, Tensor] = {(): whole > 0}
    watch = _smallest(law) ** length < 1e-150  # only then can something underflow
    for number, word in enumerate(words):
        product = products[word] = on[word[0]][0] @ products[word[1:]]
        if watch:
            reached[word] = on[word[0]][0] @ reached[word[1:]].double() > 0
            if bool((reached[word] & (product < 1e-290 * SCALE)).any()):
                raise MaskwalkError(TOO_SMALL)
        rows = slice(number * vocab, (number + 1) * vocab)
        left[rows], right[rows] = product, product.T
        products[word] = left[rows]  # a view: the tables are held once
    uniform = whole.new_full((vocab,), 1.0 / vocab)
    fresh, alive = (whole.new_zeros((length, length, vocab)) for _ in range(2))
    for t in range(length):
        fresh[t, t], alive[t, t] = uniform, 1.0
        for r in range(t - 1, -1, -1):
            fresh[r, t] = _times(on[law.turns[t - 1]][1], fresh[r, t - 1])
            alive[r, t] = _times(on[law.turns[r]][0], alive[r + 1, t])
    start = law.initial.to(device, torch.float64) * SCALE
    for t in range(length):
        start = start if t == 0 else _times(on[law.turns[t - 1]][1], start)
        left[len(words) * vocab + t] = start
    right[len(words) * vocab :] = alive[:, -1] * SCALE
    return Tables(left, right, fresh, alive, left[len(words) * vocab :].sum(1) / SCALE)


def _sparse(law: ChainLaw, device: torch.device) -> tuple[Sparse, Sparse]:
    """P, and its transpose, which moves row vectors: v P = Pᵀ v."""
    entries = law.kernel.tocoo()
    rows, columns = (torch.from_numpy(x).to(device, torch.int64) for x in entries.coords)
    values = torch.from_numpy(entries.data).to(device)
    size = (law.vocab_size, law.vocab_size)
    return Sparse(rows, columns, values, size), Sparse(columns, rows, values, size)


def _times(matrix: Sparse, vector: Tensor) -> Tensor:
    return (matrix @ vector[:, None])[:, 0]


def _smallest(law: ScheduleLaw) -> float:
    start = law.initial[law.initial > 0]
    return min(float(start.min()), *(float(one.kernel.data.min()) for one in law.laws))


def _masses(
    tables: Tables, gap: Gap, length: int, vocab: int
) -> tuple[Float[Tensor, "places positions"], Float[Tensor, "places positions"]]:
    """Without a leak so far: column p + 1 of the first is the mass that the left token has at
    position p (from −1 on); column r of the second is the chance to get from a leak to position r
    to the right token (r up to L, where no leak leads)."""
    before, after = gap.position - gap.steps_left, gap.position + gap.steps_right
    begins, ends = (before < 0)[:, None], (after == length)[:, None]
    a, b = gap.left.clamp(max=vocab - 1), gap.right.clamp(max=vocab - 1)
    one = tables.begun.new_ones((len(a), 1))
    come = torch.where(begins, tables.begun, tables.alive[before.clamp(min=0), :, a])
    last = after.clamp(max=length - 1)
    go = torch.where(ends, tables.fresh.sum(2)[:, -1], tables.fresh[:, last, b].T)
    return torch.cat([torch.where(begins, one, 0 * one), come], 1), torch.cat([go, 0 * one], 1)


def _spread(
    mass: Float[Tensor, "places length"],
    table: Float[Tensor, "length length vocab"],
    position: Int[Tensor, " places"],
) -> Float[Tensor, "places vocab"]:
    """Σ_r mass[r] · table[position, r]: by products and sums of single numbers, since the rounding
    of a matrix product would depend on the batch."""
    spread = mass.new_zeros((len(mass), table.shape[2]))
    for r in range(table.shape[1]):
        spread += mass[:, r, None] * table[position, r]
    return spread


def _leaked(
    mass: Float[Tensor, "places positions"], total: Float[Tensor, "length length"]
) -> Tensor:
    """The masses after one more leak: position t has Σ_r mass[r − 1] · total[r, t]."""
    moved = (mass[:, :-1, None] * total).sum(1)
    return torch.cat([torch.zeros_like(moved[:, :1]), moved], 1)
