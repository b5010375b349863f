"""What the atlas's document says in words; its numbers are tied (tests/test_verify.py)."""

import re
from pathlib import Path

from benchmarks.laws_answers import Laws

from maskwalk.bench.records import load_records
from maskwalk.report import front_tables

ROOT = Path(__file__).parent.parent


def test_the_documents_counts_and_rows_are_those_of_the_command() -> None:
    records = load_records(ROOT / "results" / "atlas")
    page = " ".join((ROOT / "docs" / "atlas.md").read_text().split())
    out = front_tables(records)
    for pairs, comparisons in re.findall(r"(\d+) pairs of rules change places; ([\d,]+) comp", out):
        assert f"{pairs} pairs of rules change places" in page and comparisons in page
    assert "15 of 72 winners clear" in out and "clear winner in 15 of them" in page
    assert "7 of 32 winners clear" in out and "clearly in 7 of 8 panels" in page
    three = front_tables(records, [13])
    assert "3 of 8 winners clear" in three and "is clear in three panels" in page
    assert "| 13 | spaced (confidence ×4) gap 4 (12.7) | 0.689 ± 0.040 | entropy ×2 (11.0)" in three
    rules = {r["sampler"].split("(")[0] for r in records}
    settings = {r["sampler"] for r in records}
    assert f"{len(settings)} settings of {len(rules)} rules" in page


def test_the_tables_of_other_laws_are_those_of_their_records() -> None:
    page = (ROOT / "docs" / "atlas.md").read_text()
    laws = Laws(str(ROOT / "results" / "laws"))
    assert laws.ends() in page and laws.levels() in page
    records = list(laws.cells.values())
    assert len(records) == 240
    for record in records:
        metrics = record["metrics"]
        if record["sampler"] == "bisection(order=1)":
            assert metrics["coherence"]["value"] == 1.0 and metrics["calls"]["value"] == 5.0
            assert abs(metrics["replay_kl"]["value"]) < 1e-12
        if record["sampler"] == "dependence_bounded(budget=0.1)":
            assert metrics["coherence"]["value"] >= 0.98
            assert 5.4 <= round(metrics["calls"]["value"], 1) <= 7.4
    for title in ("Lazy, stay .375", "Slow, then fast"):
        halton = laws.cells[title, "endpoints", "halton(steps=8)"]["metrics"]
        assert abs(halton["replay_kl"]["value"]) < 1e-12
    for sampler in {r["sampler"] for r in records}:
        one, two = (
            laws.cells["Drift .9", task, sampler]["metrics"]["coherence"]
            for task in ("endpoints", "against")
        )
        assert abs(one["value"] - two["value"]) <= 1.75 * (one["se"] ** 2 + two["se"] ** 2) ** 0.5
