"""The kernels of a first-order law, sparse, and vectors that walk on or back by them.

A law of one kernel and one that changes with time (schedule.py) differ only in which kernel leads
to a position. Vectors hold 2^500 times the probabilities: then products of two entries as small as
1e-300 do not underflow.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from scipy.sparse import csr_array
from torch import Tensor

from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw
from maskwalk.worlds.walks.oracles.base import chunks
from maskwalk.worlds.walks.oracles.gaps import SCALE

WORKING = 2**23  # numbers in the vectors that walk at once (64 MB)
THIN = 16  # a vector is held sparse while fewer than 1/THIN of its entries are there
LARGE = 2**13  # nodes from which that pays
NOTHING = 1e-12  # what rows that do not quite sum to 1 may do over a whole walk


@dataclass(frozen=True)
class Kernel:
    """One kernel P: by sources, by targets, and on a device as v ↦ v P and v ↦ P v."""

    rows: csr_array
    columns: csr_array
    onward: Sparse
    back: Sparse

    @classmethod
    def of(cls, law: ChainLaw, device: torch.device) -> "Kernel":
        """The kernel of a law on a device."""
        rows = law.kernel
        columns = csr_array(rows.T)
        if device.type == "cpu":  # the matrices themselves serve
            return cls(rows, columns, Sparse.of(columns), Sparse.of(rows))
        entries = rows.tocoo()
        source, target = (torch.from_numpy(x.astype(np.int64)).to(device) for x in entries.coords)
        value, shape = torch.from_numpy(entries.data).to(device), rows.shape
        onward, back = ((target, source), (source, target))
        return cls(rows, columns, Sparse(*onward, value, shape), Sparse(*back, value, shape))


class Steps:
    """The start law and the kernels of a law on one device."""

    def __init__(self, law: ChainLaw | ScheduleLaw, device: torch.device) -> None:
        self.vocab, self.length, self.device = law.vocab_size, law.length, device
        self.laws = law.laws if isinstance(law, ScheduleLaw) else (law,)
        self.turns = law.turns if isinstance(law, ScheduleLaw) else None
        self.initial = law.initial.to(torch.float64)
        start = self.initial[self.initial > 0]
        values = [float(one.kernel.data.min(initial=1.0)) for one in self.laws]
        self.smallest = min(float(start.min()), *values)
        # Whether every walk goes on for sure: then what lies beyond the end says nothing.
        sums = [np.asarray(one.kernel.sum(axis=1)) for one in self.laws]
        astray = max(float(np.abs(one - 1.0).max(initial=0.0)) for one in sums)
        self.endless = astray * self.length < NOTHING
        self._kernels: dict[int, Kernel] = {}

    def leading(self, position: int) -> Kernel:
        """The kernel of the step to a position."""
        turn = 0 if self.turns is None else self.turns[position - 1]
        if turn not in self._kernels:
            self._kernels[turn] = Kernel.of(self.laws[turn], self.device)
        return self._kernels[turn]

    def joined(self, a: int, s: int, b: int, e: int) -> bool:
        """Whether some walk has a at position s and b at position e, by signs, which do not
        underflow; token V at position −1 and at position L."""
        last = self.length - 1
        at = self.initial.numpy() > 0 if s < 0 else np.arange(self.vocab) == a
        for t in range(max(s, 0) + 1, min(e, last) + 1):
            at = self.leading(t).columns @ at > 0
        return bool(at.any() if e > last else at[b])


class Walkers:
    """Vectors that walk together, on from tokens at one position or back from them.

    Each is held sparse while it has few entries; when it changes over depends on itself alone.
    """

    def __init__(
        self, steps: Steps, tokens: Int64[np.ndarray, " walkers"], origin: int, onward: bool
    ) -> None:
        self.steps, self.tokens, self.origin, self.onward = steps, tokens, origin, onward
        self.taken = 0
        nobody = np.zeros(0, dtype=np.int64)
        self.thin, self.wide = nobody, nobody  # who is held sparse, and who dense
        self.rows = csr_array((0, steps.vocab))  # a row for each thin one
        self.columns = torch.zeros((steps.vocab, 0), dtype=torch.float64, device=steps.device)

    def advance(self, going: Bool[np.ndarray, " walkers"]) -> None:
        """One more step of those that are going; the others are dropped."""
        self.taken += 1
        leads_to = self.origin + self.taken if self.onward else self.origin - self.taken + 1
        if self.taken == 1:
            self._begin(going, leads_to)
        else:
            self._drop(~going)
            kernel = self.steps.leading(leads_to)
            if len(self.wide):
                self.columns = (kernel.onward if self.onward else kernel.back) @ self.columns
            if len(self.thin):
                self.rows = self.rows @ (kernel.rows if self.onward else kernel.columns)
        if len(self.thin):
            limit = self.steps.vocab / THIN if self.steps.vocab >= LARGE else 0
            self._widen(np.diff(self.rows.indptr) > limit)

    def _begin(self, going: Bool[np.ndarray, " walkers"], leads_to: int) -> None:
        """Token V is beyond the ends: the start law on one side, anything goes on the other."""
        beyond = self.tokens == self.steps.vocab
        (self.thin,) = np.nonzero(going & ~beyond)
        if len(self.thin):
            kernel = self.steps.leading(leads_to)
            some = (kernel.rows if self.onward else kernel.columns)[self.tokens[self.thin]]
            self.rows = csr_array(some * SCALE)
        (self.wide,) = np.nonzero(going & beyond)
        if len(self.wide):
            law = self.steps.initial if self.onward else torch.ones_like(self.steps.initial)
            self.columns = (law * SCALE).to(self.steps.device)[:, None]

    def _drop(self, done: Bool[np.ndarray, " walkers"]) -> None:
        if done[self.thin].any():
            keep = ~done[self.thin]
            self.thin, self.rows = self.thin[keep], self.rows[np.flatnonzero(keep)]
        if done[self.wide].any():
            keep = ~done[self.wide]
            self.wide, self.columns = self.wide[keep], self._take(np.flatnonzero(keep))

    def _take(self, index: Int64[np.ndarray, " n"]) -> Float[Tensor, "vocab n"]:
        return self.columns[:, torch.from_numpy(index).to(self.columns.device)].contiguous()

    def _widen(self, full: Bool[np.ndarray, " thin"]) -> None:
        """Vectors that have filled up are held dense from here on."""
        if full.any():
            block = torch.from_numpy(self.rows[np.flatnonzero(full)].toarray().T)
            self.columns = torch.cat([self.columns, block.to(self.columns.device)], 1)
            self.wide = np.concatenate([self.wide, self.thin[full]])
            self.thin, self.rows = self.thin[~full], self.rows[np.flatnonzero(~full)]

    def vectors(
        self, who: Int64[np.ndarray, " asked"]
    ) -> Iterator[tuple[Int64[np.ndarray, " n"], Float[Tensor, "n vocab"]]]:
        """The vectors of some walkers, some at a time: which of the asked, and a row for each."""
        place = np.full(len(self.tokens), -1)
        place[self.thin] = np.arange(len(self.thin))
        place[self.wide] = len(self.thin) + np.arange(len(self.wide))
        index = place[who]
        for dense in (False, True):
            (asked,) = np.nonzero((index >= len(self.thin)) == dense)
            for part in chunks(len(asked), WORKING // self.steps.vocab):
                some = asked[part]
                if dense:
                    yield some, self._take(index[some] - len(self.thin)).T
                else:
                    block = torch.from_numpy(self.rows[index[some]].toarray())
                    yield some, block.to(self.columns.device)
