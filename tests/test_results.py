"""The committed results: the documents say what the commands say of them, and the goals are met."""

from pathlib import Path

import pytest
from benchmarks import worlds_answers

from maskwalk.bench.records import HELD_OUT, latest, load_records
from maskwalk.bench.text_experiment import Setting, TextExperiment
from maskwalk.paper.compare import compare
from maskwalk.paper.ledger import markdown, verdicts

ROOT = Path(__file__).parent.parent


def test_the_reproduction_meets_its_goals() -> None:
    found = compare(load_records(ROOT / "results" / "paper"))
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
    records = load_records(ROOT / "results" / "paper")
    assert markdown(verdicts(records)) in page
    for column in compare(records)["modes"]["as_published"]["columns"]:
        numbers = [column[k] for k in ("rmse", "rmse_above", "rank_above", "ceiling_above")]
        shown = " | ".join(f"{x:.3f}".replace("0.", ".", 1) for x in numbers)
        assert f"| {column['graph']} | {shown} |" in page


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("suspects", 360),
        ("prompts", 216),
        ("atlas", 3510),
        ("worlds", 7316),
        ("carries", 36),
        ("laws", 240),
    ],
)
def test_the_other_runs_are_whole(name: str, cells: int) -> None:
    assert len({r["key"] for r in load_records(ROOT / "results" / name)}) == cells


@pytest.mark.parametrize(
    "name", ["best", "duel", "duel_given", "along", "distances", "cards", "carries"]
)
def test_the_tables_of_the_worlds_are_what_the_command_prints(name: str) -> None:
    page = (ROOT / "docs" / "worlds.md").read_text("utf-8")
    run = "carries" if name == "carries" else "worlds"
    assert worlds_answers.TABLES[name](worlds_answers.Atlas(str(ROOT / "results" / run))) in page


def test_a_row_of_the_slow_table_of_the_worlds() -> None:
    page = (ROOT / "docs" / "worlds.md").read_text("utf-8")
    atlas = worlds_answers.Atlas(str(ROOT / "results" / "worlds"))
    assert worlds_answers.sizes(atlas, ["Sudoku"]).splitlines()[-1] in page


def test_the_readme_says_what_the_worlds_say() -> None:
    """Bisection, certainty first and random order at 5 calls, with the oracle."""
    page = (ROOT / "README.md").read_text("utf-8")
    rows = worlds_answers.duel(worlds_answers.Atlas(str(ROOT / "results" / "worlds"))).splitlines()
    cells = {row.split(" | ")[0].strip("| "): row.split(" | ") for row in rows if " oracle " in row}
    titles = [
        "Latin square",
        "Sudoku",
        "Addition, plain",
        "Dyck",
        "HMM",
        "PCFG",
        "Hierarchy, shown",
    ]
    for name, column in (("bisection", 3), ("certainty first", 4), ("random order", 6)):
        numbers = [cells[title][column].split(" ")[0] for title in titles]
        assert f"| {name} | {' | '.join(numbers)} |" in page


def test_the_language_run_is_whole_and_every_number_says_how_many_texts() -> None:
    file = ROOT / "experiments" / "paper" / "figure_language.toml"
    experiment = TextExperiment.load(file, models=Path("models"))
    records = latest(load_records(ROOT / "results" / "language"))
    assert {Setting(r["sampler"], r["mode"]) for r in records} == set(experiment.settings)
    fixed = ("bisection(", "dus(", "left_to_right(")  # no dice
    hurried = {"threshold(tau=0.1)", "threshold(tau=0.3)", "confidence(block=1)", "margin(block=1)"}
    for record in records:
        held, metrics = record["sampler"] == HELD_OUT, record["metrics"]
        assert {"judge_bpb", "judge_ppl", "mauve", "own_bpb", "entropy"} <= set(metrics)
        assert metrics["mauve"]["references"] == experiment.references
        for name, number in metrics.items():
            own = held and name in ("own_bpb", "own_ppl")  # the model's own test
            size = 2828 if own else experiment.replayed if name == "replay_bpb" else 1024
            if not (held and name in ("entropy", "rep1", "rep2", "rep3")):
                assert number["n"] == size, (record["sampler"], name)
            assert number["value"] == number["value"]
        replayed = metrics.get("replay_bpb")
        if replayed is not None:
            assert replayed["bound"] is not record["sampler"].startswith(fixed)
            one = not replayed["bound"] or record["sampler"] in hurried
            assert replayed["paths"] == (1 if one else experiment.paths)
            assert replayed["one_path"] >= replayed["value"]
        assert len(record["texts"]) == 3 and not any("/tmp" in str(v) for v in record.values())


def test_what_the_document_says_of_the_language_run() -> None:
    """Its tables are those the records give."""
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    records = latest(load_records(ROOT / "results" / "language"))
    said = 0
    for record in records:
        own = record["metrics"]["own_bpb"]
        row = f"{own['value']:.3f} ± {1.96 * own['se']:.3f}".replace("± 0.", "± .")
        said += f"| {row} |" in page
    assert said >= 20
