"""A map of the part of a graph that walks use: the nodes they visit, and some next to them.

A graph of 500 nodes drawn whole is a tangle. The map holds the visited nodes, a few beside them,
and every edge between those. Its layout minimises Kamada and Kawai's energy for the distances of
the whole graph, so nodes that are far apart there stand far apart here.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.sparse.csgraph import shortest_path

from maskwalk.worlds.walks.graphs import Graph

MOST_VISITED = 200  # nodes; beyond, a map is a tangle again
MOST_BESIDE = 16  # nodes that no walk visits
DISTANCES = 2_000  # nodes of a graph whose distances are all known
SIZE, GROWTH, APART = 1000, 125, 62  # the longer side, at most and by √nodes; between two nodes
STEPS, STILL = 300, 1e-5  # of the layout, at most; the relative gain of one that is the last


def walk_map(graph: Graph, walks: Sequence[Sequence[int]]) -> Any:
    """Names, places and edges of the nodes that these walks visit.

    None where they are too many, or not the graph's: a record may have been edited.
    """
    visited = np.unique(np.array([node for walk in walks for node in walk], dtype=np.int64))
    if not 0 < len(visited) <= MOST_VISITED or not 0 <= visited[0] <= visited[-1] < graph.nodes:
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


@lru_cache(maxsize=8)
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
    """The layout, its longest side level, no two nodes on top of each other."""
    n = len(steps)
    if n == 1:
        return np.zeros((1, 2))
    places = _layout(steps)
    places = places - places.mean(0)
    places = places @ np.linalg.svd(places, full_matrices=False)[2].T
    side = min(SIZE, GROWTH * n**0.5)
    places *= side / max(float(np.ptp(places, axis=0).max()), 1e-9)
    return _apart(places)


def _layout(steps: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n 2"]:
    """The better of the layouts from two starts: graphs like the first, trees the second."""
    angle = np.linspace(0, 2 * np.pi, len(steps), endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], 1) * steps.max() / 2
    ends = (_majorised(steps, start) for start in (_scaled(steps), circle))
    return min(ends, key=lambda end: end[0])[1]


def _scaled(steps: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n 2"]:
    """Classical scaling: the plane in which the distances are nearest to right."""
    square = steps**2
    inner = -(square - square.mean(0) - square.mean(1)[:, None] + square.mean()) / 2
    values, vectors = np.linalg.eigh(inner)
    signs = np.where(vectors[np.abs(vectors).argmax(0), np.arange(len(steps))] < 0, -1.0, 1.0)
    return np.asarray((vectors * signs)[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9)))


def _majorised(
    steps: Float64[np.ndarray, "n n"], places: Float64[np.ndarray, "n 2"]
) -> tuple[float, Float64[np.ndarray, "n 2"]]:
    """Kamada and Kawai's energy Σ (|x_i − x_j| / d_ij − 1)², lowered by majorisation; the places.

    Each step solves the quadratic that touches the energy from above, so it never rises; the
    quadratic's matrix is always the same, and is inverted once (Gansner, Koren and North, 2004).
    """
    weights = np.divide(1.0, steps**2, out=np.zeros_like(steps), where=steps > 0)
    laplacian = np.diag(weights.sum(1)) - weights
    inverse = np.linalg.inv(laplacian + 1 / len(steps)) - 1 / len(steps)
    energy = np.inf
    for _ in range(STEPS):
        gap = places[:, None] - places[None]
        far = np.hypot(gap[..., 0], gap[..., 1])
        before, energy = energy, float((weights * (far - steps) ** 2).sum())
        if energy > (1 - STILL) * before:
            break
        pull = np.divide(weights * steps, far, out=np.zeros_like(far), where=far > 1e-9)
        places = inverse @ (pull.sum(1)[:, None] * places - pull @ places)
    return energy, places


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
