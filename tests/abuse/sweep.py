"""Every table, member and parameter with values that cannot be: what is no sentence."""

import inspect
import math
from collections.abc import Iterator
from typing import Any

from maskwalk.cli.catalogue import all_tables
from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError, shown
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec
from maskwalk.streams import Streams
from maskwalk.worlds.world import build_world

KINDS = ("worlds", "graphs", "walks", "tasks", "samplers", "draws", "denoisers")
BAD: tuple[Any, ...] = (
    -1, 0, 2**31, 2**63, 10**400, 10**5000, math.nan, math.inf, 1e308, "x", None, [1], (1, 2),
    [[]], {}, Spec("st_er"), Spec("random"), True, 1.5,
)  # fmt: skip
NEEDED = {"nodes": 6, "p": 0.2, "chains": 2, "length": 3, "corridors": 2, "width": 2}
WORLD = "walk(graph=st_er(nodes=6, p=0.3), law=lazy(), length=6, seed=0)"


def context(kind: str) -> dict[str, Any]:
    """What the caller gives the makers of a table."""
    world = build_world(WORLD)
    return {
        "graph": {"seed": 0},
        "walk": {"graph": getattr(world, "graph", None), "length": 8},
        "task": {"world": world, "prompts": 4, "seed": 0},
        "denoiser": {"world": world, "device": "cpu"},
    }.get(kind, {})


def trials(kind: str) -> Iterator[Spec]:
    """Every member of a table, with every bad value for every parameter."""
    table = all_tables()[kind]
    for name in table:
        parameters = table.parameters(name)
        required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
        base = {key: NEEDED.get(key, "nowhere") for key in required}
        yield Spec(name, (), base)
        for parameter in parameters:
            for bad in BAD:
                yield Spec(name, (), {**base, parameter.name: bad})


def swept(kind: str) -> tuple[int, list[str]]:
    """How many were tried, and which neither built nor were refused by a sentence."""
    table, tried, wrong = all_tables()[kind], 0, []
    about = context(table.kind)
    for spec in trials(kind):
        tried += 1
        try:
            table.build(spec, **about)
        except MaskwalkError as problem:
            if not 10 < len(str(problem)) < 700:
                wrong.append(f"{spec.name} {shown(spec.kwargs)}: {str(problem)[:200]}")
        except Exception as problem:
            wrong.append(f"{spec.name} {shown(spec.kwargs)}: {problem!r:.200}")
    return tried, wrong


def decoded() -> tuple[int, list[str]]:
    """A number that a sampler takes is one it works with: no overflow, no endless loop."""
    oracle: Any = build_world(WORLD).oracle()
    tokens, tried, wrong = [[oracle.mask_id] * 6] * 2, 0, []
    for name in SAMPLERS:
        numbers = [p for p in SAMPLERS.parameters(name) if type(p.default) in (int, float)]
        for parameter in numbers:
            for large in (2**31 - 1, 1e299, 40, 1.0, 0.0, 1):
                tried += 1
                try:
                    sampler = SAMPLERS.build(Spec(name, (), {parameter.name: large}))
                    done = decode(sampler, oracle, tokens, streams=Streams(0, 2), draw="exact")
                    if int(done.tokens.max()) >= oracle.vocab_size:
                        wrong.append(f"{sampler}: a position was left masked")
                except MaskwalkError as problem:
                    if "must" not in str(problem):
                        wrong.append(f"{name} {parameter.name}={large}: {problem}")
                except Exception as problem:
                    wrong.append(f"{name} {parameter.name}={large}: {problem!r:.200}")
    return tried, wrong
