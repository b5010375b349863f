"""Stationary laws of lazy walks.

Undirected: pi(u) ∝ Σ w(u,·) / (1 - stay(u)), since then pi(u) P(v|u) ∝ w(u,v) is symmetric.
Directed: solve q = q Q for the walk without its stays, then pi(u) ∝ q(u) / (1 - stay(u)). Of many
nodes the factors of that system would not fit; there q ← (q + q Q) / 2 is repeated until it stands
still.
"""

import numpy as np
from jaxtyping import Float64
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.graphs import Graph

FACTORED = 10_000  # nodes of a system that is solved at once
STILL, TURNS = 1e-13, 5_000  # what may move in a turn, and how many there are at most


def stationary(graph: Graph, stays: Float64[np.ndarray, " nodes"]) -> Float64[np.ndarray, " nodes"]:
    """The stationary law of the lazy walk with these stay probabilities."""
    strength = np.asarray(graph.adjacency.sum(axis=1))
    pi = strength if not graph.directed else _directed(graph, strength)
    pi = pi / (1.0 - stays)
    return np.asarray(pi / pi.sum())


def _directed(
    graph: Graph, strength: Float64[np.ndarray, " nodes"]
) -> Float64[np.ndarray, " nodes"]:
    count, part = connected_components(graph.adjacency, directed=True, connection="strong")
    leaves = np.zeros(count, dtype=bool)
    crossing = part[graph.sources] != part[graph.targets]
    leaves[part[graph.sources[crossing]]] = True
    if (~leaves).sum() > 1:
        raise MaskwalkError(
            f"This graph has {int((~leaves).sum())} parts that a walk cannot leave, so more than "
            "one stationary law; use start='uniform'."
        )
    # Nodes outside the one closed part are left behind for good and have stationary probability 0.
    closed = np.flatnonzero(~leaves[part])
    step = (diags_array(1.0 / strength) @ graph.adjacency)[closed][:, closed]
    # (I - Qᵀ) q = 0 fixes q up to a factor: set the first entry to 1 and drop its equation.
    pi = np.zeros(graph.nodes)
    pi[closed[0]] = 1.0
    if len(closed) > FACTORED:
        pi[closed] = _repeated(csr_array(step.T))
    elif len(closed) > 1:
        system = csr_array(eye_array(len(closed)) - step.T).tocsc()
        pi[closed[1:]] = spsolve(system[1:, 1:], -system[1:, [0]].toarray().ravel())
    return pi


def _repeated(back: csr_array) -> Float64[np.ndarray, " nodes"]:
    """The law that the walk leaves as it is, given Qᵀ, by walking."""
    q = np.full(back.shape[0], 1.0 / back.shape[0])
    for _ in range(TURNS):
        after = 0.5 * (q + back @ q)
        after /= after.sum()
        if np.abs(after - q).sum() < STILL:
            return np.asarray(after)
        q = after
    raise MaskwalkError(
        f"The stationary law of this directed graph of {len(q):,} nodes is not settled after "
        f"{TURNS:,} steps; use start='uniform', or fewer nodes."
    )
