"""The exact oracle of a first-order law: two look-ups and a product.

Only the nearest revealed neighbours of a position matter. With a revealed g steps to the left of
position i and b revealed h steps to its right,

    p_i(x) ∝ P^g[a, x] · P^h[x, b].

Both factors are rows of tables of matrix powers, one by source and one by target, so both look-ups
are contiguous. Token V stands for what lies beyond the ends: at position −1 a state that steps to
x with the start law ρ, at position L a state every token steps to (it is reached if the walk
survives; a level DAG's last level has nowhere to go). So row V holds ρ P^(g−1) and P^(h−1) 1.

Where no walk joins a and b, the limit of a vanishing leak (see base.py) is, with exactly j leaks
in all, j the smallest that joins them,

    p_i(x) ∝ Σ_{j'≤j} K^(j')_g[a, x] · K^(j−j')_h[x, b],    K^(j)_g: g steps, j of them leaks.

A leak forgets everything, so K^(j) has low rank. With the uniform row vector u,

    K^(j)_g[a, x] = Σ_{r<g} c^(j−1)_r(a) · (u P^(g−1−r))[x],  c^(j)_r(a) = Σ_y K^(j)_r[a, y],

and likewise from the right: no table but (L × V) is needed. For a stochastic P, j is always 1 and
this is p ∝ leak_g(x) P^h[x, b] + P^g[a, x] leak_h(b) with leak_n = Σ_{r<n} u P^r.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.walks.laws import ChainLaw
from maskwalk.worlds.walks.oracles.base import TOO_SMALL
from maskwalk.worlds.walks.oracles.gaps import SCALE, Gap, GapOracle, Sides

LIMIT = 25 * 10**8  # bytes of tables: beyond, the sparse oracle takes a quarter of the memory


@dataclass(frozen=True)
class Tables(Sides):
    """Matrix powers on one device: row (g−1)(V+1) + a of `left` is 2^500 P^g[a, ·], and row
    (h−1)(V+1) + b of `right` is 2^500 P^h[·, b], for g and h from 1 to L."""

    fresh: Float[Tensor, "length vocab"]  # u P^r: where a leak r steps ago has got to
    alive: Float[Tensor, "length vocab"]  # P^r 1: the chance of r more steps
    from_left: Float[Tensor, "tokens steps"]  # c^(0)_r(a): mass r steps after a
    from_right: Float[Tensor, "tokens steps"]  # d^(0)_r(b): a leak's chance to be in b in r steps


class ChainOracle(GapOracle[Tables]):
    """Exact marginals of a first-order law from tables of matrix powers."""

    def __init__(self, law: ChainLaw, limit: int = LIMIT) -> None:
        super().__init__(law)
        size = table_bytes(law.vocab_size, law.length)
        if size > limit:
            raise MaskwalkError(
                f"The matrix-power tables of {law.vocab_size} nodes and length {law.length} take "
                f"{size / 1e9:.1f} GB, more than the {limit / 1e9:g} GB allowed. Use SparseOracle, "
                "which needs no tables, or fewer nodes or shorter walks."
            )
        self.law = law

    def _build(self, device: torch.device) -> Tables:
        return _build(self.law, device)

    def _rows(self, gap: Gap) -> tuple[Tensor, Tensor]:
        width = self.vocab_size + 1
        return (gap.steps_left - 1) * width + gap.left, (gap.steps_right - 1) * width + gap.right

    def _leak(self, tables: Tables, gap: Gap) -> Tensor:
        return _leak(tables, gap.left, gap.steps_left, gap.right, gap.steps_right)


def table_bytes(vocab_size: int, length: int) -> int:
    """The size of the two tables."""
    return 2 * 8 * length * (vocab_size + 1) * vocab_size


def _build(law: ChainLaw, device: torch.device) -> Tables:
    vocab, length = law.vocab_size, law.length
    kernel = law.transition.to(device, torch.float64)
    sources, targets = kernel.nonzero(as_tuple=True)
    step = Sparse(sources, targets, kernel[sources, targets], (vocab, vocab))
    left = kernel.new_empty((length, vocab + 1, vocab))
    right = torch.empty_like(left)
    power = torch.eye(vocab, dtype=torch.float64, device=device) * SCALE
    start = law.initial.to(device, torch.float64) * SCALE
    alive = torch.full_like(start, SCALE)
    fresh = torch.full_like(start, SCALE / vocab)
    fresh_rows = []
    # The reverse kernel moves row vectors: v P = Pᵀ v.
    reverse = Sparse(targets, sources, kernel[sources, targets], (vocab, vocab))
    positive = torch.cat([kernel[kernel > 0], law.initial[law.initial > 0].to(kernel)])
    watch = float(positive.min()) ** length < 1e-150  # only then can something underflow
    reached = power > 0
    for n in range(length):
        power = step @ power
        if watch:
            reached = step @ reached.to(torch.float64) > 0
            if bool((reached & (power < 1e-290 * SCALE)).any()):
                raise MaskwalkError(TOO_SMALL)
        left[n, :vocab], left[n, vocab] = power, start
        right[n, :vocab], right[n, vocab] = power.T, alive
        fresh_rows.append(fresh)
        start, fresh = ((reverse @ v[:, None])[:, 0] for v in (start, fresh))
        alive = (step @ alive[:, None])[:, 0]
    fresh_table, alive_table = torch.stack(fresh_rows) / SCALE, right[:, vocab] / SCALE
    return Tables(
        left=left.flatten(0, 1),
        right=right.flatten(0, 1),
        fresh=fresh_table,
        alive=alive_table,
        # Beyond the ends: one step from position −1 is the start law; no leak leads to position L.
        from_left=_with_row(alive_table.T, 1.0, left[:, vocab].sum(1) / SCALE),
        from_right=_with_row(fresh_table.T, 0.0, fresh_table.sum(1)),
    )


def _with_row(table: Tensor, first: float, rest: Tensor) -> Tensor:
    row = torch.cat([rest.new_tensor([first]), rest])[: table.shape[1]]
    return torch.cat([table, row[None]])


def _leak(tables: Tables, a: Tensor, g: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """The weights with the fewest leaks, for gaps that no walk joins."""
    width = len(tables.from_left)
    left = [tables.left[(g - 1) * width + a] / SCALE]
    right = [tables.right[(h - 1) * width + b] / SCALE]
    mass_left, mass_right = tables.from_left[a], tables.from_right[b]
    total_fresh = tables.fresh.sum(1)
    weights = torch.zeros_like(left[0])
    # g + h leaks always suffice, so this ends; each round adds one leak to each side.
    while bool((weights.sum(1) == 0).any()):
        left.append(_shifted(mass_left, g) @ tables.fresh)
        right.append(_shifted(mass_right, h) @ tables.alive)
        mass_left, mass_right = (_convolve(m, total_fresh) for m in (mass_left, mass_right))
        joint = sum(x * y for x, y in zip(left, reversed(right)))
        weights = torch.where(weights.sum(1, keepdim=True) > 0, weights, joint)
    return weights


def _shifted(mass: Tensor, steps: Tensor) -> Tensor:
    """Row s ↦ mass[steps−1−s]: a leak s steps before the end took what was there before it."""
    lag = steps[:, None] - 1 - torch.arange(mass.shape[1], device=mass.device)
    return torch.where(lag >= 0, mass.gather(1, lag.clamp(min=0)), 0.0)


def _convolve(mass: Tensor, total: Tensor) -> Tensor:
    """c_s = Σ_{r<s} mass_r · total_{s−1−r}: the mass after one more leak, s steps on."""
    steps = torch.arange(len(total), device=mass.device)
    lag = steps[None, :] - 1 - steps[:, None]
    return mass @ torch.where(lag >= 0, total[lag.clamp(min=0)], 0.0)
