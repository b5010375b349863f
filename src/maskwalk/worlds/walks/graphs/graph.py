"""A graph as sorted arcs: what every family makes and every walk law reads.

An undirected edge is stored as both of its arcs, so a walk law never asks whether a graph is
directed: row u of the adjacency matrix is always "where one can go from u".
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import csr_array

from maskwalk.specs import Registry


@dataclass(frozen=True, eq=False)
class Graph:
    """Arcs sorted by (source, target), and what the family knows about the nodes."""

    nodes: int
    sources: Int64[np.ndarray, " arcs"]
    targets: Int64[np.ndarray, " arcs"]
    weights: Float64[np.ndarray, " arcs"]
    directed: bool = False
    community: Int64[np.ndarray, " nodes"] | None = None
    roots: tuple[int, ...] = ()
    levels: Int64[np.ndarray, " nodes"] | None = None
    names: tuple[str, ...] | None = None

    @cached_property
    def adjacency(self) -> csr_array:
        """The weights as a sparse (nodes, nodes) matrix."""
        starts = np.searchsorted(self.sources, np.arange(self.nodes + 1))
        return csr_array((self.weights, self.targets, starts), shape=(self.nodes, self.nodes))

    @cached_property
    def out_degree(self) -> Int64[np.ndarray, " nodes"]:
        """The number of arcs that leave each node."""
        return np.bincount(self.sources, minlength=self.nodes).astype(np.int64)

    @property
    def digest(self) -> str:
        """A hash of the arcs and weights: the same graph has the same digest on every machine."""
        parts = (self.sources.astype("<i8"), self.targets.astype("<i8"), self.weights.astype("<f8"))
        head = f"{self.nodes} {self.directed} ".encode()
        return hashlib.sha256(head + b"".join(part.tobytes() for part in parts)).hexdigest()

    def __repr__(self) -> str:
        edges = len(self.sources) if self.directed else self._undirected()
        kind, what = ("directed ", "arcs") if self.directed else ("", "edges")
        return f"<{kind}Graph of {self.nodes:,} nodes, {edges:,} {what}>"

    def _undirected(self) -> int:
        """Edges: every one is stored as two arcs, a loop as one."""
        return int((self.sources <= self.targets).sum())

    @classmethod
    def from_networkx(cls, graph: Any) -> "Graph":
        """A networkx graph: labels become names, edges without a weight count 1.

        Nodes are numbered by their labels, whole numbers first, in order. Where every node has a
        whole number `community` or `level`, that is kept.
        """
        from maskwalk.worlds.walks.graphs.files import from_networkx

        return from_networkx(graph)

    def to_networkx(self) -> Any:
        """A networkx graph (directed if this is) with the weights, and what is known of nodes."""
        graph = nx.DiGraph() if self.directed else nx.Graph()
        labels = list(range(self.nodes)) if self.names is None else list(self.names)
        graph.add_nodes_from(labels)
        for key, values in (("community", self.community), ("level", self.levels)):
            if values is not None:
                nx.set_node_attributes(graph, dict(zip(labels, values.tolist())), key)
        arcs = zip(self.sources.tolist(), self.targets.tolist(), self.weights.tolist())
        graph.add_weighted_edges_from((labels[a], labels[b], w) for a, b, w in arcs)
        return graph

    def name(self, node: int) -> str:
        """What the user calls a node: its label in the file, else its number."""
        return self.names[node] if self.names else str(node)

    def inside(self) -> "Graph":
        """The same nodes without the arcs between different communities."""
        if self.community is None:
            return self
        keep = self.community[self.sources] == self.community[self.targets]
        return Graph(
            self.nodes,
            self.sources[keep],
            self.targets[keep],
            self.weights[keep],
            self.directed,
            self.community,
            self.roots,
        )


def assemble(
    nodes: int,
    pairs: Int64[np.ndarray, "edges 2"],
    weights: Float64[np.ndarray, " edges"] | None = None,
    directed: bool = False,
    community: Int64[np.ndarray, " nodes"] | None = None,
    roots: tuple[int, ...] = (),
    levels: Int64[np.ndarray, " nodes"] | None = None,
    names: tuple[str, ...] | None = None,
) -> Graph:
    """The graph with these edges (or arcs): both ways round unless directed; repeats count once."""
    if not directed:
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
        weights = None if weights is None else np.concatenate([weights, weights])
    keys = pairs[:, 0] * nodes + pairs[:, 1]
    if weights is None:
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) > 0]  # three times as fast as np.unique
        heavy = np.ones(len(keys))
    else:
        keys, first = np.unique(keys, return_index=True)
        heavy = weights[first]
    sources, targets = keys // nodes, keys % nodes
    return Graph(nodes, sources, targets, heavy, directed, community, roots, levels, names)


GRAPHS: Registry[Graph] = Registry("graph", context=("seed",), makes=Graph)
