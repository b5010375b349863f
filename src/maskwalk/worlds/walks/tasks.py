"""The task of walks between communities.

bottleneck       endpoints in different communities [paper, section "Endpoint-conditioned
                 bridge generation"]: of held-out walks, constructed around a crossing, or any
                 pair that a walk can join
"""

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
    tries, batch = TRIES + TRIES_EACH * count, 1 << 16
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
            "Bottleneck prompts around a crossing are built from lazy walks; use "
            "lazy(stay=0.125), or another task."
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
