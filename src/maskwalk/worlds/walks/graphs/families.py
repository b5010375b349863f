"""The random graph families of the paper, and their directed and weighted relatives.

ST-ER(p) [paper, section Experiments]: vertices join a tree in uniformly random order, each attached
to a uniform one already in; then every remaining pair becomes an edge with probability p. A larger
p with the same seed only adds edges. The bottleneck families join ST-ER communities by few edges.
pairs.py draws the pairs, and says how where there are too many for a coin each.

Every number comes from a counter-based table addressed by (seed, stream, row), and only compared,
sorted or multiplied: a graph is the same on every machine.
"""

import numpy as np
from jaxtyping import Float64, Int64

from maskwalk.errors import real, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.sizes import check_graph
from maskwalk.worlds.walks.graphs.graph import GRAPHS, Graph, assemble
from maskwalk.worlds.walks.graphs.pairs import by_coins, coins, listed

COMMUNITIES = 100_000  # at most
HEAVIEST = 2**31 - 1  # the largest weight
# A community's streams are STREAMS * its number + these; then those outside the communities.
ORDER, PARENT, PAIR, LIST, STREAMS = 0, 1, 2, 3, 4
BRIDGES, CYCLE, ARCS, WEIGHTS, ARC_LIST = (2**31 + i for i in range(5))


def _uniforms(seed: int, stream: int, width: int) -> Float64[np.ndarray, " width"]:
    return block_uniforms(seed, Purpose.GRAPH, 0, 1, width, stream).reshape(-1)


def _community(
    seed: int, number: int, nodes: int, p: float, tossed: bool
) -> tuple[Int64[np.ndarray, "edges 2"], int]:
    """One ST-ER graph on nodes 0..nodes-1: its edges (each once) and the root of its tree."""
    base = STREAMS * number
    order = np.argsort(_uniforms(seed, base + ORDER, nodes), kind="stable")
    joined = np.arange(1, nodes)
    parent = np.floor(_uniforms(seed, base + PARENT, nodes)[1:] * joined).astype(np.int64)
    tree = np.stack([order[parent], order[joined]], axis=1)
    extra = (
        coins(seed, base + PAIR, nodes, p, ordered=False)
        if tossed
        else listed(seed, (base + PAIR, base + LIST), nodes, p, ordered=False)
    )
    # A pair that is in the tree already changes nothing: `assemble` counts repeats once.
    return np.concatenate([tree, extra]), int(order[0])


def _communities(
    seed: int, count: int, nodes: int, p: float
) -> tuple[Int64[np.ndarray, "edges 2"], tuple[int, ...], Int64[np.ndarray, " all"]]:
    """Separate ST-ER communities: edges, roots and community labels; nothing between them."""
    tossed = by_coins(float(count) * nodes**2, p)
    parts = [_community(seed, c, nodes, p, tossed) for c in range(count)]
    edges = np.concatenate([pairs + c * nodes for c, (pairs, _) in enumerate(parts)])
    roots = tuple(root + c * nodes for c, (_, root) in enumerate(parts))
    return edges, roots, np.repeat(np.arange(count, dtype=np.int64), nodes)


def _checked(nodes: int, p: float | int, communities: int = 1) -> tuple[int, float]:
    """The numbers of so many communities, if they can be drawn here."""
    nodes, p = whole("nodes", nodes, 2), real("p", p, 0.0, 1.0)
    pairs = 1.0 * communities * nodes**2
    tossed = pairs if p > 0 and by_coins(pairs, p) else 0
    check_graph(communities * nodes, tossed, p * pairs + communities * nodes)
    return nodes, p


@GRAPHS.register("st_er")
def st_er(nodes: int, p: float | int, seed: int) -> Graph:
    """A uniformly grown spanning tree plus each other pair with probability p (ST-ER)."""
    nodes, p = _checked(nodes, p)
    edges, root = _community(seed, 0, nodes, p, by_coins(1.0 * nodes**2, p))
    return assemble(nodes, edges, roots=(root,))


@GRAPHS.register("weighted")
def weighted(nodes: int, p: float | int, seed: int, heaviest: int = 10) -> Graph:
    """ST-ER with whole-number edge weights uniform in 1..heaviest."""
    plain = st_er(nodes, p, seed)
    heaviest = whole("heaviest", heaviest, 1, HEAVIEST)
    once = plain.sources < plain.targets
    pairs = np.stack([plain.sources[once], plain.targets[once]], axis=1)
    weights = 1.0 + np.floor(_uniforms(seed, WEIGHTS, len(pairs)) * heaviest)
    return assemble(nodes, pairs, weights, roots=plain.roots)


@GRAPHS.register("directed")
def directed(nodes: int, p: float | int, seed: int) -> Graph:
    """A random directed cycle through all nodes plus each other arc with probability p."""
    nodes, p = _checked(nodes, p)
    cycle = np.argsort(_uniforms(seed, CYCLE, nodes), kind="stable")
    tossed = by_coins(1.0 * nodes**2, p)
    extra = coins(seed, ARCS, nodes, p) if tossed else listed(seed, (ARCS, ARC_LIST), nodes, p)
    arcs = [np.stack([cycle, np.roll(cycle, -1)], axis=1), extra[extra[:, 0] != extra[:, 1]]]
    return assemble(nodes, np.concatenate(arcs), directed=True)


def _bridges(seed: int, nodes: int, count: int) -> Int64[np.ndarray, "bridges 2"]:
    """The first `count` distinct cross pairs of one endless list: a shorter list is a prefix."""
    drawn = 2 * count
    while True:
        u = block_uniforms(seed, Purpose.GRAPH, 0, drawn, 2, BRIDGES)
        pairs = np.floor(u * nodes).astype(np.int64)
        _, first = np.unique(pairs[:, 0] * nodes + pairs[:, 1], return_index=True)
        if len(first) >= count:
            bridges: np.ndarray = pairs[np.sort(first)[:count]]
            bridges[:, 1] += nodes
            return bridges
        drawn *= 2


@GRAPHS.register("two_communities")
def two_communities(seed: int, nodes: int = 250, p: float | int = 0.02, bridges: int = 8) -> Graph:
    """Two ST-ER communities of `nodes` each, joined by `bridges` edges (nested: 64 ⊃ 8 ⊃ 1)."""
    nodes, p = _checked(nodes, p, 2)
    bridges = whole("bridges", bridges, 1, nodes**2)
    check_graph(2 * nodes, 8.0 * bridges, 2.0 * bridges)
    edges, roots, community = _communities(seed, 2, nodes, p)
    edges = np.concatenate([edges, _bridges(seed, nodes, bridges)])
    return assemble(2 * nodes, edges, community=community, roots=roots)


@GRAPHS.register("community_chain")
def community_chain(
    seed: int, communities: int = 10, nodes: int = 50, p: float | int = 0.106377551
) -> Graph:
    """ST-ER communities in a row, consecutive ones joined by one edge between their tree roots."""
    communities = whole("communities", communities, 2, COMMUNITIES)
    nodes, p = _checked(nodes, p, communities)
    edges, roots, community = _communities(seed, communities, nodes, p)
    links = np.array([roots[:-1], roots[1:]], dtype=np.int64).T
    return assemble(
        communities * nodes, np.concatenate([edges, links]), community=community, roots=roots
    )


@GRAPHS.register("community_hierarchy")
def community_hierarchy(
    seed: int, depth: int = 2, branching: int = 3, nodes: int = 20, p: float | int = 0.1
) -> Graph:
    """ST-ER communities in a tree: each joined, root to root, to the community above it."""
    depth = whole("depth", depth, 1, 1000)
    branching = whole("branching", branching, 1, COMMUNITIES)
    # Numbered level by level, so the parent of community c > 0 is (c - 1) // branching.
    communities = whole(
        "the number of communities", sum(branching**i for i in range(depth + 1)), 2, COMMUNITIES
    )
    nodes, p = _checked(nodes, p, communities)
    edges, roots, community = _communities(seed, communities, nodes, p)
    child = np.arange(1, communities)
    links = np.array(roots, dtype=np.int64)[np.stack([(child - 1) // branching, child], axis=1)]
    return assemble(
        communities * nodes, np.concatenate([edges, links]), community=community, roots=roots
    )
