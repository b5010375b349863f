"""Questions to the records of a language run: which of two policies, what predicts what, what a
truncated draw changes.

Differences come with 95 % intervals. Texts of two policies are treated as independent (they share
random numbers, and MAUVE its references), so standard errors add in squares. Replay forces the same
passages through every policy, so there the passages are compared one by one, which takes out how
hard each of them is (where records have them). The replay of a policy that throws dice is an upper
bound: its bits may be fewer. So a lead of the policy with the bound counts, and a lead over it does
not; of two bounds nothing is known.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import rankdata, spearmanr

from maskwalk.bench.records import Record
from maskwalk.bench.text_experiment import AUTOREGRESSIVE, HELD_OUT
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.text.metrics import bits_per_byte

METRICS = ("mauve", "judge_bpb", "own_bpb", "replay_bpb", "entropy", "rep1", "rep2", "rep3")
ASKED = (  # does the first predict the second?
    ("judge_bpb", "mauve"),
    ("own_bpb", "mauve"),
    ("entropy", "mauve"),
    ("replay_bpb", "mauve"),
    ("judge_bpb", "replay_bpb"),
    ("own_bpb", "replay_bpb"),
)
FEWEST, FEW = 5, 8  # settings below which ranks say nothing; up to which p is counted exactly
Z = 1.96
Which = Literal["", "first", "second", "both"]


@dataclass(frozen=True)
class Difference:
    """A metric of one setting minus that of another."""

    metric: str
    value: float
    half: float | None  # of the 95 % interval
    paired: bool = False
    bound: Literal["", "first", "second", "both"] = (
        ""  # which of the two is only an upper bound: first, second, both
    )

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out, whatever a bound hides."""
        if self.half is None or abs(self.value) <= self.half or self.bound == "both":
            return False
        return self.bound != ("first" if self.value > 0 else "second")


@dataclass(frozen=True)
class Prediction:
    """Spearman's rank correlation of two metrics over the settings that have both."""

    preset: str
    one: str
    other: str
    rho: float
    p: float
    n: int


def find(records: list[Record], sampler: str, preset: str) -> Record:
    """The record of a policy under a draw."""
    wanted = sampler if sampler == HELD_OUT else SAMPLERS.canonical(sampler)
    here = {r["sampler"]: r for r in records if r["preset"] == preset}
    if not here:
        raise unknown("draw", preset, sorted({r["preset"] for r in records}))
    if wanted not in here:
        raise unknown(f"sampler in this run under {preset}:", wanted, here)
    return here[wanted]


def differences(one: Record, other: Record) -> list[Difference]:
    """one − other in every metric both have."""
    found = []
    for metric in METRICS:
        a, b = one["metrics"].get(metric), other["metrics"].get(metric)
        if a and b:
            pair = _paired(a, b)
            errors = [x["se"] for x in (a, b)] if pair is None else [pair]
            half = None if None in errors else Z * float(np.hypot.reduce(errors))
            bound = _bounded(a, b) if metric == "replay_bpb" else ""
            value = a["value"] - b["value"]
            found.append(Difference(metric, value, half, pair is not None, bound))
    return found


def _bounded(a: Record, b: Record) -> Which:
    """Which are bounds; a record that does not say may be of a policy that throws dice."""
    one, other = a.get("bound", True), b.get("bound", True)
    return "both" if one and other else "first" if one else "second" if other else ""


def _paired(a: Record, b: Record) -> float | None:
    """The standard error, passage by passage, if both went through the same passages."""
    if "nats" not in a or "nats" not in b or a["bytes"] != b["bytes"]:
        return None
    first, second = (torch.tensor(x["nats"], dtype=torch.float64) for x in (a, b))
    error: float | None = bits_per_byte(first - second, torch.tensor(a["bytes"]))["se"]
    return error


def predictions(records: list[Record]) -> list[Prediction]:
    """Does one metric put the policies in the order of another?"""
    found = []
    for preset in dict.fromkeys(r["preset"] for r in records):
        apart = (HELD_OUT, AUTOREGRESSIVE)  # another model, not another policy of one
        policies = [r for r in records if r["preset"] == preset and r["sampler"] not in apart]
        for one, other in ASKED:
            pairs = [
                (r["metrics"][one]["value"], r["metrics"][other]["value"])
                for r in policies
                if one in r["metrics"] and other in r["metrics"]
            ]
            if len(pairs) >= FEWEST and _vary(pairs):
                found.append(Prediction(preset, one, other, *_ranks(pairs), len(pairs)))
    return found


def _vary(pairs: list[tuple[float, float]]) -> bool:
    """Whether both columns have an order at all."""
    return all(len(set(column)) > 1 for column in zip(*pairs))


def _ranks(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Spearman's correlation and its p-value."""
    one, other = (rankdata(column) for column in np.array(pairs).T)
    found: Any = spearmanr(one, other)
    rho = float(found.statistic)
    if len(pairs) > FEW:
        return rho, float(found.pvalue)
    # Few settings: all their orders are counted, the usual approximation is far off.
    orders = np.array(list(permutations(one))) - one.mean()
    spread = one.std() * other.std() * len(pairs)
    every = orders @ (other - other.mean()) / spread
    return rho, float((np.abs(every) >= abs(rho) - 1e-9).mean())


def agreements(records: list[Record]) -> dict[str, float]:
    """Rank correlation of the policies under the first draw with those under the second."""
    first, second = _by_draw(records)
    both = [s for s in first if s in second and s != HELD_OUT]
    found = {}
    for metric in METRICS:
        held = [s for s in both if all(metric in r[s]["metrics"] for r in (first, second))]
        if len(held) >= FEWEST:
            pairs = [
                (first[s]["metrics"][metric]["value"], second[s]["metrics"][metric]["value"])
                for s in held
            ]
            if _vary(pairs):
                found[metric] = _ranks(pairs)[0]
    return found


def _by_draw(records: list[Record]) -> list[dict[str, Record]]:
    """The records of the first two draws, by sampler."""
    presets = list(dict.fromkeys(r["preset"] for r in records))
    if len(presets) < 2:
        raise MaskwalkError(
            f"This run has only one draw, {', '.join(presets)}: nothing to compare."
        )
    return [{r["sampler"]: r for r in records if r["preset"] == p} for p in presets[:2]]


def truncations(records: list[Record]) -> dict[str, list[Difference]]:
    """For every policy under two draws: the second minus the first, in every metric."""
    first, second = _by_draw(records)
    both = [s for s in first if s in second and s != HELD_OUT]
    return {s: differences(second[s], first[s]) for s in both}
