"""Graph families: spec strings such as st_er(nodes=500, p=0.01) to graphs."""

from maskwalk.worlds.walks.graphs.dags import bottleneck_dag, tree_line_dag
from maskwalk.worlds.walks.graphs.families import (
    community_chain,
    community_hierarchy,
    directed,
    st_er,
    two_communities,
    weighted,
)
from maskwalk.worlds.walks.graphs.files import file, from_networkx
from maskwalk.worlds.walks.graphs.graph import GRAPHS, Graph, assemble

__all__ = [
    "GRAPHS",
    "Graph",
    "assemble",
    "bottleneck_dag",
    "community_chain",
    "community_hierarchy",
    "directed",
    "file",
    "from_networkx",
    "st_er",
    "tree_line_dag",
    "two_communities",
    "weighted",
]
