"""Rules on one scale: how good each is within a budget of calls, averaged over the same scenes.

A *track* is one experiment with one kind of denoiser; its scenes are worlds and tasks. A rule is
all settings of a sampler; within a budget it is the best mixture of them (stats.best_mixture), and
0 in a scene where none is so cheap. The area is the mean over 1, 2, … 24 calls. Settings are chosen
on the sequences they are measured on, for every rule alike. A rule with fewer scenes than the track
is named and not ranked; shaped rules stand below the others, however good they look.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from maskwalk.bench.labels import spoken
from maskwalk.bench.records import Record
from maskwalk.decoding.kinds import KINDS, SHAPED
from maskwalk.errors import MaskwalkError
from maskwalk.report.arrange import arrange
from maskwalk.report.study import Study
from maskwalk.samplers import SAMPLERS
from maskwalk.stats import best_mixture

BUDGETS, LAST = (4, 8, 12, 24), 24
KL, KL_BUDGET = "replay_kl", 12


@dataclass(frozen=True)
class Number:
    """A value and half of its 95 % interval."""

    value: float
    half: float


@dataclass(frozen=True)
class Entry:
    """A rule in a track."""

    rule: str
    label: str
    kind: str
    own: bool  # not one of the shipped rules
    settings: int
    scenes: int
    within: dict[int, Number | None]  # by budget; None: no setting is so cheap anywhere
    area: Number
    kl: Number | None  # nats per masked token, of the best setting within 12 calls; None: none


@dataclass(frozen=True)
class Track:
    """An experiment with one kind of denoiser."""

    name: str
    mode: str
    quality: str
    scenes: list[str]
    entries: list[Entry]
    partial: list[Entry] = field(default_factory=list)


@dataclass
class _Curve:
    """The settings of a rule in one scene."""

    cost: list[float] = field(default_factory=list)
    quality: list[float] = field(default_factory=list)
    half: list[float] = field(default_factory=list)
    kl: list[tuple[float, float, float]] = field(default_factory=list)  # cost, nats, half
    kinds: set[str] = field(default_factory=set)


def tracks(records: Sequence[Record]) -> list[Track]:
    """Every track of these records that has two rules or more."""
    by_experiment: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_experiment[str(record.get("experiment") or "records")].append(record)
    found = [
        track
        for name, some in by_experiment.items()
        for study in [arrange(some)]
        for mode in range(len(study.modes))
        if (track := _track(study, mode, name)) is not None
    ]
    if not found:
        raise MaskwalkError(
            "These records hold no two rules in one world with a cost and a quality: no ranking."
        )
    return found


def _track(study: Study, mode: int, name: str) -> Track | None:
    curves = _curves(study, mode)
    panels = sorted({panel for panel, _ in curves})
    rules = sorted({rule for _, rule in curves})
    if len(rules) < 2 or study.quality is None:
        return None
    every = [_entry(rule, [c for p in panels if (c := curves.get((p, rule)))]) for rule in rules]
    order = sorted(every, key=lambda e: (e.kind == SHAPED, -e.area.value, e.rule))
    titles = [f"{study.panels[p].title}, {study.panels[p].task}" for p in panels]
    ranked = [e for e in order if e.scenes == len(panels)]
    rest = [e for e in order if e.scenes < len(panels)]
    return Track(name, study.modes[mode], study.quality.title, titles, ranked, rest)


def _curves(study: Study, mode: int) -> dict[tuple[int, str], _Curve]:
    curves: dict[tuple[int, str], _Curve] = defaultdict(_Curve)
    kl = next((m for m in study.metrics if m.key == KL), None)
    for m, panel, s in study.cells:
        cost = study.estimate(m, panel, s, study.cost)
        quality = study.estimate(m, panel, s, study.quality) if study.quality else None
        if m != mode or cost is None or quality is None or s in study.causal:
            continue
        curve = curves[panel, study.samplers[s].family]
        curve.cost.append(cost.value)
        curve.quality.append(quality.value)
        curve.half.append(quality.half or 0.0)
        curve.kinds.add(study.kinds[m, panel, s])
        lost = None if kl is None else study.estimate(m, panel, s, kl)
        if lost is not None:
            curve.kl.append((cost.value, lost.value, lost.half or 0.0))
    return curves


def _entry(rule: str, curves: list[_Curve]) -> Entry:
    kinds = {kind for curve in curves for kind in curve.kinds}
    return Entry(
        rule,
        spoken(rule),
        max(kinds, key=KINDS.index),  # the furthest from the law
        rule not in SAMPLERS or not SAMPLERS[rule].__module__.startswith("maskwalk."),
        max(len(curve.cost) for curve in curves),
        len(curves),
        {budget: _within(curves, (budget,)) for budget in BUDGETS},
        _within(curves, range(1, LAST + 1)) or Number(0.0, 0.0),
        _kl(curves),
    )


def _within(curves: Sequence[_Curve], budgets: Sequence[int]) -> Number | None:
    """The mean over scenes and budgets; the error of a mixture is that of its settings."""
    total, variance, cheap = 0.0, 0.0, False
    for curve in curves:
        cost, quality = np.array(curve.cost), np.array(curve.quality)
        weights = np.zeros(len(cost))
        for budget in budgets:
            chosen = best_mixture(cost, quality, budget)
            if chosen is not None:
                weights, cheap = weights + chosen / len(budgets), True
        total += float(weights @ quality)
        variance += float(((weights * np.array(curve.half)) ** 2).sum())
    return Number(total / len(curves), variance**0.5 / len(curves)) if cheap else None


def _kl(curves: Sequence[_Curve]) -> Number | None:
    """The least nats per masked token within twelve calls, as records hold them, averaged over the
    scenes; None where a scene has none."""
    best = []
    for curve in curves:
        near = [(nats, half) for cost, nats, half in curve.kl if cost <= KL_BUDGET + 1e-9]
        if not near:
            return None
        best.append(min(near))
    values, halves = zip(*best)
    return Number(sum(values) / len(best), sum(h * h for h in halves) ** 0.5 / len(best))
