"""Separators: what a world knows of its own structure, for bisection along the world.

A separator is a set of positions that, once revealed, leaves the parts below it independent of each
other. Nested, they are an elimination tree: positions of different branches are independent given
all separators above them, so the branches can be filled in at the same time and the joint law of a
round is a product of its marginals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@dataclass(frozen=True)
class Separator:
    """Positions to reveal one after another, and what is then independent."""

    positions: tuple[int, ...]
    parts: tuple["Separator", ...] = ()


def halved(columns: Sequence[Sequence[int]]) -> Separator:
    """Columns in a row of which each separates left from right: the middle one, then the halves."""
    middle = len(columns) // 2
    rest = (columns[:middle], columns[middle + 1 :])
    return Separator(tuple(columns[middle]), tuple(halved(part) for part in rest if part))


def dissected(graph: nx.Graph) -> tuple[Separator, ...]:
    """For each component of a dependence graph: the node that leaves the smallest largest part."""
    return tuple(_dissect(graph.subgraph(part)) for part in nx.connected_components(graph))


def _dissect(graph: nx.Graph) -> Separator:
    def largest(node: int) -> tuple[int, int]:
        rest = nx.restricted_view(graph, [node], [])
        return max(map(len, nx.connected_components(rest)), default=0), node

    node = min(graph, key=largest)
    return Separator((node,), dissected(nx.Graph(nx.restricted_view(graph, [node], []))))


def turns(
    separator: Separator, masked: Bool[Tensor, "batch length"]
) -> Int64[Tensor, "batch length"]:
    """In which round (from 1) each masked position is revealed; 0 where it is revealed already.

    A position comes after the masked ones of all separators above its own, and after those before
    it in its own.
    """
    turn = torch.zeros(masked.shape, dtype=torch.int64, device=masked.device)
    above = [(separator, torch.zeros(len(masked), dtype=torch.int64, device=masked.device))]
    while above:
        part, before = above.pop()
        for position in part.positions:
            before = before + masked[:, position]
            turn[:, position] = torch.where(masked[:, position], before, 0)
        above += [(inner, before) for inner in part.parts]
    return turn
