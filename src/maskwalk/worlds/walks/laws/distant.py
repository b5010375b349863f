"""The distant-K walk: the next node is a neighbour of a distant ancestor, not of the last node.

With positions from 1, A_l = {j : skip_recent + 1 <= j <= K, j <= l - 1}, and [paper, section
"Order K random walks"]

    P(X_{l+1} = v | X_{1:l}) = 1/|A_l| · Σ_{j in A_l} 1{v in N(X_{l-j})} / |N(X_{l-j})|

or, where A_l is empty, the one-step walk 1{v in N(X_l)} / |N(X_l)|. K = 4 and skip_recent = 2 look
at lags 4 and 5, so the order, the width of a separator, is K + 1 = 5.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from scipy.sparse import csr_array, diags_array
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws.chain import ChainLaw
from maskwalk.worlds.walks.laws.law import WALKS, WalkLaw, walkable


@WALKS.register("distant")
class DistantLaw(WalkLaw):
    """The next node is a neighbour of one of several distant ancestors (the paper's distant-K)."""

    threaded = True

    def __init__(self, graph: Graph, length: int, K: int = 4, skip_recent: int = 2) -> None:
        walkable(graph, "Distant")
        self.K = whole("K", K, 1, 65_535)
        self.skip_recent = whole("skip_recent", skip_recent, 0, self.K - 1)
        super().__init__(graph.nodes, length, self.K + 1, graph)
        if length < self.order:
            raise MaskwalkError(
                f"distant(K={K}) walks look back {self.order} tokens; make the length at least "
                f"{self.order}, not {length}."
            )
        strength = np.asarray(graph.adjacency.sum(axis=1))
        uniform = torch.full((graph.nodes,), 1.0 / graph.nodes, dtype=torch.float64)
        step = csr_array(diags_array(1.0 / strength) @ graph.adjacency)
        self.step = ChainLaw(uniform, step, length, graph)  # the one-step, non-lazy walk

    def lags(self, past: int) -> list[int]:
        """How far back the next token's ancestors lie, after `past` tokens (1: the last)."""
        ancestors = range(self.skip_recent + 1, min(self.K, past - 1) + 1)
        return [j + 1 for j in ancestors] or [1]

    def next_probs(self, history: Int[Tensor, "rows past"]) -> Float64[Tensor, "rows vocab"]:
        """The mean of the one-step laws from the ancestors."""
        past = history.shape[1]
        if past == 0:
            return self.step.next_probs(history)
        lags = self.lags(past)
        rows = [self.step.next_probs(history[:, past - lag, None]) for lag in lags]
        return torch.stack(rows).sum(0) / len(lags)

    def token_probs(
        self, history: Int[Tensor, "rows past"], tokens: Int[Tensor, " rows"]
    ) -> Float64[Tensor, " rows"]:
        """Looked up in the sparse one-step kernel."""
        past = history.shape[1]
        if past == 0:
            return self.step.token_probs(history, tokens)
        lags = self.lags(past)
        rows = [self.step.token_probs(history[:, past - lag, None], tokens) for lag in lags]
        return torch.stack(rows).sum(0) / len(lags)

    def _sample(self, u: Float64[np.ndarray, "count length"]) -> Int64[np.ndarray, "count length"]:
        """One uniform a step: its slot names the ancestor, the fraction left over the neighbour."""
        walks = np.empty((self.length, len(u)), dtype=np.int64)
        alias, columns = self.step._alias, np.ascontiguousarray(u.T)
        walks[0] = alias.draw(np.full(len(u), self.vocab_size), columns[0])
        row = np.arange(len(u))
        for t in range(1, self.length):
            lags = np.array(self.lags(min(t, self.order)))
            x = columns[t] * len(lags)
            choice = x.astype(np.int64)
            walks[t] = alias.draw(walks[t - lags[choice], row], x - choice)
        return walks.T

    def reach(self, start: int) -> Bool[Tensor, " vocab"]:
        """Which tokens can end a walk from `start`. The ancestors of one token form a path, and the
        tokens between can always be filled in, so each position's set is enough."""
        forward = self.step.kernel.T
        at = [np.arange(self.vocab_size) == start]
        for t in range(1, self.length):
            ways = [forward @ at[t - lag] > 0 for lag in self.lags(min(t, self.order))]
            at.append(np.logical_or.reduce(ways))
        return torch.from_numpy(at[-1])
