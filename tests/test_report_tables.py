"""The report's tables, ranking flips and figure layout."""

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
from maskwalk.report.flips import ranking_flips
from maskwalk.report.layout import dodge, pareto_front, place_labels
from maskwalk.report.study import Estimate, arrange, spread
from maskwalk.report.tables import long_csv, tables, to_csv, to_latex, to_markdown
from tests import fake_records
from tests.fake_records import SOME, small, with_coherence

# ------------------------------------------------------------------------------- tables


def test_marks_follow_the_digits_shown():
    base = [fake_records.record(sampler=s, cell=i) for i, s in enumerate(SOME)]
    values = [0.9501, 0.9499, 0.7, None]
    study = arrange([with_coherence(r, v) for r, v in zip(base, values)])
    table = next(t for t in tables(study) if t.metric == "coherence")
    assert [(row.label, row.cells[0].mark) for row in table.rows] == [
        ("random", "best"),
        ("random ×2", "best"),
        ("random exp", "second"),
    ]
    low = next(t for t in tables(study) if t.metric == "tv1")
    best = [row for row in low.rows if row.cells[0].mark == "best"]
    assert min(c.value for row in low.rows for c in row.cells) == best[0].cells[0].value
    assert low.floor is not None and low.floor[0].value == pytest.approx(0.105)


def test_conditional_tasks_have_no_tv_table():
    tasks = {(t.metric, t.task) for t in tables(arrange(small()))}
    assert ("tv1", "unconditional") in tasks and ("tv1", "endpoints") not in tasks


def test_tables_as_text_hold_the_same_numbers():
    study = arrange(small(modes=1))
    table = tables(study)[0]
    sheet = list(csv.reader(io.StringIO(to_csv(table))))
    assert [row[0] for row in sheet[1:]] == [row.label for row in table.rows]
    for line, row in zip(sheet[1:], table.rows):
        assert [float(x) for x in line[2::2]] == [c.value for c in row.cells]
    lines = to_markdown(table).splitlines()[2:]
    assert {line.count("|") for line in lines} == {len(table.columns) + 3}
    assert "**1.000 ± 0.000**" in lines[-1]
    latex = to_latex(table)
    assert latex.count("&") == (len(table.rows) + 1) * (len(table.columns) + 1)
    assert r"\textbf{1.000 $\pm$ 0.000}" in latex and "×" not in latex


def test_latex_escapes_titles():
    record = fake_records.record() | {"title": r"50% & a_b {\x}"}
    assert r"50\% \& a\_b \{\textbackslash{}x\}" in to_latex(tables(arrange([record]))[0])


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
    assert text.count("guided bisection") == 2 * modes  # one table a task and mode
    assert "…" not in text and all(word in text for word in ("spanning", "bisection", "exp"))
    assert ("±.0" in text) == (graphs <= 3)  # errors where they fit
    assert text.count("1.000") >= 2 * graphs


def test_the_terminal_table_splits_what_cannot_fit():
    one = fake_records.record()
    records = [one | {"title": f"graph number {i}", "graph_seed": i, "cell": i} for i in range(14)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(records))
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert text.count("1.000") == 14


# ------------------------------------------------------------------------------- flips


def planted(gap: float, se: float = 0.01) -> list[dict[str, Any]]:
    """Two samplers that change places between two graphs by `gap`, and a third that does not."""
    values = {"spanning tree": (0.5 + gap, 0.5, 0.1), "degree 7": (0.5, 0.5 + gap, 0.1)}
    return [
        with_coherence(fake_records.record(title, sampler=sampler), value, se)
        for title, row in values.items()
        for sampler, value in zip(SOME, row)
    ]


def test_a_planted_flip_is_found_and_noise_is_not():
    study = arrange(planted(0.2))
    found = ranking_flips(study, 0)
    assert found.comparisons == 3
    (flip,) = found.found
    assert {study.samplers[s].label for s in (flip.first, flip.second)} == {"random", "random ×2"}
    assert study.panels[flip.here].title == "spanning tree"
    assert flip.values == pytest.approx((0.7, 0.5, 0.5, 0.7)) and flip.swing == pytest.approx(0.2)
    assert flip.p == pytest.approx(3 * math.erfc(0.2 / math.hypot(0.01, 0.01) / math.sqrt(2)))
    # 3.0 standard errors: p = .0027 alone, .0081 of three; 2.2: .028 alone, not of three.
    assert len(ranking_flips(arrange(planted(0.0425)), 0).found) == 1
    assert not ranking_flips(arrange(planted(0.0311)), 0).found


def test_equal_samplers_do_not_flip():
    """Holm at 5 %: a flip in one of 20 reports of pure noise has a chance of 1 - .95^20 < .65; the
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
        assert not ranking_flips(arrange(records), 0).found


def test_a_perfect_score_is_not_certain():
    assert spread(Estimate(1.0, 0.0, 512, {})) == pytest.approx(math.sqrt(514 * 2 / 516**3))
    assert spread(Estimate(1.0, 0.0, 512, {}), per_prompt=32) > spread(Estimate(1.0, 0.0, 512, {}))
    assert spread(Estimate(0.5, 0.1, 512, {})) == 0.1


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
