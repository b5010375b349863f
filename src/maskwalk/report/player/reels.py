"""Reels as the page's scripts read them: short keys, few digits.

given    the tokens before the first round, null where masked
steps    for every round [position, token or null, probability, nats] of each change
ahead    for every round [position, nats, token, probability, …] of what is masked before it
valid    "1" and "0" for each token of the whole sequence, or null
"""

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

from maskwalk.bench.labels import read, samplers
from maskwalk.bench.reels import Reel
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS

Data = dict[str, Any]


def reel_data(reels: Sequence[Reel]) -> list[Data]:
    """Reels of one world, with labels that tell them apart."""
    specs = [reel.sampler for reel in reels]
    labels = {one.spec: one.label for one in samplers([*specs, *_defaults(specs)])}
    return [_reel(reel, labels[reel.sampler]) for reel in reels]


def _defaults(specs: Sequence[str]) -> list[str]:
    """The same samplers as they are by default: a label says what differs from that."""
    found = []
    for spec in specs:
        with suppress(MaskwalkError, TypeError):
            found.append(SAMPLERS.canonical(read(spec).name))
    return found


def _reel(reel: Reel, label: str) -> Data:
    return {
        "label": label,
        "spec": reel.sampler,
        "kind": reel.kind,
        "calls": reel.calls,
        "given": list(reel.given),
        "steps": [
            [[c.position, c.token, short(c.prob), short(c.nats)] for c in changes]
            for changes in reel.rounds
        ],
        "ahead": [
            [
                [g.position, short(g.nats), *(x for t, p in g.likeliest for x in (t, short(p)))]
                for g in guesses
            ]
            for guesses in reel.guesses
        ],
        "valid": None if reel.valid is None else "".join("01"[one] for one in reel.valid),
    }


def short(value: float | None) -> float | None:
    """Three significant digits."""
    if value is None or not isfinite(value):
        return None
    return float(f"{value:.3g}")
