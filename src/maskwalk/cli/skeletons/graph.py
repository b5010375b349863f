"""A graph family: shortcuts on a ring."""

NEXT = "maskwalk sample --graph '<NAME>(nodes=60)' --include <PATH>"

FILE = '''"""<TITLE>: a ring whose edges are moved to a random end, each with probability `moved`.

Change this text with the family.
"""

import networkx as nx

from maskwalk import GRAPHS, Graph, MaskwalkError


@GRAPHS.register("<NAME>")  # the name in specs: <NAME>(nodes=60, moved=0.1)
def <NAME>(seed: int, nodes: int = 60, moved: float = 0.1) -> Graph:
    """A ring of `nodes` nodes, four neighbours each, with a share of its edges moved."""
    if nodes < 5:
        raise MaskwalkError(f"nodes of <NAME> must be at least 5, not {nodes}.")
    # Change this line. Any networkx graph will do in which a walk can go on from every node; `seed`
    # is the graph's seed, and the same seed must give the same graph.
    graph = nx.connected_watts_strogatz_graph(nodes, 4, moved, seed=seed)
    return Graph.from_networkx(graph)
'''

TEST = '''"""<NAME> is a graph that walks can use: pytest test_<NAME>.py"""

import networkx as nx
from <NAME> import <NAME>

import maskwalk


def test_a_seed_is_a_graph():
    graph = <NAME>(seed=1, nodes=20)
    assert graph.digest == <NAME>(seed=1, nodes=20).digest != <NAME>(seed=2, nodes=20).digest
    assert graph.nodes == 20 and nx.is_connected(graph.to_networkx())


def test_bisection_is_exact_on_it():
    result = maskwalk.run("bisection", graph="<NAME>(nodes=20)", length=9, count=64)
    assert result.coherence == 1.0
'''
