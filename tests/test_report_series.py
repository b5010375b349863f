"""The report's lines against a parameter, and what a reproduction adds to records."""

import csv
import io
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from maskwalk.bench.labels import families, line, numbers, read, samplers
from maskwalk.bench.records import load_records
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.estimates import published
from maskwalk.report.formats import long_csv, to_csv, to_latex, to_markdown
from maskwalk.report.line_figures import series_figures
from maskwalk.report.modes import against_paper, compared, mode_meanings
from maskwalk.report.page import page
from maskwalk.report.page_data import MOST_TRACED, page_data, traced_panels
from maskwalk.report.series import BY, series, swept
from maskwalk.report.swaps import sampler_swaps
from maskwalk.report.tables import tables
from maskwalk.worlds.metrics import METRICS
from tests import fake_records
from tests.fake_records import SOME, distant, reproduction, small, with_coherence

RESULTS = Path(__file__).parent.parent / "results"

# ------------------------------------------------------------------------------- names


def test_nested_samplers_have_readable_names():
    specs = [
        "blocks(size=8, inner=confidence(block=1))",
        "blocks(size=4, inner=confidence(block=2))",
        "corrected(inner=guided_bisection(order=1, score='entropy'), floor=0.05, passes=1)",
        "corrected(inner=random(block=8), floor=0.05, passes=1)",
        "corrected(inner=random(block=8), floor=0.05, passes=2)",
    ]
    made = {s.spec: s for s in samplers(specs)}
    assert [made[spec].label for spec in specs] == [
        "blocks size 8 confidence",
        "blocks size 4 (confidence ×2)",
        "corrected (guided bisection) passes 1",
        "corrected (random ×8) passes 1",
        "corrected (random ×8) passes 2",
    ]
    assert not any("Spec(" in word for s in made.values() for word in (s.label, s.short, s.line))
    assert made[specs[0]].line == made[specs[1]].line == "blocks(size=*, inner=confidence(block=*))"
    assert made[specs[2]].line != made[specs[3]].line == made[specs[4]].line
    assert numbers(read(specs[3])) == {"inner.block": 8, "floor": 0.05, "passes": 1}
    assert line(read(specs[3]), {"inner.block"}) == (
        "corrected(inner=random(block=*), floor=0.05, passes=1)"
    )


def test_plans_are_named_by_their_rounds_or_sizes_and_equal_names_by_their_spec():
    specs = ["planned(turns=(0, 1, 2, 1))", "optimal_random(sizes=(2, 2))"]
    assert {s.label for s in samplers(specs)} == {"planned in 3", "optimal random 2·2"}
    both = samplers([*specs, "planned(turns=(0, 1, 1, 2))"])
    assert len({s.label for s in both}) == 3


def test_many_families_keep_different_looks():
    looks = [(f.light, f.marker) for f in families([f"family{i}" for i in range(40)])]
    assert len(set(looks)) == 40


# ------------------------------------------------------------------------------- lines


def test_a_graphs_parameter_joins_graphs_and_a_samplers_own_joins_samplers():
    study = arrange(reproduction(SOME, 2))
    found = {(s.axis, s.metric.title): s for s in series(study)}
    assert set(found) == {
        ("bridges b", "coherence"),
        ("bridges b", "calls"),
        ("memory order", "coherence"),
        ("memory order", "calls"),
        ("separation h", "coherence"),
    }
    bridges = found["bridges b", "coherence"]
    assert (bridges.title, bridges.task) == ("two communities", "bottleneck")
    assert bridges.values == [1, 8, 64] and bridges.logarithmic and not bridges.marks
    assert len(bridges.lines) == 2 * len(SOME)  # one a mode and sampler
    for one in bridges.lines:
        assert [p.x for p in one.points] == [1, 8, 64] and len({p.sampler for p in one.points}) == 1
    order = found["memory order", "coherence"]
    assert [at for at, _ in order.marks] == [4, 5] and not order.logarithmic
    lines = {one.label: one for one in order.lines if one.mode == order.lines[0].mode}
    assert {name: one.level for name, one in lines.items()} == {
        "bisection": False,
        "guided bisection": False,
        "random": True,
        "entropy": True,
    }
    assert [p.x for p in lines["bisection"].points] == list(range(1, 9))
    assert [study.samplers[p.sampler].spec for p in lines["bisection"].points] == [
        f"bisection(order={k})" for k in range(1, 9)
    ]
    h = found["separation h", "coherence"]
    first = next(p for one in h.lines for p in one.points)
    assert h.values == list(range(1, 10)) and first.estimate.n == 640 and first.estimate.se == 0.02


def test_samplers_without_a_value_are_level_lines_even_if_they_do_not_say_so():
    records = distant()
    for one in records:
        if one["axis"]["value"] is None:
            del one["axis"]
    (study, found) = (arrange(records), series(arrange(records)))
    assert {line.label for line in found[0].lines if line.level} == {"random", "entropy"}
    assert swept(study) == {0}


def test_marks_may_have_names_and_one_value_is_no_line():
    records = distant()
    for one in records:
        one["axis"]["marks"] = [4, {"at": 5, "label": "K + 1"}]
    assert series(arrange(records))[0].marks == [(4, "4"), (5, "K + 1")]
    alone = [r for r in records if r["axis"]["value"] in (3, None)]
    assert series(arrange(alone)) == []


def test_a_swept_graph_has_a_table_of_its_own():
    study = arrange(reproduction(SOME, 2))
    shown = {(t.about, tuple(c.title for c in t.columns)): t for t in tables(study)}
    alone = shown["unconditional, distant-K", ("distant-K",)]
    assert len(alone.rows) == 18
    for (about, columns), table in shown.items():
        if "distant-K" not in about:
            assert "distant-K" not in columns and len(table.rows) == len(SOME)
    stems = [t.stem for t in tables(study)]
    assert len(stems) == len(set(stems))


# ------------------------------------------------------------------------------- published values


def test_the_papers_value_stands_beside_ours_in_every_format():
    records = [
        with_coherence(fake_records.record(title, sampler=s, cell=i), 0.7, 0.01)
        for title in ("spanning tree", "degree 7")
        for i, s in enumerate([SOME[-1], *SOME[:-1]])
    ]
    for one in records[:4]:
        if one["sampler"] != SOME[0]:
            one["published"] = {"value": 0.777, "sd": 0.012}
    study = arrange(records)
    table = next(t for t in tables(study) if t.metric == study.quality)
    # The order of the records: bisection first; the error of a mean of four groups is sd / √3.
    assert [row.label for row in table.rows] == ["bisection", "random", "random ×2", "random exp"]
    cell = table.rows[0].cells[0]
    assert cell.paper is not None and cell.paper.far
    assert cell.paper.away == pytest.approx(-0.077 / (0.01**2 + 0.012**2 / 3) ** 0.5)
    sheet = list(csv.reader(io.StringIO(to_csv(table, study))))
    assert sheet[0][3:7] == [
        "spanning tree",
        "spanning tree (se)",
        "spanning tree (paper)",
        "spanning tree (paper sd)",
    ]
    assert sheet[1][3:7] == ["0.7", "0.01", "0.777", "0.012"] and sheet[2][5:7] == ["", ""]
    assert "0.700 ± 0.020 (0.777) |" in to_markdown(table, study)
    assert r"0.700 $\pm$ 0.020 (0.777) &" in to_latex(table, study)
    rows = list(csv.DictReader(io.StringIO(long_csv(study))))
    assert sorted(r["published"] for r in rows) == [""] * 5 + ["0.777"] * 3
    text = page(study)
    assert text.count('<small class="paper far" title="paper 0.777, sd 0.012; ours is 6.3') == 3
    assert "Beside it" in text and "Beside it" not in page(arrange(small(modes=1)))


def test_what_the_writer_knows_about_the_difference_wins():
    record = with_coherence(fake_records.record(), 0.7, 0.01)
    metric = METRICS.describe("coherence")
    paper = published(record | {"published": {"value": 0.6, "sd": 0.1, "z": 1.25}}, metric)
    assert paper is not None and paper.away == 1.25 and not paper.far
    paper = published(record | {"published": {"value": 0.6, "sd": 0.1, "se": 0.0}}, metric)
    assert paper is not None and paper.away == pytest.approx(10) and paper.far
    assert published(record, metric) is None
    assert published(record | {"published": {"value": None}}, metric) is None


def test_one_experiments_axis_and_published_value_hold_for_a_cell_of_another():
    first = fake_records.record() | {"published": {"value": 0.5, "sd": 0.0}}
    study = arrange([first, fake_records.record() | {"experiment": "again"}])
    assert study.superseded == 0 and study.published(0, 0, 0) is not None
    less = fake_records.record() | {"metrics": {"calls": {"value": 7.0, "se": 0.0, "n": 512}}}
    again = arrange([first, less])  # the same record, written again: the last counts
    assert again.estimate(0, 0, 0, METRICS.describe("coherence")) is None
    less["experiment"] = "again"
    merged = arrange([first, less])
    metrics = [METRICS.describe(name) for name in ("calls", "coherence")]
    calls, coherence = (merged.estimate(0, 0, 0, metric) for metric in metrics)
    assert calls is not None and calls.value == 7 and coherence is not None
    other = arrange([first, less | {"count": 64}])  # other samples: nothing is carried over
    assert other.estimate(0, 0, 0, metrics[1]) is None


# ------------------------------------------------------------------------------- summary


def test_the_summary_of_three_modes_says_what_each_is_and_where_they_differ():
    study = arrange(reproduction(SOME))
    told = dict(mode_meanings(study))
    assert told["oracle · exact"].startswith("perfect conditionals; tokens drawn in float64")
    assert "bfloat16, ties broken to the lowest position" in told["network · as published"]
    shared, widest = compared(study)
    # 6 graphs × 3 tasks × 4 samplers; distant-K has no oracle and does not count.
    assert "Over the 72 results that all have, mean coherence is 0." in shared.text
    # Random orders and bisection change little between draws, so that pair is not named.
    assert widest.text.startswith("From ") and "the coherence of" in widest.text
    assert widest.sheet is not None and len(widest.sheet.rows) == 2
    assert ("oracle · exact", "network · exact") in {row[:2] for row in widest.sheet.rows}
    (paper,) = against_paper(study, 0)
    assert paper.text.startswith("Of 72 cells of the paper's tables, ")
    assert "The root mean square difference is 0.0" in paper.text
    assert not against_paper(arrange(small()), 0) and not compared(arrange(small(modes=1)))


def test_the_summary_does_not_judge_samplers_where_they_were_not_run():
    from maskwalk.report.summary import findings

    records = [with_coherence(r, 0.9) for r in small(modes=1, graphs=2, tasks=1)]
    records = [r for r in records if r["title"] == "degree 7" or r["sampler"] == SOME[0]]
    study = arrange(records)
    said = " ".join(f.text for f in findings(study, 0, sampler_swaps(study, 0)))
    assert "was run in both panels; its worst coherence is 0.900" in said


# ------------------------------------------------------------------------------- size


def test_a_large_report_stays_small_and_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch):
    records = reproduction()
    text = page(arrange(records))
    assert len(records) > 1400 and len(text) < 2_500_000
    assert "left out" not in text.split('id="about"')[0]
    module = sys.modules["maskwalk.report.page_data"]
    monkeypatch.setattr(module, "MOST_TRACED", 4 * 24 * 3)  # three of eight panels
    study = arrange(small())
    kept = traced_panels(study)
    assert kept == {(0, 0), (0, 1), (0, 2)} and MOST_TRACED > 10_000
    cells = page_data(study, traced=kept)["cells"]
    assert {(c["m"], c["p"]) for c in cells if "trace" in c} == kept
    assert "traces of 5 panels (counted in every mode) are left out" in page(study)


def test_swaps_of_an_atlas_are_found():
    base, out = fake_records.record(), []
    for g in range(10):
        for s in range(120):
            value = 0.2 + 0.005 * ((s * 7 + g * 13) % 120)
            one = with_coherence(base, value, 0.02)
            one |= {
                "world": base["world"].replace("seed=0", f"seed={g}"),
                "title": f"graph {g}",
                "sampler": f"s{s % 15}(block={s // 15})",
            }
            out.append(one)
    study = arrange(out)
    found = sampler_swaps(study, 0)
    assert found.comparisons == 45 * 120 * 119 // 2 and found.pairs
    assert all(s.p <= 0.05 and s.swing > 0 and s.first != s.second for s in found.pairs)


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_line_figures_are_files_that_open(tmp_path: Path, suffix: str):
    records = [one | {"trace": None} for one in distant()]
    for one in records:
        one["metrics"]["tv1"] = None  # two figures less to draw
    made = write_report(records, tmp_path / "a", (suffix,))
    again = write_report(records, tmp_path / "b", (suffix,))
    stem = "coherence-memory-order-distant-k-unconditional-oracle-exact"
    (path,) = [p for p in made if p.stem == stem]
    assert path.read_bytes() == again[made.index(path)].read_bytes()
    if suffix == "svg":
        words = set(ElementTree.parse(path).getroot().itertext())
        assert {
            "memory order",
            "calls per sequence",
            "bisection +1",
            "random +1",
            "4",
            "5",
        } <= words


def test_the_page_carries_the_lines(tmp_path: Path):
    (path,) = write_report(reproduction(SOME, 2), tmp_path)
    data = fake_records.data_of(path.read_text("utf-8"))
    assert [s["axis"] for s in data["series"]] == [
        *["bridges b"] * 2,
        *["memory order"] * 2,
        "separation h",
    ]
    point = data["series"][0]["lines"][0]["points"][0]
    assert set(point) == {"x", "v", "half", "n", "s"}
    assert data["cells"][0]["paper"]["sd"] == 0.012


def test_many_curves_are_panels_by_family_with_every_line_named():
    study = arrange(load_records(RESULTS / "paper"))
    figure = next(
        made for stem, made in series_figures(study) if stem.startswith("coherence-separation-h-")
    )
    used = {line.family for one in series(study) if BY in one.metric.key for line in one.lines}
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [f.label for f in study.families if f.name in used] and len(titles) >= 5
    named = []
    for axis in figure.axes:
        legend = axis.get_legend()
        own = (
            [text.get_text() for text in legend.get_texts()] if legend else [axis.get_title("left")]
        )
        assert len(own) <= 8
        named += own
    lines = [x for one in series(study) if BY in one.metric.key for x in one.lines if x.mode == 0]
    assert len(named) == len({x.label for x in lines}) > 20
