"""The report's tables, swaps and figure layout."""

import csv
import io
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from maskwalk.report import terminal_table
from maskwalk.report.arrange import arrange
from maskwalk.report.estimates import estimate, read_estimate
from maskwalk.report.formats import long_csv, to_csv, to_latex, to_markdown
from maskwalk.report.layout import dodge, place_labels
from maskwalk.report.swaps import sampler_swaps
from maskwalk.report.tables import tables
from maskwalk.stats import pareto_front, share_se
from maskwalk.worlds.metrics import METRICS
from tests import fake_records
from tests.fake_records import SOME, small, with_coherence

# ------------------------------------------------------------------------------- tables


def test_marks_follow_the_digits_shown():
    base = [fake_records.record(sampler=s, cell=i) for i, s in enumerate(SOME)]
    values = [0.9501, 0.9499, 0.7, None]
    study = arrange([with_coherence(r, v) for r, v in zip(base, values)])
    (table,) = tables(study)
    assert [column.metric.key for column in table.columns] == ["coherence", "tv1"]
    assert [(row.label, row.cells[0].mark) for row in table.rows] == [
        ("random", "best"),
        ("random ×2", "best"),
        ("random exp", "second"),
        ("bisection", ""),
    ]
    best = [row for row in table.rows if row.cells[1].mark == "best"]
    assert min(row.cells[1].value for row in table.rows) == best[0].cells[1].value
    assert table.floor is not None and table.floor[1].value == pytest.approx(0.105)
    assert table.floor[0].value is None  # of coherence there is none


def test_conditional_tasks_have_no_tv_table():
    tasks = {(t.metric.key, t.about) for t in tables(arrange(small()))}
    assert ("tv1", "unconditional") in tasks and ("tv1", "endpoints") not in tasks


def test_tables_as_text_hold_the_same_numbers():
    study = arrange(small(modes=1))
    table = tables(study)[0]
    sheet = list(csv.reader(io.StringIO(to_csv(table, study))))
    assert [row[0] for row in sheet[1:]] == [row.label for row in table.rows]
    for line, row in zip(sheet[1:], table.rows):
        assert [float(x) for x in line[2::2]] == [c.value for c in row.cells]
    lines = to_markdown(table, study).splitlines()[2:]
    assert {line.count("|") for line in lines} == {len(table.columns) + 3}
    assert "**1.000 ± 0.005**" in lines[-1]
    latex = to_latex(table, study)
    assert latex.count("&") == (len(table.rows) + 1) * (len(table.columns) + 1)
    assert r"\textbf{1.000 $\pm$ 0.005}" in latex and "×" not in latex


def test_latex_escapes_titles():
    record = fake_records.record() | {"title": r"50% & a_b {\x}"}
    study = arrange([record, fake_records.record("degree 7")])
    assert r"50\% \& a\_b \{\textbackslash{}x\}" in to_latex(tables(study)[0], study)


def test_the_long_table_has_a_line_a_record():
    records = small()
    rows = list(csv.DictReader(io.StringIO(long_csv(arrange(records)))))
    assert len(rows) == len(records)
    assert {float(r["coherence"]) for r in rows} == {
        r["metrics"]["coherence"]["value"] for r in records
    }
    assert all(r["tv1"] == "" for r in rows if r["task"] == "endpoints")


@pytest.mark.parametrize("graphs", [1, 3, 6])
@pytest.mark.parametrize("modes", [1, 2])
def test_the_terminal_table_fits_80_columns(graphs: int, modes: int):
    records = fake_records.records(graphs, 2, modes)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(records))
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    # One table a task and mode for coherence, and one where there is a transition TV.
    assert text.count("guided bisection") == 3 * modes
    assert "…" not in text and all(word in text for word in ("spanning", "bisection", "exp"))
    assert ("±.0" in text) == (graphs <= 3)  # errors where they fit
    assert ("± half of a 95 % interval" in text) == (graphs <= 3)
    assert graphs <= 3 or "half of a 95 % interval is at most 0.0" in text
    assert text.count("1.000") >= 2 * graphs


def test_the_terminal_table_splits_what_cannot_fit():
    one = fake_records.record()
    one["metrics"] = {key: one["metrics"][key] for key in ("coherence", "calls")}
    worlds = [one["world"].replace("seed=0", f"seed={i}") for i in range(30)]
    records = [
        one | {"title": f"graph number {i}", "world": world, "cell": i}
        for i, world in enumerate(worlds)
    ]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(records))
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert text.count("1.000") == 30 and "AD = graph number 29" in " ".join(text.split())


# ------------------------------------------------------------------------------- swaps


def planted(gap: float, se: float = 0.01) -> list[dict[str, Any]]:
    """Two samplers that change places between two graphs by `gap`, and a third that does not."""
    values = {"spanning tree": (0.5 + gap, 0.5, 0.1), "degree 7": (0.5, 0.5 + gap, 0.1)}
    return [
        with_coherence(fake_records.record(title, sampler=sampler), value, se)
        for title, row in values.items()
        for sampler, value in zip(SOME, row)
    ]


def test_a_planted_swap_is_found_and_noise_is_not():
    study = arrange(planted(0.2))
    found = sampler_swaps(study, 0)
    assert found.comparisons == 3
    (swap,) = found.pairs
    assert {swap.first, swap.second} == {"random(block=1)", "random(block=2)"}
    assert study.panels[swap.here].title == "spanning tree"
    assert [p.value for p in swap.points] == pytest.approx([0.7, 0.5, 0.5, 0.7])
    assert swap.swing == pytest.approx(0.2)
    assert swap.p == pytest.approx(3 * math.erfc(0.2 / math.hypot(0.01, 0.01) / math.sqrt(2)))
    # 3.0 standard errors: p = .0027 alone, .0081 of three; 2.2: .028 alone, not of three.
    assert len(sampler_swaps(arrange(planted(0.0425)), 0).pairs) == 1
    assert not sampler_swaps(arrange(planted(0.0311)), 0).pairs


def test_a_swap_is_as_wide_as_its_smaller_half():
    (swap,) = sampler_swaps(arrange([*planted(0.2)[:3], *planted(0.1)[3:]]), 0).pairs
    assert swap.swing == pytest.approx(0.1)


def test_both_halves_of_a_swap_must_hold():
    """Ten standard errors in one graph and one in the other are no swap."""
    tree, degree = planted(0.2)[:3], planted(0.0142)[3:]
    assert {record["title"] for record in degree} == {"degree 7"}
    assert not sampler_swaps(arrange([*tree, *degree]), 0).pairs


def test_equal_samplers_do_not_swap():
    """Holm at 5 %: a swap in one of 20 reports of pure noise has a chance of 1 - .95^20 < .65; the
    intersection makes it far smaller, and the seed is fixed."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        records = [
            with_coherence(
                fake_records.record(title, sampler=s),
                float(np.clip(rng.normal(0.5, 0.02), 0, 1)),
                0.02,
            )
            for title in list(fake_records.GRAPHS)[:4]
            for s in fake_records.SAMPLERS[:12]
        ]
        assert not sampler_swaps(arrange(records), 0).pairs


def test_a_perfect_score_is_not_certain():
    metric = METRICS.describe("coherence")

    def se(value: float, se: float | None, per_prompt: float = 1) -> float | None:
        made = read_estimate({"value": value, "se": se, "n": 512}, metric, per_prompt)
        return None if made is None else made.se

    assert se(1.0, 0.0) == pytest.approx(math.sqrt(514 * 2 / 516**3)) == share_se(1.0, 512)
    assert se(1.0, 0.0, per_prompt=32) == share_se(1.0, 16)
    assert se(0.5, 0.1) == 0.1 and se(0.5, None) is None
    record = with_coherence(fake_records.record(), 1.0, 0.0)
    record["metrics"]["coherence"]["n"] = 128
    made = estimate(record, metric)
    assert made is not None and made.half is not None
    assert f"{made.value:.3f} ± {made.half:.3f}" == "1.000 ± 0.021"
    spread = estimate(record | {"per_prompt": 8}, metric)
    assert spread is not None and spread.half is not None
    assert spread.half == pytest.approx(1.96 * share_se(1.0, 16), abs=1e-4)
    assert spread.half > 5 * made.half
    (table,) = tables(arrange([record, record | {"sampler": "random(block=1)"}]))
    assert [row.cells[0].text for row in table.rows] == ["1.000 ± 0.021"] * 2


# ------------------------------------------------------------------------------- layout

places = st.tuples(
    st.floats(1, 30).map(lambda v: round(v, 1)), st.floats(0, 1).map(lambda v: round(v, 1))
)


@given(st.lists(places, min_size=1, max_size=20), st.sampled_from([1, -1]))
def test_the_front_is_what_nobody_beats(points: list[tuple[float, float]], sign: int):
    front = {points[i] for i in pareto_front(points, sign)}
    unbeaten = {
        (x, y)
        for x, y in points
        if not any((u <= x and sign * (v - y) >= 0) and (u, v) != (x, y) for u, v in points)
    }
    assert front == unbeaten


@given(st.lists(places, min_size=1, max_size=16))
def test_dodged_points_do_not_cover_each_other(points: list[tuple[float, float]]):
    front = pareto_front(points, 1)
    xs = dodge(points, front, 5.0)
    assert all(xs[i] == points[i][0] for i in front[:1])
    gaps = [
        math.hypot(xs[i] - xs[j], points[i][1] - points[j][1])
        for i in range(len(xs))
        for j in range(i)
    ]
    assert min(gaps, default=9.0) >= 4.9


def test_labels_keep_apart():
    wanted = [(20.0 + 12 * i, 60.0, f"sampler {i}") for i in range(6)]
    made = place_labels(wanted, [], (0.0, 0.0, 200.0, 140.0), 1, 6.5)
    assert len(made) == 6
    for i, a in enumerate(made):
        assert a.box[0] >= 0 and a.box[2] <= 200 and a.box[1] >= 0 and a.box[3] <= 140
        for b in made[:i]:
            apart = a.box[2] <= b.box[0] or b.box[2] <= a.box[0]
            assert apart or a.box[3] <= b.box[1] or b.box[3] <= a.box[1]
