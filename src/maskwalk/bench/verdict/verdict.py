"""Where a policy stands against the baselines' front, scene by scene.

    beyond      more coherent than the front at its number of calls
    dominated   a baseline with fewer calls is at least as coherent, and the 95 % interval holds no
                lead of more than .05 over it
    inside      less coherent than the front at its number of calls
    on          none of these is shown; `seen` says which difference would have been
    void        neither the policy nor the front is coherent 5 % of the time: nothing to compare

A *shaped* result (`decoding/kinds.py`) has none of these positions, for its coherence may be that
of other sequences than the law's. It is

    off         shown to be further from the law than one-at-a-time decoding, by `departure`
    near        within .05 of it, with 95 % confidence
    unclear     neither is shown

`beyond`, `inside` and `off` are tests at 5 % after Holm's correction over every comparison of the
evaluation: settings, scenes, differences and departures are one family. Calls carry no noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float64

from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.bench.verdict.pairing import opponents
from maskwalk.bench.verdict.suite import Scene
from maskwalk.decoding.kinds import SHAPED
from maskwalk.stats import (
    LEVEL,
    NORMAL,
    Difference,
    best_mixture,
    fewest_calls,
    holm,
    mixture_front,
    paired_difference,
)

VOID, NEAR, AHEAD = 0.05, 0.05, 0.05
FEWER = 0.99  # of the calls: what a dominating baseline takes at most
POWER = 0.8  # of seeing the difference that `seen` names
# From the best a policy can be said to be to the worst; neither of two in one row is better.
RANKS = (
    ("beyond",),
    ("near",),
    ("on",),
    ("unclear",),
    ("inside", "dominated"),
    ("off",),
    ("void",),
)
RANK = {position: i for i, row in enumerate(RANKS) for position in row}
ORDER = tuple(RANK)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One setting of the policy in one scene, against the baselines there."""

    scene: Scene
    setting: str
    outcome: Outcome
    best: Outcome | None  # the best single baseline with at most as many calls
    single: Difference | None  # against that one (chosen on other prompts)
    front: Difference | None  # against the front (likewise); None: no baseline is so cheap
    same: float | None  # the fewest calls with which the front is as coherent
    cheaper: Outcome | None = None  # a baseline with fewer calls that is at least as coherent
    kind: str = ""  # exact, factorised or shaped
    departure: Difference | None = None  # from the law, of what had to be measured
    loss: dict[str, Any] | None = None  # `maskwalk diagnose`'s row, where it can be replayed
    p: float = 1.0  # of the difference to the front, after Holm
    seen: float | None = None  # the difference that would have been seen four times in five
    position: str = "on"

    @property
    def calls(self) -> float:
        """Denoiser calls per sequence."""
        return float(self.outcome.calls.mean())

    @property
    def coherence(self) -> float:
        """Share of coherent sequences."""
        return float(self.outcome.coherent.mean())

    @property
    def gain(self) -> float:
        """The difference to the front; -2 where there is none."""
        return -2.0 if self.front is None else self.front.value

    @property
    def void(self) -> bool:
        """Whether neither side is coherent often enough to compare."""
        other = 0.0 if self.front is None else self.coherence - self.front.value
        return max(self.coherence, other) < VOID


def compare(
    scene: Scene, setting: str, outcome: Outcome, baselines: Sequence[Outcome]
) -> Comparison:
    """Meets the baselines of a scene, prompt by prompt."""
    at, own = float(outcome.calls.mean()), outcome.coherent
    calls = np.array([b.calls.mean() for b in baselines])
    quality = np.array([b.coherent.mean() for b in baselines])
    weights = best_mixture(calls, quality, at, single=True)
    one, mixed = (opponents(baselines, at, single) for single in (True, False))
    return Comparison(
        scene,
        setting,
        outcome,
        best=None if weights is None else baselines[int(weights.argmax())],
        single=None if one is None else paired_difference(own - one),
        front=None if mixed is None else paired_difference(own - mixed),
        same=fewest_calls(calls, quality, float(own.mean())) if own.any() else None,
        cheaper=_dominating(baselines, at, own),
        kind=str(outcome.record.get("kind", "")),
    )


def _dominating(
    baselines: Sequence[Outcome], at: float, own: Float64[np.ndarray, " prompts"]
) -> Outcome | None:
    """A baseline with fewer calls than `at` that is as coherent; the one with the fewest."""
    fewer = opponents(baselines, FEWER * at, single=True)  # chosen on other prompts
    if fewer is None or not own.any():
        return None
    lead = paired_difference(own - fewer)
    if lead.value > 0 or lead.high > AHEAD:
        return None
    as_good = [b for b in baselines if b.calls.mean() <= FEWER * at]
    as_good = [b for b in as_good if b.coherent.mean() >= own.mean()]
    return min(as_good, key=lambda b: float(b.calls.mean()), default=None)


def judge(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The same with positions, after Holm's correction over all of them."""
    tests = [d for c in found for d in (c.front, c.departure) if d is not None]
    corrected = holm(np.array([d.p for d in tests])).tolist()
    p_of = {id(d): p for d, p in zip(tests, corrected)}
    judged = []
    for c in found:
        p, off = (1.0 if d is None else p_of[id(d)] for d in (c.front, c.departure))
        seen, position = _seen(c, len(tests)), _position(c, p, off)
        judged.append(replace(c, p=p, kind=_kind(c, off), seen=seen, position=position))
    return tuple(judged)


def _kind(c: Comparison, off: float) -> str:
    """What the record says, unless it was measured to be off the law."""
    return SHAPED if off < LEVEL else c.kind


def _position(c: Comparison, p: float, off: float) -> str:
    if c.void:
        return "void"
    if off < LEVEL:
        return "off"
    if c.kind == SHAPED:
        return "near" if c.departure is not None and c.departure.high <= NEAR else "unclear"
    if p < LEVEL and c.gain > 0:
        return "beyond"
    if c.cheaper is not None:
        return "dominated"
    return "inside" if p < LEVEL else "on"


def _seen(c: Comparison, comparisons: int) -> float | None:
    """The true difference that would have been shown with the stated power."""
    if c.front is None:
        return None
    error = (c.front.high - c.front.low) / (2 * NORMAL)
    normal = NormalDist()
    return error * (normal.inv_cdf(1 - LEVEL / 2 / comparisons) + normal.inv_cdf(POWER))


def front_of(baselines: Sequence[Outcome]) -> list[Outcome]:
    """The baselines on the hull, by calls."""
    calls = np.array([b.calls.mean() for b in baselines])
    quality = np.array([b.coherent.mean() for b in baselines])
    return [baselines[i] for i in mixture_front(calls, quality)]


def best_of(found: Sequence[Comparison]) -> Comparison | None:
    """The setting that a policy is judged by, of those that meet a front where any does."""
    met = [c for c in found if c.front is not None] or list(found)
    return min(met, key=_from_best, default=None)


def _from_best(c: Comparison) -> tuple[bool, int, float, float]:
    """Sorts settings: by position, then by the difference to the front, then by fewer calls.

    `inside` and `dominated` are two ways to lose, so the difference decides between them: level
    with the front at too many calls is better than far below it. What is hardly ever coherent
    itself stands for a policy only where nothing else does, for it may be near a front that is
    hardly coherent at so few calls either.
    """
    return c.coherence < VOID, RANK[c.position], -round(c.gain, 9), c.calls


Place = tuple[str, bool]  # a structure, and whether the model denoises


def standing(found: Sequence[Comparison]) -> dict[Place, str]:
    """The position on every structure, with the oracle and with the model: its best one there.

    Off the law on one setting of a structure is off the law there.
    """
    where: dict[Place, list[Comparison]] = {}
    for c in found:
        where.setdefault((c.scene.structure, c.scene.model), []).append(c)
    return {place: _overall(here) for place, here in where.items()}


def _overall(here: Sequence[Comparison]) -> str:
    """Off where any setting is; else the position of the best."""
    off = any(c.position == "off" for c in here)
    return "off" if off else min(here, key=_from_best).position
