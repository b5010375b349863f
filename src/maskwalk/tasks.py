"""Tasks: the prompts a sampler starts from, made from held-out walks.

    unconditional    everything masked
    endpoints        the first and last token of a held-out walk revealed
    bottleneck       endpoints in different communities [paper, section "Endpoint-conditioned
                     bridge generation"]: by rejection on two communities, constructed on a chain

Walks are numbered; training takes numbers from 0 up and tasks from HELD_OUT up, so a prompt never
comes from a training walk.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from maskwalk.draws import Purpose, block_uniforms
from maskwalk.errors import MaskwalkError, whole
from maskwalk.graphs import Graph
from maskwalk.specs import Registry
from maskwalk.walks import LazyLaw, WalkLaw, lazy_kernel
from maskwalk.walks.alias import Alias

HELD_OUT = 1_000_000_000
TRIES, TRIES_EACH = 1_000_000, 4_000  # held-out walks looked at, in all and for each prompt
CHOICE, LEFT, RIGHT = range(3)  # streams of Purpose.PROMPT


@dataclass(frozen=True, eq=False)
class Prompts:
    """Tokens with the mask token (= number of nodes) where unknown, and where they came from."""

    tokens: Int64[Tensor, "n length"]
    conditional: bool
    walks: Int64[Tensor, "n length"] | None = None
    separation: Int64[Tensor, " n"] | None = None


TASKS: Registry[Prompts] = Registry("task", context=("law", "count", "seed"))


def _masked(law: WalkLaw, count: int) -> Int64[Tensor, "n length"]:
    return torch.full((count, law.length), law.vocab_size, dtype=torch.int64)


def _ends(law: WalkLaw, walks: Tensor, separation: Tensor | None = None) -> Prompts:
    """The prompts that reveal the first and last token of these walks."""
    tokens = _masked(law, len(walks))
    tokens[:, 0], tokens[:, -1] = walks[:, 0], walks[:, -1]
    return Prompts(tokens, True, walks, separation)


@TASKS.register("unconditional")
def unconditional(law: WalkLaw, count: int, seed: int) -> Prompts:
    """Generate whole walks: everything is masked."""
    count = whole("count", count, 1)
    return Prompts(_masked(law, count), False, law.sample(count, seed, HELD_OUT))


@TASKS.register("endpoints")
def endpoints(
    law: WalkLaw, count: int, seed: int, start: int | None = None, end: int | None = None
) -> Prompts:
    """Fill in between the endpoints of held-out walks, or between one given pair of nodes."""
    count = whole("count", count, 1)
    if start is None and end is None:
        return _ends(law, law.sample(count, seed, HELD_OUT))
    if start is None or end is None:
        raise MaskwalkError("Give both start and end, or neither (endpoints of held-out walks).")
    for name, node in (("start", start), ("end", end)):
        if node == law.vocab_size:
            raise MaskwalkError(
                f"{name}={node} is the mask token, not a node; nodes are 0 to {node - 1}."
            )
        whole(name, node, 0, law.vocab_size - 1)
    if not bool(law.reach(start)[end]):
        raise MaskwalkError(
            f"No walk of length {law.length} leads from node {start} to node {end}; choose other "
            "endpoints or another length."
        )
    tokens = _masked(law, count)
    tokens[:, 0], tokens[:, -1] = start, end
    return Prompts(tokens, True)


@TASKS.register("bottleneck")
def bottleneck(law: WalkLaw, count: int, seed: int, separation: int | None = None) -> Prompts:
    """Endpoints in different communities; on a chain `separation` communities apart (None: any)."""
    count = whole("count", count, 1)
    graph = law.graph
    communities = 0 if graph is None or graph.community is None else int(graph.community.max()) + 1
    if graph is not None and communities == 2:
        if separation is not None:
            whole("separation", separation, 1, 1)
        return _crossing(law, graph, count, seed)
    if graph is not None and communities > 2 and _is_chain(graph):
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
    kept: list[Tensor] = []
    found = 0
    for first in range(0, tries, batch):
        walks = law.sample(batch, seed, HELD_OUT + first)
        kept.append(walks[community[walks[:, 0]] != community[walks[:, -1]]])
        found += len(kept[-1])
        if found >= count:
            return _ends(law, torch.cat(kept)[:count], torch.ones(count, dtype=torch.int64))
    raise MaskwalkError(
        f"Only {found} of {tries:,} walks of length {law.length} end in the other community; "
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


def _chain(law: WalkLaw, graph: Graph, count: int, seed: int, separation: int | None) -> Prompts:
    """Walks built around the crossing r_j … r_{j+h}: left part walked in G_j from r_j and reversed,
    right part in G_{j+h} from r_{j+h}; an odd token left over goes to the left.

    h is uniform over 1..communities-1 (as far as the crossing fits into the walk) or given, and
    then j uniform. The parts are lazy walks on the community alone.
    """
    if not isinstance(law, LazyLaw):
        raise MaskwalkError(
            "On a chain of communities the bottleneck prompts are built from lazy walks; use "
            "lazy(stay=0.125), or another task."
        )
    farthest = min(len(graph.roots), law.length) - 1
    u = block_uniforms(seed, Purpose.PROMPT, 0, count, 2, CHOICE)
    if separation is None:
        apart = 1 + np.floor(u[:, 0] * farthest).astype(np.int64)
    else:
        apart = np.full(count, whole("separation", separation, 1, farthest), dtype=np.int64)
    left_end = np.floor(u[:, 1] * (len(graph.roots) - apart)).astype(np.int64)
    roots = np.array(graph.roots, dtype=np.int64)
    alias = Alias(lazy_kernel(graph.inside(), law.stay)[0])
    sides = []
    for stream, community in ((LEFT, left_end), (RIGHT, left_end + apart)):
        steps = block_uniforms(seed, Purpose.PROMPT, 0, count, law.length, stream)
        sides.append(alias.walk(roots[community], steps))
    # Position i lies `before` the crossing, in it, or after it; the walks lead away from the roots.
    spare = law.length - 1 - apart
    place = np.arange(law.length) - ((spare + 1) // 2)[:, None]  # 0 at r_j, h at r_{j+h}
    row = np.arange(count)[:, None]
    before, after = -place - 1, place - apart[:, None] - 1
    crossing = roots[np.clip(left_end[:, None] + place, 0, len(roots) - 1)]
    outer = np.where(before >= 0, sides[0][row, before.clip(0)], sides[1][row, after.clip(0)])
    walks = np.where((before >= 0) | (after >= 0), outer, crossing)
    return _ends(law, torch.from_numpy(walks), torch.from_numpy(apart))
