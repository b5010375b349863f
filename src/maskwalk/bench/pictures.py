"""A trace in pictures: one sequence as its world draws it, before the first round and after each.

Only worlds that draw partly masked sequences have pictures (`pictured`, worlds/world.py). A record
keeps at most 32 of them, of about 4,096 characters together: the first and the last always, and
evenly spread ones between.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.trace import Trace
from maskwalk.worlds.world import World

MOST_PICTURES, MOST_CHARACTERS = 32, 4096


def draw_pictures(world: World | None, trace: Trace) -> tuple[list[str], list[int]] | None:
    """Pictures of the first sequence, and the round after which each stands (-1: before all)."""
    if world is None or not getattr(world, "pictured", False):
        return None
    canvases = _canvases(trace)
    canvases = torch.where(canvases == trace.mask_id, world.vocab_size, canvases)
    size = max(len(world.show(canvases[i])) for i in (0, -1))
    kept = spread(len(canvases), min(MOST_PICTURES, MOST_CHARACTERS // max(size, 1)))
    return [world.show(canvases[i]) for i in kept], [i - 1 for i in kept]


def spread(count: int, most: int) -> list[int]:
    """At most so many of 0..count-1, evenly; the ends always."""
    gaps = min(count, max(most, 2)) - 1
    return [round(i * (count - 1) / gaps) for i in range(gaps + 1)] if gaps else [0]


def _canvases(trace: Trace) -> Int[Tensor, "rounds length"]:
    """The first sequence alone: others may take longer."""
    first = trace.events["sequence"] == trace.ids[0]
    events = {name: column[first] for name, column in trace.events.items()}
    return torch.cat(list(Trace(trace.ids[:1], trace.length, trace.mask_id, events).replay()))
