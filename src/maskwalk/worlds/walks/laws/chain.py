"""First-order laws: an initial law, a sparse kernel, and the walks people mean by the word.

lazy      P(u|u) = stay(u), P(v|u) = (1 - stay(u)) · w(u,v) / Σ w(u,·)
dag       level DAGs: from the root, each out-arc in proportion to its weight
"""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from scipy.sparse import csr_array, diags_array, vstack
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.worlds.sizes import fits_table
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws.alias import Alias
from maskwalk.worlds.walks.laws.law import WALKS, WalkLaw, walkable
from maskwalk.worlds.walks.laws.lifted import CELLS
from maskwalk.worlds.walks.laws.stationary import stationary


class ChainLaw(WalkLaw):
    """Order 1: `initial` (V,) and `kernel` (V, V), whose rows sum to 1, or 0 where walks end."""

    threaded = True

    def __init__(
        self,
        initial: Float64[Tensor, " vocab"],
        kernel: Any,  # csr_array, or anything it can be made of, such as a dense array
        length: int,
        graph: Graph | None = None,
    ) -> None:
        super().__init__(len(initial), length, 1, graph)
        self.initial = initial
        self.kernel = csr_array(kernel, dtype=np.float64)
        self.kernel.sum_duplicates()
        self.kernel.eliminate_zeros()
        self._validate()
        # Row V of the table is the start law: a walk is one step from there and then the rest.
        self._alias = Alias(csr_array(vstack([self.kernel, csr_array(initial.numpy()[None])])))
        rows = np.repeat(np.arange(self.vocab_size), np.diff(self.kernel.indptr))
        self._keys = rows * self.vocab_size + self.kernel.indices

    def _validate(self) -> None:
        size = self.vocab_size
        if self.kernel.shape != (size, size):
            raise MaskwalkError(
                f"A kernel over {size} tokens has shape ({size}, {size}), not {self.kernel.shape}."
            )
        check_law("The initial law", self.initial.numpy())
        check_law("The kernel", self.kernel.data, total=False)
        sums = np.asarray(self.kernel.sum(axis=1))
        final = sums == 0
        if np.abs(sums - 1.0)[~final].max(initial=0.0) > 1e-9:
            raise MaskwalkError("Every row of the kernel must sum to 1 (or be all 0: walks end).")
        if final.any():
            at = self.initial.numpy() > 0
            for _ in range(self.length - 1):
                if (at & final).any():
                    stuck = int(np.flatnonzero(at & final)[0])
                    raise MaskwalkError(
                        f"A walk of length {self.length} can get stuck: no arc leaves node {stuck}."
                    )
                at = self.kernel.T @ at > 0

    @cached_property
    def transition(self) -> Float64[Tensor, "vocab vocab"]:
        """The kernel as a dense tensor."""
        return torch.from_numpy(self.kernel.toarray())

    def next_probs(self, history: Int[Tensor, "rows past"]) -> Float64[Tensor, "rows vocab"]:
        """The start law, or the kernel's row of the last token."""
        if history.shape[1] == 0:
            return self.initial.to(history.device).expand(len(history), -1)
        if self.vocab_size <= 4096:
            return self.transition[history[:, -1].cpu()].to(history.device)
        rows = self.kernel[history[:, -1].cpu().numpy()].toarray()
        return torch.from_numpy(rows).to(history.device)

    def token_probs(
        self, history: Int[Tensor, "rows past"], tokens: Int[Tensor, " rows"]
    ) -> Float64[Tensor, " rows"]:
        """Looked up in the sparse kernel, so no (rows, vocab) table is made."""
        now = tokens.cpu().numpy()
        if history.shape[1] == 0:
            return self.initial[now].to(tokens.device)
        probs = self.lookup(history[:, -1].cpu().numpy(), now)
        return torch.from_numpy(probs).to(tokens.device)

    def lookup(
        self, sources: Int[np.ndarray, " rows"], targets: Int[np.ndarray, " rows"]
    ) -> Float64[np.ndarray, " rows"]:
        """P(target | source) for many pairs, by binary search in the sorted arcs."""
        keys = sources.astype(np.int64) * self.vocab_size + targets
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[place] == keys, self.kernel.data[place], 0.0)

    def _sample(self, u: Float64[np.ndarray, "count length"]) -> Int64[np.ndarray, "count length"]:
        return self._alias.walk(np.full(len(u), self.vocab_size), u)

    def marginals(self) -> Float64[Tensor, "length vocab"]:
        """The law of the token at each position."""
        fits_table("The law of every position", self.length, self.vocab_size)
        at = self.initial.numpy()
        rows = [at]
        for _ in range(self.length - 1):
            at = self.kernel.T @ at
            rows.append(at)
        return torch.from_numpy(np.stack(rows))

    def entropy(self) -> float:
        """H(start) + Σ_t Σ_u Pr(x_t = u) H(P(·|u))."""
        start = self.initial.numpy()
        first = -np.sum(start[start > 0] * np.log(start[start > 0]))
        each = self.row_entropies()
        if self.length * self.vocab_size <= CELLS:
            return float(first + (self.marginals().numpy()[:-1] @ each).sum())
        total, at = float(first), start
        for _ in range(self.length - 1):  # without the whole table
            total, at = total + float(at @ each), self.kernel.T @ at
        return total

    def row_entropies(self) -> Float64[np.ndarray, " vocab"]:
        """H(P(·|u)) of every token u."""
        data, rows = self.kernel.data, self._keys // self.vocab_size
        return np.bincount(rows, weights=-data * np.log(data), minlength=self.vocab_size)

    def reach(self, start: int) -> Bool[Tensor, " vocab"]:
        """Which tokens can end a walk from `start`, by boolean matrix-vector products."""
        whole("start", start, 0, self.vocab_size - 1)
        at = (np.arange(self.vocab_size) == start) & (self.initial.numpy() > 0)
        for _ in range(self.length - 1):
            at = self.kernel.T @ at > 0
        return torch.from_numpy(at)


def check_law(what: str, probs: Float64[np.ndarray, "..."], total: bool = True) -> None:
    """Refuses numbers that are not probabilities."""
    if not (np.isfinite(probs).all() and (probs >= 0).all()):
        raise MaskwalkError(f"{what} must hold finite numbers of at least 0.")
    if total and abs(probs.sum() - 1.0) > 1e-9:
        raise MaskwalkError(f"{what} must sum to 1, not {probs.sum():.9g}.")


def lazy_kernel(
    graph: Graph, stay: float | None
) -> tuple[csr_array, Float64[np.ndarray, " nodes"]]:
    """The lazy kernel of a graph and its stay probabilities; a node without arcs stays for sure."""
    strength = np.asarray(graph.adjacency.sum(axis=1))
    stays = 1.0 / (graph.out_degree + 1.0) if stay is None else np.full(graph.nodes, stay)
    stays = np.where(strength > 0, stays, 1.0)
    scale = np.divide(1.0 - stays, strength, out=np.zeros(graph.nodes), where=strength > 0)
    return csr_array(diags_array(scale) @ graph.adjacency + diags_array(stays)), stays


class LazyLaw(ChainLaw):
    """The lazy walk; remembers its stay probability (None: 1/(deg+1))."""

    def __init__(self, graph: Graph, length: int, stay: float | None, start: str) -> None:
        kernel, stays = lazy_kernel(graph, stay)
        if start == "uniform":
            initial = np.full(graph.nodes, 1.0 / graph.nodes)
        else:
            initial = stationary(graph, stays)
        super().__init__(torch.from_numpy(initial), kernel, length, graph)
        self.stay = stay


@WALKS.register("lazy")
def lazy(
    graph: Graph, length: int, stay: float | int | None = None, start: str = "uniform"
) -> ChainLaw:
    """The lazy walk: stays with probability `stay`, else takes an arc in proportion to its weight.

    stay=None is the paper's 1/(deg+1), deg counting the arcs that leave the node. On a weighted
    graph that is the same count, so rescaling the weights changes nothing: it is a loop of the
    node's mean arc weight. start is "uniform" or "stationary".
    """
    walkable(graph, "Lazy")
    one_of("start", start, ("uniform", "stationary"))
    if stay is not None:
        stay = real("stay", stay, 0.0, 1.0)
        if stay == 1:
            raise MaskwalkError("stay must be below 1: a walk that always stays goes nowhere.")
    return LazyLaw(graph, length, stay, start)


@WALKS.register("dag")
def dag(graph: Graph, length: int) -> ChainLaw:
    """The walk through a level DAG: from the root, each out-arc in proportion to its weight."""
    if graph.levels is None:
        raise MaskwalkError(
            "dag() walks need a level DAG, such as tree_line_dag(chains=4, length=6) or "
            "bottleneck_dag(corridors=2, width=4); on other graphs use lazy()."
        )
    levels = int(graph.levels.max()) + 1
    if length != levels:
        raise MaskwalkError(
            f"A walk through this DAG visits each of its {levels} levels once, so its length is "
            f"{levels}, not {length}."
        )
    first = graph.levels == 0
    strength = np.asarray(graph.adjacency.sum(axis=1))
    scale = np.divide(1.0, strength, out=np.zeros(graph.nodes), where=strength > 0)
    initial = torch.from_numpy(first / first.sum())
    return ChainLaw(initial, diags_array(scale) @ graph.adjacency, length, graph)
