"""From specs to a walk law."""

from functools import lru_cache

from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, WalkLaw


@lru_cache(maxsize=4)
def build_law(graph: str, graph_seed: int, walk: str, length: int) -> WalkLaw:
    """The walk law of a cell (kept: the cells of one graph come after each other)."""
    return WALKS.build(walk, graph=GRAPHS.build(graph, seed=graph_seed), length=length)
