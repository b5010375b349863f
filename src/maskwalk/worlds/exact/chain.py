"""Laws with a hidden state that runs along columns of tokens: forward–backward, exact.

A column is some positions of the sequence and the symbols that can stand there: one position and
its tokens for an automaton, the digits a, b, c of one place for a sum, a column of cells for a
strip. An edge of a column leads from a state to a state, shows a symbol, and has a weight; a
sequence's weight is the sum, over paths of edges that show it, of the products of their weights:

    forward  α_t(s') = Σ_{edges s → s' that agree} α_{t−1}(s) w,       backward β likewise,
    p(symbol at t | revealed) ∝ Σ_{edges that show it and agree} α_{t−1}(s) w β_t(s').

Messages are scaled column by column. Where a sequence has one path only (`unambiguous`: automata,
sums, strips, but not a hidden Markov model) the entropy is that of the paths, exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from scipy.special import entr
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.exact.chance import pick
from maskwalk.worlds.exact.world import ExactWorld, Weights
from maskwalk.worlds.sparse import Sparse

CELLS = 1 << 22  # edges × canvases worked on at once


@dataclass(frozen=True, eq=False)
class Column:
    """The edges between two states, and what they show at some positions."""

    positions: tuple[int, ...]
    symbols: Int64[np.ndarray, "symbols width"]  # tokens, in the order of `positions`
    source: Int64[np.ndarray, " edges"]
    symbol: Int64[np.ndarray, " edges"]
    target: Int64[np.ndarray, " edges"]
    weight: Float64[np.ndarray, " edges"]


class ChainWorld(ExactWorld):
    """A world given by columns; `start` and `end` weigh the first and the last state."""

    unambiguous = True

    def __init__(
        self,
        vocab_size: int,
        columns: Sequence[Column],
        start: Float64[np.ndarray, " states"],
        end: Float64[np.ndarray, " states"],
    ) -> None:
        self.vocab_size = vocab_size
        self.length = sum(len(column.positions) for column in columns)
        self.columns, self.start, self.end = tuple(columns), start, end
        self.draws = len(self.columns) + 1
        if not self._backward[0] @ start > 0:
            raise MaskwalkError("No sequence of this length is possible in this world.")

    @cached_property
    def _backward(self) -> list[Float64[np.ndarray, " states"]]:
        """β before each column and at the end, each scaled to a largest entry of 1."""
        messages = [self.end]
        for column in reversed(self.columns):
            mass = column.weight * messages[-1][column.target]
            total = np.bincount(column.source, mass, len(self.start))
            messages.append(total / (total.max() or 1.0))
        return messages[::-1]

    @cached_property
    def _alive(self) -> list[Bool[np.ndarray, " states"]]:
        """Where β > 0, also where it is too small for a float64."""
        alive = [self.end > 0]
        for column in reversed(self.columns):
            goes_on = (column.weight > 0) & alive[-1][column.target]
            alive.append(np.bincount(column.source, goes_on, len(self.start)) > 0)
        return alive[::-1]

    @cached_property
    def _choices(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each column: its possible edges by source, and their cumulative weights."""
        tables = []
        for column, after in zip(self.columns, self._backward[1:]):
            mass = column.weight * after[column.target]
            order = np.argsort(column.source, kind="stable")
            order = order[mass[order] > 0]
            source = column.source[order]
            rank = np.arange(len(order)) - np.searchsorted(source, source)
            edges = np.full((len(self.start), int(rank.max()) + 1), -1)
            edges[source, rank] = order
            tables.append((edges, np.where(edges >= 0, mass[edges], 0.0).cumsum(1)))
        return tables

    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        """A path from left to right, each edge by its exact probability given the state."""
        first = (self.start * self._backward[0]).cumsum()
        state = pick(np.tile(first, (len(u), 1)), u[:, 0])
        tokens = np.zeros((len(u), self.length), dtype=np.int64)
        for t, (column, (edges, cumulative)) in enumerate(zip(self.columns, self._choices)):
            edge = edges[state, pick(cumulative[state], u[:, t + 1])]
            tokens[:, column.positions] = column.symbols[column.symbol[edge]]
            state = column.target[edge]
        return tokens

    def entropy(self) -> float | None:
        """In nats: that of the paths, where every sequence has one; None otherwise."""
        if not self.unambiguous:
            return None
        mass = self.start * self._backward[0]
        mass = mass / mass.sum()
        total = float(entr(mass).sum())
        for column, after in zip(self.columns, self._backward[1:]):
            weight = column.weight * after[column.target]
            by_source = np.bincount(column.source, weight, len(mass))
            chance = weight / np.where(by_source > 0, by_source, 1.0)[column.source]
            total += float((mass[column.source] * entr(chance)).sum())
            mass = np.bincount(column.target, mass[column.source] * chance, len(mass))
        return total

    def log_prob(self, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        """log of the sequence's weight over the sum of all."""
        self.check(tokens)
        blank = torch.full_like(tokens[:1], self.vocab_size)
        parts = [self._log_weight(some) for some in (*self._split(tokens), blank)]
        return torch.cat(parts[:-1]) - parts[-1]

    def _log_weight(self, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        messages, scales = tables_of(self, tokens.device).forward(tokens)
        end = torch.from_numpy(self.end).to(tokens.device)
        return (messages[-1] * end[:, None]).sum(0).log() + scales

    def valid(self, tokens: Int[Tensor, "count length"]) -> Bool[Tensor, "count length"]:
        """False at the first column after which no sequence goes on as this one began."""
        self.check(tokens)
        fine = torch.ones(tokens.shape, dtype=torch.bool, device=tokens.device)
        broken = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        messages, _ = tables_of(self, tokens.device).forward(tokens)
        for column, message, after in zip(self.columns, messages[1:], self._alive[1:]):
            goes_on = torch.from_numpy(after).to(tokens.device)[:, None]
            dead = ~((message > 0) & goes_on).any(0)
            fine[:, column.positions[-1]] = broken | ~dead
            broken |= dead
        return fine

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """Forward, backward, and what the edges between them show."""
        tables = tables_of(self, tokens.device)
        blank = tokens.new_zeros((0, self.length, self.vocab_size), dtype=torch.float64)
        return torch.cat([blank, *(tables.marginals(some) for some in self._split(tokens))])

    def _split(self, tokens: Tensor) -> tuple[Tensor, ...]:
        edges = max(len(column.source) for column in self.columns)
        return torch.split(tokens, max(1, CELLS // edges))


@dataclass(frozen=True, eq=False)
class _Step:
    """A column's tables on a device; messages are (states, canvases)."""

    positions: tuple[int, ...]
    symbols: Tensor
    source: Tensor
    symbol: Tensor
    target: Tensor
    into: Sparse  # edges to the states they lead to, weighted
    out_of: Sparse  # edges to the states they leave, weighted
    shown: tuple[Sparse, ...]  # edges to the tokens they show, weighted, a position each

    def agree(self, tokens: Tensor, mask_id: int) -> Tensor:
        """1 for the edges whose symbol agrees with each canvas (edges, canvases)."""
        fits = torch.ones((len(self.symbols), len(tokens)), dtype=torch.bool, device=tokens.device)
        for place, values in zip(self.positions, self.symbols.T):
            here = tokens[:, place]
            fits &= (here == mask_id) | (here == values[:, None])
        return fits[self.symbol].to(torch.float64)


class Tables:
    """A chain's columns on one device."""

    def __init__(self, world: ChainWorld, device: torch.device) -> None:
        self.vocab, self.length = world.vocab_size, world.length
        self.start, self.end = (torch.from_numpy(x).to(device) for x in (world.start, world.end))
        states = len(world.start)
        self.steps = [_on(column, states, self.vocab, device) for column in world.columns]

    def forward(self, tokens: Tensor) -> tuple[list[Tensor], Tensor]:
        """α before each column and at the end, and the logarithm of what was divided out."""
        message = self.start[:, None].expand(-1, len(tokens))
        messages, scales = [message], torch.zeros(len(tokens), dtype=torch.float64)
        scales = scales.to(tokens.device)
        for step in self.steps:
            message = step.into @ (message[step.source] * step.agree(tokens, self.vocab))
            message, size = _scaled(message)
            messages.append(message)
            scales = scales + size.log()
        return messages, scales

    def marginals(self, tokens: Tensor) -> Tensor:
        """Weights (canvases, length, vocab), zero where a canvas is impossible."""
        forward, _ = self.forward(tokens)
        weights = torch.zeros(
            (self.length, self.vocab, len(tokens)), dtype=torch.float64, device=tokens.device
        )
        message = self.end[:, None].expand(-1, len(tokens))
        for before, step in zip(reversed(forward[:-1]), reversed(self.steps)):
            back = message[step.target] * step.agree(tokens, self.vocab)
            edges = before[step.source] * back
            for place, shown in zip(step.positions, step.shown):
                weights[place] = shown @ edges
            message, _ = _scaled(step.out_of @ back)
        return weights.permute(2, 0, 1)


def _on(column: Column, states: int, vocab: int, device: torch.device) -> _Step:
    source, symbol, target, weight, symbols = (
        torch.from_numpy(np.ascontiguousarray(x)).to(device)
        for x in (column.source, column.symbol, column.target, column.weight, column.symbols)
    )
    edge = torch.arange(len(source), device=device)
    tokens = [values[symbol].contiguous() for values in symbols.T]
    return _Step(
        column.positions,
        symbols,
        source,
        symbol,
        target,
        Sparse(target, edge, weight, (states, len(edge))),
        Sparse(source, edge, weight, (states, len(edge))),
        tuple(Sparse(values, edge, weight, (vocab, len(edge))) for values in tokens),
    )


def _scaled(message: Tensor) -> tuple[Tensor, Tensor]:
    size = message.amax(0)
    return message / torch.where(size > 0, size, 1.0), size


@lru_cache(maxsize=16)
def tables_of(world: ChainWorld, device: torch.device) -> Tables:
    """The tables of a world on a device (kept)."""
    return Tables(world, device)
