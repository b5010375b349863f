"""What the atlas's document says in words; its numbers are tied (tests/test_verify.py)."""

import re
from pathlib import Path

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
