"""The two level DAGs of the paper's separation results [section Parallel sampling].

Every arc leads from a level to the next, so a walk from the root visits each level once and the
position in the walk is the level of the node.

    Tree-Line-DAG(d, m)    root -> v_{i,1} -> … -> v_{i,m} for i in 1..d;        m + 1 levels
    bottleneck DAG(K, W)   u_i -> a_{i,j} -> b_{i,j} -> v_i -> u_{i+1}, j in 1..W; 4K levels
"""

import numpy as np

from maskwalk.errors import whole
from maskwalk.worlds.sizes import check_graph
from maskwalk.worlds.walks.graphs.graph import GRAPHS, Graph, assemble


@GRAPHS.register("tree_line_dag")
def tree_line_dag(chains: int, length: int) -> Graph:
    """A root with `chains` directed chains of `length` nodes each; walks have length + 1 tokens."""
    d, m = whole("chains", chains, 1), whole("length", length, 1)
    check_graph(1 + d * m, 0, d * m)
    chain = 1 + np.arange(d * m, dtype=np.int64).reshape(d, m)  # node v_{i,j} is 1 + i*m + j
    path = np.concatenate([np.zeros((d, 1), dtype=np.int64), chain], axis=1)
    arcs = np.stack([path[:, :-1].ravel(), path[:, 1:].ravel()], axis=1)
    levels = np.concatenate([[0], np.tile(np.arange(1, m + 1), d)]).astype(np.int64)
    return assemble(1 + d * m, arcs, directed=True, levels=levels, roots=(0,))


@GRAPHS.register("bottleneck_dag")
def bottleneck_dag(corridors: int, width: int) -> Graph:
    """`corridors` corridors of `width` parallel two-node paths between bottlenecks, in a row."""
    k, w = whole("corridors", corridors, 1), whole("width", width, 1)
    check_graph(k * (2 * w + 2), 0, k * (3 * w + 1))
    size = 2 * w + 2  # of one corridor, numbered u, a_1..a_w, b_1..b_w, v
    lane = np.arange(1, w + 1)
    u, v = np.zeros_like(lane), np.full_like(lane, size - 1)
    lanes = [np.stack(ends, axis=1) for ends in ((u, lane), (lane, lane + w), (lane + w, v))]
    one = np.concatenate([*lanes, [[size - 1, size]]])  # the last arc leads to the next corridor
    arcs = (one[None] + size * np.arange(k)[:, None, None]).reshape(-1, 2)[:-1]
    level = np.array([0] + [1] * w + [2] * w + [3])
    levels = (level[None] + 4 * np.arange(k)[:, None]).ravel().astype(np.int64)
    return assemble(k * size, arcs.astype(np.int64), directed=True, levels=levels, roots=(0,))
