"""The committed results: the documents say what the commands say of them, and the goals are met."""

from pathlib import Path

import pytest

from maskwalk.published.claims import ledger, markdown
from maskwalk.published.comparison import compare
from maskwalk.records import read_records
from maskwalk.texts.experiment import HELD_OUT, Setting, TextExperiment
from maskwalk.texts.judging import text_records

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


def test_the_language_run_is_whole_and_every_number_says_how_many_texts() -> None:
    experiment = TextExperiment.load(ROOT / "experiments" / "paper" / "figure_language.toml")
    records = text_records(ROOT / "results" / "language")
    assert {Setting(r["sampler"], r["preset"]) for r in records} == set(experiment.settings)
    for record in records:
        expected = {"judge_bpb", "judge_ppl", "mauve"} & set(record["metrics"])
        read = experiment.reads(Setting(record["sampler"], record["preset"]))
        assert len(expected) == (3 if read else 0)
        for name, number in record["metrics"].items():
            held = record["sampler"] == HELD_OUT
            size = 256 if name in (*expected, "replay_bpb") else number["n"] if held else 1024
            assert number["n"] == size and number["value"] == number["value"]
        assert len(record["texts"]) == 3 and not any("/tmp" in str(v) for v in record.values())


def test_what_the_document_says_of_the_language_run() -> None:
    """Its tables are those the records give."""
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    records = text_records(ROOT / "results" / "language")
    said = 0
    for record in records:
        own = record["metrics"]["own_bpb"]
        row = f"{own['value']:.3f} ± {1.96 * own['se']:.3f}".replace("± 0.", "± .")
        said += f"| {row} |" in page
    assert said >= 20
