"""The committed results: the documents say what the commands say of them, and the goals are met."""

from pathlib import Path

import pytest

from maskwalk.published.claims import ledger, markdown
from maskwalk.published.comparison import compare
from maskwalk.records import read_records

ROOT = Path(__file__).parent.parent


def test_the_reproduction_meets_its_goals() -> None:
    found = compare(read_records(ROOT / "results" / "paper"))
    assert found["cells_above"] == 152 and found["modes"]["as_published"]["cells"] == 384
    assert found["mode"] == "as_published"
    assert found["rmse"] <= 0.05 and found["rmse_above"] <= 0.06
    columns = found["modes"]["as_published"]["columns"]
    missed = {(c["table"], c["column"]) for c in columns if c["rank_above"] < 0.95}
    assert missed == {
        ("unconditional", "st_er_p0"),
        ("unconditional", "chain_m10"),
        ("bottleneck_conditional", "two_b1"),
    }


def test_the_document_is_what_the_commands_print() -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    records = read_records(ROOT / "results" / "paper")
    assert markdown(ledger(records)) in page
    for column in compare(records)["modes"]["as_published"]["columns"]:
        numbers = [column[k] for k in ("rmse", "rmse_above", "rank_above", "ceiling_above")]
        shown = " | ".join(f"{x:.3f}".replace("0.", ".", 1) for x in numbers)
        assert f"| {column['graph']} | {shown} |" in page


@pytest.mark.parametrize(("name", "cells"), [("suspects", 360), ("prompts", 216), ("atlas", 3510)])
def test_the_other_runs_are_whole(name: str, cells: int) -> None:
    assert len({r["key"] for r in read_records(ROOT / "results" / name)}) == cells
