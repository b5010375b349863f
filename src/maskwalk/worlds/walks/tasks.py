"""The tasks of walks alone.

bottleneck       endpoints in different communities [paper, section "Endpoint-conditioned
                 bridge generation"]: of held-out walks, constructed around a crossing, or any
                 pair that a walk can join
levels           endpoints in two of the lowest communities of a hierarchy, so many levels below the
                 community where their branches meet
against          the endpoints of held-out walks, swapped: on a nonreversible law, against the drift
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from maskwalk.errors import MaskwalkError, one_of, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.tasks import HELD_OUT, TASKS, Prompts, masked_rows, reveal
from maskwalk.worlds.tasks import ends as both_ends
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws import LazyLaw, WalkLaw, lazy_kernel
from maskwalk.worlds.walks.laws.alias import Alias
from maskwalk.worlds.world import World

TRIES, TRIES_EACH = 1_000_000, 4_000  # held-out walks looked at, in all and for each prompt
PAIRED = 20_000  # nodes whose pairs are all looked at
CHOICE, LEFT, RIGHT = range(3)  # streams of Purpose.PROMPT


def _ends(law: WalkLaw, walks: Tensor, separation: Tensor) -> Prompts:
    """The prompts that reveal the first and last token of these walks."""
    return reveal(law, walks, both_ends(law), {"separation": separation})


@TASKS.register("bottleneck")
def bottleneck(
    world: World, prompts: int, seed: int, separation: int | None = None, ends: str | None = None
) -> Prompts:
    """Endpoints in different communities; on a chain `separation` communities apart (None: any).

    `ends`: "walks" (of held-out walks that cross; the default on two communities), "built" (a walk
    built around a crossing in its middle; the default, and the only way, on a chain), or "pairs"
    (any two nodes that some walk joins, uniformly; two communities).
    """
    count = whole("count", prompts, 1)
    if ends is not None:
        one_of("ends", ends, ("walks", "built", "pairs"))
    law = world
    graph = law.graph if isinstance(law, WalkLaw) else None
    communities = 0 if graph is None or graph.community is None else int(graph.community.max()) + 1
    if isinstance(law, WalkLaw) and graph is not None and communities == 2:
        if separation is not None:
            whole("separation", separation, 1, 1)
        make = {"built": _bridged, "pairs": _pairs}.get(ends or "walks", _crossing)
        return make(law, graph, count, seed)
    if isinstance(law, WalkLaw) and graph is not None and communities > 2 and _is_chain(graph):
        if ends not in (None, "built"):
            raise MaskwalkError(f"On a chain of communities ends is 'built', not {ends!r}.")
        return _chain(law, graph, count, seed, separation)
    raise MaskwalkError(
        "The bottleneck task needs a graph of two communities or a chain of communities, such as "
        "two_communities(bridges=8) or community_chain(); on other graphs use endpoints."
    )


def _crossing(law: WalkLaw, graph: Graph, count: int, seed: int) -> Prompts:
    """The first `count` held-out walks, by number, whose endpoints lie in different communities."""
    assert graph.community is not None
    community = torch.from_numpy(graph.community)
    tries, batch = TRIES + TRIES_EACH * count, max(1 << 10, min(1 << 16, (1 << 25) // law.length))
    crossings: list[Tensor] = []
    total = 0
    for first in range(0, tries, batch):
        walks = law.sample(batch, seed, HELD_OUT + first)
        crossings.append(walks[community[walks[:, 0]] != community[walks[:, -1]]])
        total += len(crossings[-1])
        if total >= count:
            return _ends(law, torch.cat(crossings)[:count], torch.ones(count, dtype=torch.int64))
    raise MaskwalkError(
        f"Only {total} of {tries:,} walks of length {law.length} end in the other community; "
        f"{count} prompts are needed. Add bridges, lengthen the walks, or ask for fewer prompts."
    )


@TASKS.register("levels")
def levels(world: World, prompts: int, seed: int, level: int | None = None) -> Prompts:
    """Endpoints in two of the lowest communities of a hierarchy that meet `level` levels up.

    Such a walk has to climb `level` bridges and to descend as many others. None: each level equally
    often. Walks are built around the crossing, as `bottleneck` builds them on a chain.
    """
    count = whole("count", prompts, 1)
    graph = world.graph if isinstance(world, WalkLaw) else None
    parents = None if graph is None else _parents(graph)
    paths = None if parents is None else _ways_up(parents)
    if not isinstance(world, WalkLaw) or graph is None or paths is None or len(paths) < 2:
        raise MaskwalkError(
            "The task levels needs a hierarchy of communities with two or more at the bottom, such "
            "as community_hierarchy(depth=2, branching=3); on other graphs use endpoints."
        )
    farthest = min(paths.shape[1] - 1, (world.length - 1) // 2)
    if farthest < 1:
        raise MaskwalkError("A walk up one level and down again has at least 3 tokens.")
    u = block_uniforms(seed, Purpose.PROMPT, 0, count, 3, CHOICE)
    if level is None:
        climb = 1 + np.floor(u[:, 0] * farthest).astype(np.int64)
    else:
        climb = np.full(count, whole("level", level, 1, farthest), dtype=np.int64)
    roots = np.array(graph.roots, dtype=np.int64)
    forks = {h: _forks(paths, h) for h in np.unique(climb).tolist()}
    ways = [_way_over(forks[h], h, a, b) for h, a, b in zip(climb.tolist(), *u.T[1:])]
    full = [way + [way[-1]] * (2 * farthest + 1 - len(way)) for way in ways]  # stays at the end
    built = _built(world, graph, roots[np.array(full)], seed, 2 * climb)
    return replace(built, labels={**built.labels, "level": torch.from_numpy(climb)})


def _parents(graph: Graph) -> list[int] | None:
    """Of each community but the first: the one above it, if roots join them to a tree."""
    communities = 0 if graph.community is None else int(graph.community.max()) + 1
    if graph.community is None or len(graph.roots) != communities:
        return None
    number = {root: c for c, root in enumerate(graph.roots)}
    between = graph.community[graph.sources] != graph.community[graph.targets]
    ends = zip(graph.sources[between].tolist(), graph.targets[between].tolist())
    links = sorted((number.get(b, -1), number.get(a, -1)) for a, b in ends)
    up = [(child, parent) for child, parent in links if parent < child]
    joined = [child for child, _ in up] == list(range(1, communities))
    return [parent for _, parent in up] if joined and min(links)[0] >= 0 else None


def _ways_up(parents: list[int]) -> np.ndarray:
    """For each community at the bottom: itself and those above it, up to the top."""
    ways: list[list[int]] = [[0]]
    for child, parent in enumerate(parents, start=1):
        ways.append([child, *ways[parent]])
    deepest = max(map(len, ways))
    return np.array([way for way in ways if len(way) == deepest], dtype=np.int64)


def _forks(paths: np.ndarray, climb: int) -> np.ndarray:
    """The ways from communities whose ancestor `climb` levels up has other branches as well."""
    branches = np.unique(paths[:, [climb, climb - 1]], axis=0)[:, 0]
    forks: np.ndarray = paths[np.bincount(branches)[paths[:, climb]] > 1]
    if not len(forks):
        raise MaskwalkError(
            f"No two communities at the bottom of this hierarchy meet {climb} levels up; take "
            "branching=2 or more."
        )
    return forks


def _way_over(forks: np.ndarray, climb: int, a: float, b: float) -> list[int]:
    """Up from a uniform community and down to a uniform one of the other branches."""
    way = forks[int(a * len(forks))]
    there = (forks[:, climb] == way[climb]) & (forks[:, climb - 1] != way[climb - 1])
    others = forks[there]
    back = others[int(b * len(others)), :climb][::-1]
    return [*way[: climb + 1].tolist(), *back.tolist()]


@TASKS.register("against")
def against(world: World, prompts: int, seed: int) -> Prompts:
    """Fill in between the endpoints of held-out walks, swapped: against the drift, if there is one.

    Of the held-out walks those count that can be walked backwards, which is the answer.
    """
    count = whole("count", prompts, 1)
    if not isinstance(world, WalkLaw):
        raise MaskwalkError("The task against is one of walks; in this world use endpoints.")
    tries, batch = TRIES_EACH * count, 1 << 12
    backwards: list[Tensor] = []
    total = 0
    for first in range(0, tries, batch):
        walks = world.sample(batch, seed, HELD_OUT + first).flip(1)
        backwards.append(walks[world.valid(walks).all(1)])
        total += len(backwards[-1])
        if total >= count:
            return reveal(world, torch.cat(backwards)[:count], both_ends(world))
    raise MaskwalkError(
        f"Only {total} of {tries:,} walks can be walked backwards; {count} prompts are needed. "
        "Take a graph whose edges lead both ways, such as st_er with drift(), or fewer prompts."
    )


def _is_chain(graph: Graph) -> bool:
    """Whether the edges between communities are exactly those between consecutive roots."""
    assert graph.community is not None
    if len(graph.roots) != int(graph.community.max()) + 1:
        return False
    between = graph.community[graph.sources] != graph.community[graph.targets]
    there = set(zip(graph.sources[between].tolist(), graph.targets[between].tolist()))
    pairs = list(zip(graph.roots[:-1], graph.roots[1:]))
    return there == {*pairs, *((b, a) for a, b in pairs)}


def _pairs(law: WalkLaw, graph: Graph, count: int, seed: int) -> Prompts:
    """Uniform pairs of nodes in different communities, among those that some walk joins."""
    assert graph.community is not None
    community = torch.from_numpy(graph.community)
    if graph.nodes > PAIRED:
        raise MaskwalkError(
            f"Uniform pairs of {graph.nodes:,} nodes are too many to look at one by one; at most "
            f"{PAIRED:,} nodes have them. Use ends='walks' or ends='built'."
        )
    joined = torch.stack([law.reach(node) for node in range(graph.nodes)])
    pairs = (joined & (community[:, None] != community)).nonzero()
    if len(pairs) == 0:
        raise MaskwalkError(f"No walk of length {law.length} joins the two communities.")
    u = block_uniforms(seed, Purpose.PROMPT, 0, count, 1, CHOICE)[:, 0]
    chosen = pairs[torch.from_numpy(np.floor(u * len(pairs)).astype(np.int64))]
    tokens = masked_rows(law, count)
    tokens[:, 0], tokens[:, -1] = chosen[:, 0], chosen[:, 1]
    return Prompts(tokens, True, None, {"separation": torch.ones(count, dtype=torch.int64)})


def _bridged(law: WalkLaw, graph: Graph, count: int, seed: int) -> Prompts:
    """Walks built around a bridge, uniform among the bridges and their two directions."""
    assert graph.community is not None
    between = graph.community[graph.sources] != graph.community[graph.targets]
    bridges = np.stack([graph.sources[between], graph.targets[between]], 1)
    u = block_uniforms(seed, Purpose.PROMPT, 0, count, 1, CHOICE)[:, 0]
    return _built(law, graph, bridges[np.floor(u * len(bridges)).astype(np.int64)], seed)


def _chain(law: WalkLaw, graph: Graph, count: int, seed: int, separation: int | None) -> Prompts:
    """Walks built around the crossing r_j … r_{j+h} of the roots.

    h is uniform over 1..communities-1 (as far as the crossing fits into the walk) or given, and
    then j uniform.
    """
    farthest = min(len(graph.roots), law.length) - 1
    u = block_uniforms(seed, Purpose.PROMPT, 0, count, 2, CHOICE)
    if separation is None:
        apart = 1 + np.floor(u[:, 0] * farthest).astype(np.int64)
    else:
        apart = np.full(count, whole("separation", separation, 1, farthest), dtype=np.int64)
    left_end = np.floor(u[:, 1] * (len(graph.roots) - apart)).astype(np.int64)
    steps = np.minimum(np.arange(farthest + 1), apart[:, None])  # stays at the last root
    roots = np.array(graph.roots, dtype=np.int64)
    return _built(law, graph, roots[left_end[:, None] + steps], seed, apart)


def _built(
    law: WalkLaw, graph: Graph, crossing: np.ndarray, seed: int, apart: np.ndarray | None = None
) -> Prompts:
    """Walks with the crossing (count, at most length) in the middle: the left part walked away from
    its first node and reversed, the right part from its last; an odd token goes to the left.

    `apart` is how many steps each crossing has (None: all of it). The parts are lazy walks inside
    the communities.
    """
    if not isinstance(law, LazyLaw):
        raise MaskwalkError(
            "Prompts around a crossing are built from lazy walks; use lazy(stay=0.125) or "
            "drift(), or another task."
        )
    count, width = crossing.shape
    apart = np.full(count, width - 1) if apart is None else apart
    alias = Alias(lazy_kernel(graph.inside(), law.stay)[0])
    sides = []
    for stream, start in ((LEFT, crossing[:, 0]), (RIGHT, crossing[:, -1])):
        steps = block_uniforms(seed, Purpose.PROMPT, 0, count, law.length, stream)
        sides.append(alias.walk(start, steps))
    # Position i lies `before` the crossing, in it, or after it.
    spare = law.length - 1 - apart
    place = np.arange(law.length) - ((spare + 1) // 2)[:, None]  # 0 at its first node
    row = np.arange(count)[:, None]
    before, after = -place - 1, place - apart[:, None] - 1
    outer = np.where(before >= 0, sides[0][row, before.clip(0)], sides[1][row, after.clip(0)])
    middle = crossing[row, place.clip(0, width - 1)]
    walks = np.where((before >= 0) | (after >= 0), outer, middle)
    return _ends(law, torch.from_numpy(walks), torch.from_numpy(apart))
