"""Tokens do not change: cells of the committed runs, run again, give the committed numbers."""

from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.law_cells import only_law
from maskwalk.bench.records import Record, load_records

ROOT = Path(__file__).parent.parent


def chosen(name: str, count: int) -> list[Record]:
    """Oracle cells spread evenly over a run's file."""
    every = load_records(ROOT / "results" / name)
    # What only measures the distance to the law was decoded on an accelerator.
    records = [r for r in every if r["denoiser"] == "oracle" and not only_law(r)]
    small = [r for r in records if r["count"] * r["per_prompt"] <= 4096]
    every = small[:: max(1, len(small) // count)]
    assert len(every) >= count
    return every[:count]


def cell_of(record: Record) -> Cell:
    return Cell.checked(
        world=record["world"],
        task=record["task"],
        sampler=record["sampler"],
        draw=record["draw"],
        ties=record["ties"],
        count=record["count"],
        per_prompt=record["per_prompt"],
        seed=record["seed"],
        metrics=tuple(record["metrics"]),
    )


def numbers(record: Record) -> dict[str, Any]:
    """What must be equal: every setting, every number to the last bit, the trace's tokens."""
    about = (
        "world",
        "task",
        "sampler",
        "mode",
        "draw",
        "ties",
        "count",
        "metrics",
        "trace",
        "notes",
    )
    return {key: record.get(key) for key in about}


@pytest.mark.parametrize(("name", "count"), [("paper", 24), ("atlas", 8), ("laws", 7)])
def test_committed_records_come_out_bit_for_bit(name: str, count: int) -> None:
    for record in chosen(name, count):
        again, _ = run_cell(cell_of(record), trace=1 if record["trace"] else 0)
        if record["trace"]:  # the committed ones were made before traces held probabilities
            assert again["trace"].pop("prob") and "prob" not in record["trace"]
        assert numbers(again) == numbers(record), (record["sampler"], record["title"])


def test_cells_of_worlds_come_out_again() -> None:
    """Tokens and counts to the last bit; what a GPU adds up in another order, to rounding."""
    for record in chosen("worlds", 12):
        again, _ = run_cell(cell_of(record))
        where = (record["sampler"], record["title"])
        assert again["trace"]["tokens"] == record["trace"]["tokens"], where
        assert again["impossible"] == record["impossible"], where
        for key, value in record["metrics"].items():
            if key.startswith(("replay_", "pair_")) and value is not None:
                assert again["metrics"][key]["value"] == pytest.approx(value["value"], abs=1e-9)
            else:
                assert again["metrics"][key] == value, (*where, key)
