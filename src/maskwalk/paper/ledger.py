"""The ledger of the paper's claims: a verdict on each, in every mode that has its cells.

A contrast is *decided* where its two-sided test (of independent means, which overstates the error
of samplers that share their prompts) is below 5 % after Holm's correction over all tests of the
ledger, in all modes. A claim

    holds       all of its contrasts are decided as claimed
    in part     some are, and none the other way
    mixed       some are decided one way and some the other
    reversed    at least one is decided the other way and none as claimed
    not shown   none is decided

What is claimed to be the same *holds* only by an equivalence test: the interval, corrected in the
same way, lies within the stated margin for every contrast. Else it is *lower* or *higher* where
contrasts are decided in one direction, *mixed* in both, and *not shown* in none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwalk.bench.records import Record
from maskwalk.paper.claims import CLAIMS, At, Claim, Contrast
from maskwalk.paper.compare import mode_of
from maskwalk.specs import parse
from maskwalk.stats import LEVEL, combined, holm, settled_se, two_sided
from maskwalk.worlds.metrics import METRICS

SHORT = {"tv1": "TV "}
Cells = dict[tuple[str, At], Record]


@dataclass(frozen=True)
class Judged:
    """One contrast of a metric in one mode: its value, its error and the cells' own values."""

    mode: str
    metric: str
    contrast: Contrast
    value: float
    se: float
    cells: tuple[float, ...]
    margin: float | None

    @property
    def differs(self) -> float:
        """The p-value of its being zero."""
        return two_sided(self.value / max(self.se, 1e-9))

    @property
    def same(self) -> float | None:
        """That of its being outside the margin, of a two-sided interval."""
        if self.margin is None:
            return None
        room = self.margin - abs(self.value)
        return two_sided(room / max(self.se, 1e-9)) if room > 0 else 1.0


def verdicts(records: Iterable[Record], claims: tuple[Claim, ...] = CLAIMS) -> list[dict[str, Any]]:
    """Every claim with its verdict and numbers in each mode that has the cells."""
    cells: Cells = {}
    for record in records:
        at = At(str(record.get("title", "")), parse(record["task"]).name, record["sampler"])
        cells[mode_of(record), at] = record
    modes = list(dict.fromkeys(mode for mode, _ in cells))
    tests = {(i, mode): _tests(c, mode, cells) for i, c in enumerate(claims) for mode in modes}
    corrected = _corrected([test for some in tests.values() for test in some or ()])
    return [
        {
            "claim": claim.said,
            "where": claim.where,
            "margin": claim.margin,
            "modes": {mode: _judged(claim, tests[i, mode], corrected) for mode in modes},
        }
        for i, claim in enumerate(claims)
    ]


def _tests(claim: Claim, mode: str, cells: Cells) -> list[Judged] | None:
    """The tests of a claim in one mode; None where a cell was not run."""
    tests = [_test(contrast, claim, mode, cells) for contrast in claim.contrasts]
    known = [test for test in tests if test is not None]
    return known if len(known) == len(tests) else None


def _test(contrast: Contrast, claim: Claim, mode: str, cells: Cells) -> Judged | None:
    numbers = []
    for weight, at in contrast:
        record = cells.get((mode, at))
        estimate = record["metrics"].get(claim.metric) if record else None
        if record is None or not estimate or estimate.get("value") is None:
            return None
        numbers.append((weight, estimate["value"], _error(estimate, record, claim.metric)))
    value = sum(weight * each for weight, each, _ in numbers)
    error = combined(*(abs(weight) * (se or 0.0) for weight, _, se in numbers))
    values = tuple(each for _, each, _ in numbers)
    return Judged(mode, claim.metric, contrast, value, error, values, claim.margin)


def _error(estimate: dict[str, Any], record: Record, metric: str) -> float | None:
    share = METRICS.describe(metric).share
    prompts = record.get("count") or estimate["n"]
    return settled_se(estimate["value"], estimate["se"], prompts, share)


def _corrected(tests: list[Judged]) -> dict[float, float]:
    """Holm's p-value for every p-value of the ledger; a test that two claims need counts once."""
    distinct = list(dict.fromkeys(tests))
    raw = [p for test in distinct for p in (test.differs, test.same) if p is not None]
    return dict(zip(raw, holm(np.array(raw, dtype=np.float64)).tolist()))


def _judged(
    claim: Claim, tests: list[Judged] | None, corrected: dict[float, float]
) -> dict[str, Any] | None:
    if tests is None:
        return None
    clear = [test for test in tests if corrected[test.differs] < LEVEL]
    above, below = sum(t.value > 0 for t in clear), sum(t.value < 0 for t in clear)
    same = [test for test in tests if test.same is not None and corrected[test.same] < LEVEL]
    if claim.margin is None:
        verdict = _direction(above, below, len(tests))
    else:
        verdict = "holds" if len(same) == len(tests) else _off(above, below)
    agree = above if claim.margin is None else len(same)
    return {
        "verdict": verdict,
        "decided": [above, below, len(tests)],
        "agree": agree,
        "numbers": [_numbers(claim, test) for test in tests],
    }


def _direction(above: int, below: int, count: int) -> str:
    if above == count:
        return "holds"
    if above and below:
        return "mixed"
    return "in part" if above else "reversed" if below else "not shown"


def _off(above: int, below: int) -> str:
    """What is said of cells that were claimed to be the same and are not shown to be."""
    if above and below:
        return "mixed"
    return "higher" if above else "lower" if below else "not shown"


def _numbers(claim: Claim, test: Judged) -> str:
    """more : less; a gap : the other gap; a trend as its cells."""
    shown = [_number(value) for value in test.cells]
    weights = [weight for weight, _ in claim.contrasts[0]]
    if claim.metric == "calls":
        return f"{shown[1]} of {shown[0]} calls"
    if weights == [1.0, -1.0, -1.0, 1.0]:
        gaps = test.cells[0] - test.cells[1], test.cells[2] - test.cells[3]
        return f"{SHORT.get(claim.metric, '')}gap {_number(gaps[0])} : {_number(gaps[1])}"
    if len(shown) > 2:
        return "(" + ", ".join(shown) + ")"
    return f"{SHORT.get(claim.metric, '')}{shown[0]} : {shown[1]}"


def _number(value: float) -> str:
    text = f"{value:.3f}" if abs(value) <= 1 else f"{value:.1f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def markdown(found: list[dict[str, Any]], claims: tuple[Claim, ...] = CLAIMS) -> str:
    """The verdicts as a Markdown table; more : less, and how many comparisons agree."""
    modes = list(dict.fromkeys(mode for row in found for mode in row["modes"]))
    lines = ["| claim | where | " + " | ".join(modes) + " |", "|---" * (len(modes) + 2) + "|"]
    for row, claim in zip(found, claims):
        cells = [_cell(row["modes"].get(mode), claim.shown) for mode in modes]
        margin = "" if claim.margin is None else f" (± {_number(claim.margin)})"
        lines.append(f"| {row['claim']}{margin} | {row['where']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(judged: dict[str, Any] | None, most: int) -> str:
    if judged is None:
        return "–"
    count, numbers = len(judged["numbers"]), judged["numbers"][:most]
    agree = f" ({judged['agree']} of {count})" if count > 1 else ""
    return f"**{judged['verdict']}**{agree} " + ", ".join(numbers) + (" …" if count > most else "")
