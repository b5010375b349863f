"""How far shaped results are from the law, and what a bfloat16 forward pass changes: from records.

python benchmarks/law_answers.py rules results/atlas                       # by rule, all panels
python benchmarks/law_answers.py panel results/atlas "Degree 7"            # settings on one graph
python benchmarks/law_answers.py precision results/suspects_precision results/paper
"""

import sys
from collections.abc import Iterable
from functools import cache
from math import sqrt
from pathlib import Path
from statistics import median

from maskwalk.bench.kinds import Departures, kind_of
from maskwalk.bench.records import Record, latest, load_records
from maskwalk.decoding.kinds import SHAPED
from maskwalk.report.estimates import plus_minus
from maskwalk.specs import parse
from maskwalk.stats import Estimate, half_width

METRIC = "rank_tv"
PANEL = (
    "threshold_drawn(tau=0.5)",
    "low_confidence(steps=24)",
    "low_confidence(steps=8)",
    "p2(eta=1.0, steps=24, rescore=False)",
    "remdm(kind='cap', steps=32, eta=None)",
    "remdm(kind='cap', steps=8, eta=None)",
)
KINDS = ("oracle, nothing given", "oracle, given", "model, nothing given", "model, given")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(list(head)), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def who(record: Record) -> str:
    return "oracle" if record["denoiser"].startswith("oracle") else "model"


def free(record: Record) -> bool:
    """Whether no token is given."""
    return record["task"].startswith("unconditional")


def off(departure: Estimate) -> bool:
    """Off the law beyond the 95 % interval."""
    return departure.value > (half_width(departure.se) or 0.0)


class Shaped:
    """The shaped settings that were measured against the law, each with its departure."""

    def __init__(self, directory: str) -> None:
        records = latest(load_records(Path(directory)))
        departures = Departures(records)
        self.pairs = [
            (r, estimate)
            for r in records
            if METRIC in r["metrics"]
            and kind_of(r) == SHAPED
            and (estimate := departures.of(r)) is not None
        ]

    def rules(self) -> str:
        """How many settings are off the law beyond the 95 % interval; the median and the most."""
        names = sorted({parse(r["sampler"]).name for r, _ in self.pairs})
        return table(("rule", *KINDS), ((n, *self._cells(n)) for n in [*names, "all"]))

    def _cells(self, rule: str) -> Iterable[str]:
        for kind in KINDS:
            values = [
                e
                for r, e in self.pairs
                if rule in (parse(r["sampler"]).name, "all")
                and kind == f"{who(r)}, {'nothing given' if free(r) else 'given'}"
            ]
            middle, most = median(e.value for e in values), max(e.value for e in values)
            share = f"{sum(map(off, values))} of {len(values)}"
            yield f"{share}: {_number(middle)}, {_number(most)}"

    def panel(self, title: str = "Degree 7") -> str:
        """The departures of some settings in one world, with their intervals."""
        found = {
            (r["sampler"], f"{who(r)}, {'nothing given' if free(r) else 'given'}"): e
            for r, e in self.pairs
            if r["title"] == title
        }
        rows = ((f"`{_short(s)}`", *(_shown(found[s, k]) for k in KINDS)) for s in PANEL)
        return table(("setting", *KINDS), rows)


def _short(sampler: str) -> str:
    return sampler.replace(", rescore=False", "").replace(", eta=None", "")


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−").replace("0.", ".", 1)


def _shown(departure: Estimate) -> str:
    half = plus_minus(half_width(departure.se) or 0.0, 3)
    return _number(departure.value) + half.replace("0.", ".", 1)


def precision(directory: str, other: str) -> str:
    """The same models' cells, bfloat16 forward pass against float32: how much they differ."""
    before = {_cell(r): r["metrics"]["coherence"] for r in latest(load_records(Path(other)))}
    rows = []
    for way in ("bfloat16", "autocast"):
        mine = [r for r in latest(load_records(Path(directory))) if r["denoiser"].endswith(way)]
        pairs = [(r["metrics"]["coherence"], before[_cell(r)]) for r in mine]
        gaps = [a["value"] - b["value"] for a, b in pairs]
        rms = sqrt(sum(g * g for g in gaps) / len(gaps))
        rows.append((way, str(len(gaps)), _number(rms), _number(max(map(abs, gaps)))))
    return table(("forward pass", "cells", "RMS", "at most"), rows)


def _cell(record: Record) -> tuple[str, ...]:
    denoiser = record["denoiser"].split("@")[0]
    return denoiser, record["mode"], record["task"], record["sampler"]


kept = cache(Shaped)


def verify(name: str, directory: str, *words: str) -> str:
    """A table for `maskwalk verify`."""
    if name == "precision":
        return precision(directory, *words)
    return kept(directory).panel(*words) if name == "panel" else kept(directory).rules()


if __name__ == "__main__":
    print(verify(*sys.argv[1:]))
