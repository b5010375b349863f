"""Nonreversible walks on an undirected graph: a lazy walk with a preferred way round.

Every node has a place on a circle. An edge leads *on* from u to v if v lies less than half a turn
ahead of u, and *back* from v to u. The arc on counts w(u,v) · (1 + strength), the arc back
w(u,v) · (1 - strength); the rest is the lazy walk. So the walks that are possible are those of the
lazy walk, whatever the strength, and only their probabilities change: around a cycle one way is
likelier than the other, which no reversible chain does (Kolmogorov's criterion). A negative
strength drifts the other way round. On a tree there are no cycles and the walk stays reversible.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float64
from scipy.sparse import csr_array

from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws.chain import ChainLaw, LazyLaw
from maskwalk.worlds.walks.laws.law import WALKS, walkable

PLACES = 2**29  # the stream of uniforms that places the nodes: no graph family has it


@WALKS.register("drift")
def drift(
    graph: Graph,
    length: int,
    strength: float | int = 0.5,
    stay: float | int = 0.125,
    start: str = "uniform",
    seed: int = 0,
) -> ChainLaw:
    """The lazy walk with a drift: nonreversible, since it prefers one direction of every edge.

    The preferred direction counts (1+strength)/(1-strength) times the other; 0 is the lazy walk, a
    negative strength the other way round. `seed` draws the directions.
    """
    walkable(graph, "Drifting")
    one_of("start", start, ("uniform", "stationary"))
    for name, value, low in (("strength", strength, -1.0), ("stay", stay, 0.0)):
        if abs(real(name, value, low, 1.0)) == 1:
            raise MaskwalkError(f"{name} must be below 1, or some steps would be impossible.")
    seed = whole("seed", seed, 0, 2**63 - 1)
    place = block_uniforms(seed, Purpose.GRAPH, 0, 1, graph.nodes, PLACES).reshape(-1)
    ahead = (place[graph.targets] - place[graph.sources]) % 1.0
    side = np.where(ahead < 0.5, 1.0, -1.0) * (graph.sources != graph.targets)
    weights = graph.weights * (1.0 + strength * side)
    return LazyLaw(replace(graph, weights=weights, directed=True), length, float(stay), start)


def net_flow(
    kernel: csr_array, stationary: Float64[np.ndarray, " nodes"]
) -> Float64[np.ndarray, "nodes nodes"]:
    """π(u) P(v|u) - π(v) P(u|v): zero everywhere if, and only if, the chain is reversible."""
    flow = stationary[:, None] * kernel.toarray()
    return np.asarray(flow - flow.T)
