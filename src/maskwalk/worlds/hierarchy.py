"""The random hierarchy model: leaves of a fixed tree, its inner nodes rewritten by random rules.

The root is uniform. A node with symbol a is rewritten to one of `synonyms` tuples of `branching`
symbols, all equally likely; no tuple stands for two symbols, and every level has its own rules
[Cagnetta et al. 2024, arXiv 2307.02129]. So every derivation gives another sequence, and

    H = log(symbols) + (inner nodes) · log(synonyms).

Conditionals by belief propagation, up the tree and down again. With nodes="hidden" only leaves are
tokens, and dependence runs through nodes that are never revealed. With nodes="shown" inner nodes
are tokens too, level by level, and every one of them separates what is below it from the rest.
"""

import math
from functools import cached_property, lru_cache

import networkx as nx
import numpy as np
import torch
from jaxtyping import Float64, Int, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.exact.world import ExactWorld, Weights
from maskwalk.worlds.separators import Separator, dissected
from maskwalk.worlds.sparse import Sparse
from maskwalk.worlds.world import WORLDS

LARGEST = 4096  # leaves
TUPLES = 1 << 24  # that the rules of a level are drawn from


@WORLDS.register("hierarchy")
class Hierarchy(ExactWorld):
    """Leaves of a tree rewritten by random rules; nodes="shown" makes inner nodes tokens too."""

    uniform = True

    def __init__(
        self,
        depth: int = 4,
        branching: int = 2,
        symbols: int = 8,
        synonyms: int = 2,
        nodes: str = "hidden",
        seed: int = 0,
    ) -> None:
        self.depth, self.branching = (
            whole("depth", depth, 1, 12),
            whole("branching", branching, 2, 8),
        )
        self.synonyms = whole("synonyms", synonyms, 1)
        self.vocab_size = whole("symbols", symbols, 2, 4096)
        self.shown = one_of("nodes", nodes, ("hidden", "shown")) == "shown"
        self.seed = whole("seed", seed, 0, 2**63 - 1)
        if branching**depth > LARGEST:
            raise MaskwalkError(f"This tree has {branching**depth:,} leaves, over {LARGEST:,}.")
        if symbols * synonyms > symbols**branching:
            raise MaskwalkError(
                f"{symbols} symbols with {synonyms} synonyms need {symbols * synonyms} different "
                f"tuples; there are only {symbols**branching}. Take fewer synonyms."
            )
        if symbols**branching > TUPLES:
            raise MaskwalkError(
                f"There are {symbols}^{branching} tuples to draw rules from, more than {TUPLES:,}; "
                "take fewer symbols or less branching."
            )
        self.sizes = [branching**level for level in range(depth + 1)]  # nodes of each level
        inner = sum(self.sizes[:-1])
        self.inner, self.length = inner, self.sizes[-1] + (inner if self.shown else 0)
        self.draws = 1 + inner

    @cached_property
    def rules(self) -> list[Int64[np.ndarray, "rules children"]]:
        """For each level its tuples: those of symbol a are rows a·synonyms … of the table."""
        kinds, needed = self.vocab_size**self.branching, self.vocab_size * self.synonyms
        tables = []
        for level in range(self.depth):
            u = block_uniforms(self.seed, Purpose.GRAPH, level, 1, kinds)[0]
            tuples = np.argsort(u, kind="stable")[:needed]
            shape = (self.vocab_size,) * self.branching
            tables.append(np.stack(np.unravel_index(tuples, shape), 1).astype(np.int64))
        return tables

    def _sample(self, u: Float64[np.ndarray, "count draws"]) -> np.ndarray:
        """From the root down, a uniform for every inner node."""
        nodes = (u[:, :1] * self.vocab_size).astype(np.int64)
        levels, used = [nodes], 1
        for size, rules in zip(self.sizes, self.rules):
            synonym = (u[:, used : used + size] * self.synonyms).astype(np.int64)
            nodes = rules[nodes * self.synonyms + synonym].reshape(len(u), -1)
            levels.append(nodes)
            used += size
        return np.concatenate(levels, 1) if self.shown else nodes

    def entropy(self) -> float:
        """In nats: every derivation is another sequence."""
        return float(math.log(self.vocab_size) + self.inner * math.log(self.synonyms))

    def log_prob(self, tokens: Int[Tensor, "count length"]) -> Float64[Tensor, " count"]:
        """All derivations are equally likely."""
        self.check(tokens)
        possible = self.marginals(tokens).sum((1, 2)) > 0
        each = torch.full(possible.shape, -self.entropy(), dtype=torch.float64)
        return torch.where(possible, each.to(tokens.device), -torch.inf)

    def positions(self, level: int) -> range:
        """Where the nodes of a level stand among the tokens; empty if they are hidden."""
        first = sum(self.sizes[:level]) if self.shown else 0
        if not self.shown and level < self.depth:
            return range(0)
        return range(first, first + self.sizes[level])

    def separators(self) -> Separator | None:
        """Shown nodes, nested so that the largest part left is smallest; None if hidden."""
        if not self.shown:
            return None
        graph = nx.Graph()
        for level in range(self.depth):
            children = np.array(self.positions(level + 1)).reshape(-1, self.branching)
            for parent, family in zip(self.positions(level), children.tolist()):
                graph.add_edges_from(nx.complete_graph((parent, *family)).edges)
        return dissected(graph)[0]

    def marginals(self, tokens: Int[Tensor, "batch length"]) -> Weights:
        """Messages from the leaves to the root and back, (symbols, nodes, canvases)."""
        tables, batch = tables_of(self, tokens.device), len(tokens)
        seen = [self._evidence(tokens, level) for level in range(self.depth + 1)]
        up: list[Tensor] = [seen[-1]]
        below: list[list[Tensor]] = []
        for level in reversed(range(self.depth)):
            parts, message = tables[level].up(up[0])
            below.insert(0, parts)
            up.insert(0, _scaled(message * seen[level]))
        weights = tokens.new_zeros((self.length, self.vocab_size, batch), dtype=torch.float64)
        down = torch.ones_like(up[0])
        for level in range(self.depth + 1):
            at = self.positions(level)
            if len(at):
                weights[at.start : at.stop] = (down * up[level]).transpose(0, 1)
            if level < self.depth:
                down = _scaled(tables[level].down(down * seen[level], below[level]))
        possible = (up[0] > 0).any(0)[0]
        return torch.where(possible, weights, 0.0).permute(2, 0, 1)

    def _evidence(self, tokens: Tensor, level: int) -> Float64[Tensor, "symbols nodes batch"]:
        """1 for the symbols that agree with what is revealed at the nodes of a level."""
        at = self.positions(level)
        if not len(at):
            shape = (self.vocab_size, self.sizes[level], len(tokens))
            return torch.ones(shape, dtype=torch.float64, device=tokens.device)
        here = tokens[:, at.start : at.stop].T
        symbols = torch.arange(self.vocab_size, device=tokens.device)[:, None, None]
        return ((here == self.vocab_size) | (here == symbols)).to(torch.float64)

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """Leaves in brackets of their families, or the tree's levels; · is masked, ✗ breaks."""
        tokens = tokens.cpu()
        fine = torch.ones(len(tokens), dtype=torch.bool)
        if bool((tokens < self.vocab_size).all()):
            fine = self.valid(tokens[None])[0]
        width = len(str(self.vocab_size - 1))
        signs = [
            ("" if right else "✗") + (f"{t:>{width}}" if t < self.vocab_size else "·" * width)
            for t, right in zip(tokens.tolist(), fine.tolist())
        ]
        if not self.shown:
            return _bracketed(signs, self.branching)
        room = self.sizes[-1] * (width + 1)
        lines = []
        for level, size in enumerate(self.sizes):
            at = self.positions(level)
            lines.append("".join(f"{sign:^{room // size}}" for sign in signs[at.start : at.stop]))
        return "\n".join(line.rstrip() for line in lines)


def _bracketed(signs: list[str], branching: int) -> str:
    """((3 1) (2 0)): families in brackets."""
    while len(signs) > 1:
        families = [signs[i : i + branching] for i in range(0, len(signs), branching)]
        signs = [f"({' '.join(family)})" for family in families]
    return signs[0]


class Level:
    """The rules of one level on a device."""

    def __init__(self, world: Hierarchy, level: int, device: torch.device) -> None:
        rules = torch.from_numpy(world.rules[level]).to(device)
        number = torch.arange(len(rules), device=device)
        ones = torch.ones(len(rules), dtype=torch.float64, device=device)
        self.children, self.synonyms = rules.T.contiguous(), world.synonyms
        shape = (world.vocab_size, len(rules))
        self.to_parent = Sparse(number // world.synonyms, number, ones, shape)
        self.to_child = [Sparse(child, number, ones, shape) for child in self.children]

    def up(self, message: Tensor) -> tuple[list[Tensor], Tensor]:
        """Per child its message by rule, and the parents' message."""
        branching = len(self.children)
        parts = [message[child, i::branching] for i, child in enumerate(self.children)]
        return parts, _apply(self.to_parent, math.prod(parts[1:], start=parts[0]))

    def down(self, message: Tensor, parts: list[Tensor]) -> Tensor:
        """The message to every child: the parent's, and what its siblings say."""
        rule = message.repeat_interleave(self.synonyms, 0)
        branching = len(self.children)
        result = message.new_zeros((len(message), message.shape[1] * branching, message.shape[2]))
        for i, sparse in enumerate(self.to_child):
            siblings = [part for j, part in enumerate(parts) if j != i]
            result[:, i::branching] = _apply(sparse, math.prod(siblings, start=rule))
        return result


def _apply(sparse: Sparse, message: Tensor) -> Tensor:
    product = sparse @ message.reshape(len(message), message.shape[1:].numel())
    return product.view(len(product), *message.shape[1:])


def _scaled(message: Tensor) -> Tensor:
    """Each node's message with a largest entry of 1."""
    size = message.amax(0)
    return message / torch.where(size > 0, size, 1.0)


@lru_cache(maxsize=16)
def tables_of(world: Hierarchy, device: torch.device) -> list[Level]:
    """The rules of a world on a device (kept)."""
    return [Level(world, level, device) for level in range(world.depth)]
