"""A map of the part of a graph that walks use: the nodes they visit, and some next to them.

A graph of 500 nodes drawn whole is a tangle. The map holds the visited nodes, a few beside them,
and every edge between those; its layout is Kamada and Kawai's, with the distances of the whole
graph, so nodes that are far apart there stand far apart here.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.optimize import minimize
from scipy.sparse.csgraph import shortest_path

from maskwalk.worlds.walks.graphs import Graph

MOST_VISITED = 200  # nodes; beyond, a map is a tangle again
MOST_BESIDE = 16  # nodes that no walk visits
DISTANCES = 2_000  # nodes of a graph whose distances are all known
SIZE, GROWTH, APART = 1000, 125, 62  # the longer side, at most and by √nodes; between two nodes


def walk_map(graph: Graph, walks: Sequence[Sequence[int]]) -> Any:
    """Names, places and edges of the nodes that these walks visit; None where they are too many."""
    visited = np.unique(np.array([node for walk in walks for node in walk], dtype=np.int64))
    if not 0 < len(visited) <= MOST_VISITED:
        return None
    nodes = np.concatenate([visited, _beside(graph, visited)])
    both = _both_ways(graph, nodes)
    places = _places(_distances(graph, nodes, both))
    edges = np.argwhere(np.triu(both, 1))
    return {
        "kind": "graph",
        "nodes": nodes.tolist(),
        "places": np.rint(places).astype(int).ravel().tolist(),
        "edges": edges.ravel().tolist(),
        "visited": len(visited),
    }


def _both_ways(graph: Graph, nodes: Int64[np.ndarray, " n"]) -> Bool[np.ndarray, "n n"]:
    """Which of these nodes are joined, in either direction."""
    part = graph.adjacency[nodes][:, nodes].toarray() > 0
    return np.asarray(part | part.T)


def _beside(graph: Graph, visited: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " m"]:
    """Nodes beside the walks: those with the most visited neighbours."""
    inside = np.zeros(graph.nodes, dtype=np.int64)
    inside[visited] = 1
    into = np.bincount(graph.targets[inside[graph.sources] == 1], minlength=graph.nodes)
    into = np.where(inside == 1, 0, into)
    most = min(MOST_BESIDE, max(4, len(visited) // 2))
    order = np.lexsort((np.arange(graph.nodes), -into))[:most]
    return order[into[order] > 0]


@lru_cache(maxsize=2)
def _all_distances(graph: Graph) -> Float64[np.ndarray, "nodes nodes"]:
    return np.asarray(shortest_path(graph.adjacency, directed=False, unweighted=True))


def _distances(
    graph: Graph, nodes: Int64[np.ndarray, " n"], both: Bool[np.ndarray, "n n"]
) -> Float64[np.ndarray, "n n"]:
    """Steps between nodes in the whole graph; in one that is too large, on the map."""
    if graph.nodes <= DISTANCES:
        steps = _all_distances(graph)[np.ix_(nodes, nodes)]
    else:
        steps = np.asarray(shortest_path(both.astype(float), unweighted=True))
    known = steps[np.isfinite(steps)]
    return np.asarray(np.where(np.isfinite(steps), steps, known.max() + 2.0))


def _places(steps: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n 2"]:
    """Kamada and Kawai's layout, its longest side level, no two nodes on top of each other."""
    n = len(steps)
    if n == 1:
        return np.zeros((1, 2))
    places = _springs(steps)
    places = places - places.mean(0)
    places = places @ np.linalg.svd(places, full_matrices=False)[2].T
    side = min(SIZE, GROWTH * n**0.5)
    places *= side / max(float(np.ptp(places, axis=0).max()), 1e-9)
    return _apart(places)


def _springs(steps: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n 2"]:
    """Kamada and Kawai's layout as networkx has it, in half of its time: from a circle, the least

    ½ Σ (|x_i − x_j| / d_ij − 1)² + ½ · 10⁻³ |Σ x_i|²,     d the same both ways.
    """
    n = len(steps)
    apart = np.eye(n) * 1e-3  # nothing is divided by 0
    stiff = 1 / (steps + apart)

    def cost(flat: Float64[np.ndarray, " coordinates"]) -> tuple[float, np.ndarray]:
        """The sum, and how it changes with every coordinate."""
        places = flat.reshape(n, 2)
        x, y = places.T
        right, down = x[:, None] - x, y[:, None] - y
        far = np.sqrt(right * right + down * down)
        stretch = far * stiff - 1.0
        np.fill_diagonal(stretch, 0.0)
        pull = 2 * stiff * stretch / (far + apart)
        middle = places.sum(0)
        slope = np.stack([(pull * right).sum(1), (pull * down).sum(1)], axis=1) + 1e-3 * middle
        return 0.5 * float((stretch**2).sum() + 1e-3 * (middle**2).sum()), slope.ravel()

    turn = 2 * np.pi * np.arange(n) / n
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1).ravel()
    found = minimize(cost, circle, method="L-BFGS-B", jac=True)
    return np.asarray(found.x.reshape(n, 2))


def _apart(places: Float64[np.ndarray, "n 2"]) -> Float64[np.ndarray, "n 2"]:
    """The same, with nodes that are too close pushed away from each other."""
    for _ in range(60):
        gap = places[:, None] - places[None]
        far = np.hypot(gap[..., 0], gap[..., 1])
        np.fill_diagonal(far, np.inf)
        if float(far.min()) >= APART - 1:
            break
        short = np.maximum(APART - far, 0.0) / 2
        turned = np.where(far[..., None] > 1e-6, gap / np.maximum(far, 1e-6)[..., None], 0.7)
        places = places + (short[..., None] * turned).sum(1)
    return np.asarray(places - places.min(0))
