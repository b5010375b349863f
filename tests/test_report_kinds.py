"""Shaped results are marked † wherever they are shown, and lead nothing unmarked."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from maskwalk.bench.kinds import kind_of
from maskwalk.bench.records import load_records
from maskwalk.report import front_tables, terminal_table, write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.budgets import front_samplers, leaders
from maskwalk.report.formats import long_csv, to_csv, to_markdown
from maskwalk.report.page import page
from maskwalk.report.points import ahead_by_shaping, lawful, points_of
from maskwalk.report.sequence import sample_summary
from maskwalk.report.summary import findings
from maskwalk.report.swaps import rule_swaps, sampler_swaps
from maskwalk.report.tables import tables
from maskwalk.report.thin import some_metrics, some_settings
from tests import fake_records
from tests.fake_records import with_coherence

ATLAS = Path(__file__).parent.parent / "results" / "atlas"
CHEAT = "threshold_drawn(tau=0.5)"
RULES = {"left_to_right()": (24.0, 0.90), "bisection(order=1)": (5.0, 0.60), CHEAT: (8.0, 0.99)}


def told(records: list[dict[str, Any]]) -> dict[str, str]:
    study = arrange(records)
    return {f.lead: f.text for f in findings(study, 0, sampler_swaps(study, 0))}


def panel(rules: dict[str, tuple[float, float]] = RULES, **changes: Any) -> list[dict[str, Any]]:
    """A panel in which a rule that draws first is ahead of everybody."""
    records = []
    for i, (sampler, (calls, value)) in enumerate(rules.items()):
        one = with_coherence(fake_records.record(sampler=sampler, cell=i), value, 0.01) | changes
        one["metrics"]["calls"] |= {"value": calls}
        one["metrics"]["tokens_per_call"] |= {"value": 24 / calls}
        records.append(one)
    return records


def with_distance(records: list[dict[str, Any]], cheat: float) -> list[dict[str, Any]]:
    """The same with a distance to the law measured: .1 for one at a time, so much for the cheat."""
    for record in records:
        value = cheat if record["sampler"] == CHEAT else 0.1
        record["metrics"]["rank_tv"] = {"value": value, "se": 0.004, "n": 512}
    return records


def test_a_shaped_result_leads_nothing_and_is_named_apart():
    study = arrange(panel())
    cheat = [s.spec for s in study.samplers].index(CHEAT)
    points = points_of(study, 0)
    assert cheat not in {p.sampler for p in lawful(points)}
    assert [p.sampler for p in ahead_by_shaping(points)] == [cheat]
    assert cheat not in front_samplers(study, 0, [0])
    assert cheat not in {w.best.point.sampler for w in leaders(study, 0)}
    said = told(panel())
    best = next(text for lead, text in said.items() if lead == "What to use.")
    phrase = "Left to right is as good as the best with the fewest calls on spanning tree: "
    assert best.startswith(phrase + "0.900 at 24 calls.")
    ahead = said["Ahead of these, but †."]
    assert ahead.startswith("Threshold drawn† is ahead on spanning tree (0.990 at 8 calls")
    assert "not measured against the law" in ahead
    out = front_tables(panel())
    front, beyond = out.split("## Beyond a front by shaping")
    assert "threshold drawn" not in front and "threshold drawn†" in beyond
    assert "threshold drawn" not in beyond.split("## The best rule within a budget")[1]


def test_a_measured_departure_is_said_everywhere():
    off = with_distance(panel(), 0.4)
    words = "off the law by 0.300 ± 0.011"
    assert words in told(off)["Ahead of these, but †."] and words in front_tables(off)
    near = told(with_distance(panel(), 0.1))["Ahead of these, but †."]
    assert "within 0.011 of the law" in near
    study = arrange(off)
    (row,) = [r for r in csv.DictReader(io.StringIO(long_csv(study))) if r["kind"] == "shaped"]
    assert row["sampler"] == CHEAT and float(row["off_law"]) == pytest.approx(0.3)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page(study), re.DOTALL)[1])
    assert [c.get("law") for c in data["cells"]].count(words) == 1
    assert sum("law" in c for c in data["cells"]) == 1


def test_a_shaped_result_that_is_not_ahead_is_not_said_to_be():
    behind = dict(RULES) | {CHEAT: (8.0, 0.61)}
    assert "Ahead of these, but †." not in told(panel(behind))  # within the noise of bisection's
    assert "Ahead of these, but †." in told(panel(dict(RULES) | {CHEAT: (3.0, 0.3)}))


def test_tables_mark_it_and_its_number_is_not_bold():
    study = arrange(panel())
    (table,) = tables(study)
    rows = {row.label: row for row in table.rows}
    assert [row.marked for row in table.rows if row.shaped] == ["threshold drawn†"]
    assert rows["threshold drawn"].cells[0].mark == ""
    assert rows["left to right"].cells[0].mark == "best"
    assert "| threshold drawn† |" in to_markdown(table, study)
    kinds = {r["sampler"]: r["kind"] for r in csv.DictReader(io.StringIO(to_csv(table, study)))}
    assert kinds["left to right"] == "exact" and kinds["bisection"] == "factorised"
    assert kinds["threshold drawn"] == "shaped"
    console = Console(width=80, file=io.StringIO())
    console.print(terminal_table(panel()))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "threshold drawn†" in shown and "left to right†" not in shown
    assert "† shaped" in " ".join(shown.split())


def test_one_sample_says_its_kind():
    for record, words in zip(panel(), ("kind +exact", "kind +factorised", "shaped†")):
        console = Console(width=100, file=io.StringIO())
        console.print(sample_summary(record, []))
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert re.search(words, shown) and ("another law" in shown) == (words == "shaped†")


def test_where_the_draws_are_not_exact_everything_is_marked():
    records = panel(draw="draw(top_p=0.9)", mode="draw(top_p=0.9)")
    study = arrange(records)
    assert study.shaped_modes == {0} and not study.shaped(0) and study.shaped(0, 0)
    said = told(records)
    assert next(iter(said)) == "All of this is †."
    assert "Ahead of these, but †." not in said  # nobody is left to be ahead of
    assert all(row.shaped for row in tables(study)[0].rows)
    assert [p.sampler for p in lawful(points_of(study, 0))] == [0, 1, 2]


def test_rules_of_the_atlas_swap_without_shaped_ones():
    study = arrange(load_records(ATLAS))
    shaped = {s for s in study.tried if study.shaped(s)}
    rules = {study.samplers[s].family for s in shaped}
    assert {"threshold_drawn", "p2", "low_confidence", "remdm"} <= rules
    pairs = rule_swaps(study, 1, (8.0,)).pairs
    assert pairs and not {point.sampler for swap in pairs for point in swap.points} & shaped


def test_the_page_marks_it_in_the_legend_the_labels_and_the_tip(visit: Any, tmp_path: Path):
    (path,) = write_report(with_distance(panel(), 0.4), tmp_path)
    tab = visit(path)
    assert "threshold drawn†" in tab.locator("#legend").inner_text()
    figure = ".panel[data-metric='coherence']"
    labels = tab.locator(f"{figure} text.label").all_text_contents()
    assert {"bisection", "left to right", "threshold drawn†"} <= set(labels)
    steps = tab.locator(f"{figure} path.front").get_attribute("d")
    assert steps.count("V") == 1  # from bisection to left to right, not through the cheat
    cheat = tab.evaluate(
        "JSON.parse(document.getElementById('data').textContent).cells.find((c) => c.law).s"
    )
    tab.locator(f"{figure} .point[data-s='{cheat}']").focus()
    words = tab.locator("#tip").inner_text()
    assert words.startswith("threshold drawn†") and "† shaped: off the law by 0.300" in words


def test_the_static_figure_marks_it(tmp_path: Path):
    made = write_report(panel(), tmp_path, ("svg",))
    text = next(p for p in made if p.stem.startswith("metrics")).read_text("utf-8")
    assert "threshold drawn†" in text and "bisection†" not in text


def test_a_distance_measured_apart_outlives_a_choice_of_metrics():
    """With several samples per prompt: other counts, and no coherence."""
    cells, apart = panel(), []
    for record in with_distance(panel(), 0.4):
        law = {"rank_tv": record["metrics"]["rank_tv"]}
        other = {"count": 64, "per_prompt": 8, "metrics": law, "key": f"law {record['sampler']}"}
        apart.append(record | other | {"kind": kind_of(record)})
    thin = some_metrics([*cells, *apart], ["coherence", "calls"])
    for records in ([*cells, *apart], [*apart, *cells], thin):
        study = arrange(records)
        assert len(study.cells) == 3 and study.superseded == 0
        assert all("coherence" in record["metrics"] for record in study.cells.values())
        assert "off the law by 0.300 ± 0.011" in told(records)["Ahead of these, but †."]
    assert len(some_settings([*cells, *apart], 1)) == 6
