"""The report: labels, tables, flips, layout, sentences, files, and the page in a real browser."""

import csv
import io
import json
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from maskwalk.errors import MaskwalkError
from maskwalk.report import terminal_table, write_report
from maskwalk.report.flips import ranking_flips, spread
from maskwalk.report.labels import KNOWN, SPARE, families, samplers, task_label
from maskwalk.report.layout import dodge, pareto_front, place_labels
from maskwalk.report.page import embedded, page
from maskwalk.report.study import Estimate, arrange
from maskwalk.report.summary import findings, intro, listed
from maskwalk.report.tables import long_csv, tables, to_csv, to_latex, to_markdown
from tests import fake_records

SOME = ["random(block=1)", "random(block=2)", "random(block='exponential')", "bisection(order=1)"]


def small(**changes: Any) -> list[dict[str, Any]]:
    return fake_records.records(**{"graphs": 2, "tasks": 2, "modes": 2, "samplers": SOME} | changes)


def with_coherence(
    record: dict[str, Any], value: float | None, se: float | None = 0.01
) -> dict[str, Any]:
    metrics = record["metrics"] | {"coherence": {"value": value, "se": se, "n": 512}}
    return record | {"metrics": metrics}


# ------------------------------------------------------------------------------- labels


def test_labels_keep_only_what_tells_samplers_apart():
    named = {s.spec: s for s in samplers([*SOME, "guided_bisection(order=1, score='entropy')"])}
    assert [s.label for s in named.values()] == [
        "random",
        "random ×2",
        "random exp",
        "bisection",
        "guided bisection",
    ]
    guided = [
        "guided_bisection(order=1, score='entropy')",
        "guided_bisection(order=2, score='margin')",
    ]
    assert {s.label for s in samplers(guided)} == {
        "guided bisection order 1 entropy",
        "guided bisection order 2 margin",
    }
    # Block sizes are one line; "exponential" is not a size.
    assert named[SOME[0]].line == named[SOME[1]].line != named[SOME[2]].line
    assert task_label("bottleneck(separation=None)") == "bottleneck"
    assert task_label("bottleneck(separation=3)") == "bottleneck, separation 3"


def test_labels_are_distinct_and_ordered():
    made = samplers(fake_records.SAMPLERS)
    assert len({s.label for s in made}) == len(made) == 27
    blocks = [s.short for s in made if s.family == "margin"]
    assert blocks == ["×1", "×2", "×4", "×6", "×8", "exp"]


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_a_family_looks_the_same_in_every_report(names: list[str]):
    looks = {f.name: (f.light, f.marker) for f in families([*names, "bisection"])}
    assert looks["bisection"] == (KNOWN["bisection"][0], KNOWN["bisection"][2])
    assert len(set(looks.values())) == len(looks)  # up to eight new names never share a look
    alone = families([sorted(names)[0]])[0]
    assert looks[sorted(names)[0]] == (alone.light, alone.marker)


def test_colours_stand_out_on_both_pages():
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for light, dark, _ in [*KNOWN.values(), *SPARE]:
        assert contrast(light, "#ffffff") >= 3
        assert contrast(dark, "#1b2027") >= 3


# ------------------------------------------------------------------------------- study


def test_a_model_for_every_graph_is_one_mode():
    records = small(modes=1)
    for record in records:
        record["denoiser"] = f"network(model='{record['title']}')"
    assert arrange(records).modes == ["network · exact"]


def test_modes_split_where_one_cell_has_two():
    first = fake_records.record()
    study = arrange([first, first | {"seed": 1}, first | {"preset": "as_published"}])
    assert study.modes == [
        "oracle · exact · seed 0",
        "oracle · exact · seed 1",
        "oracle · as published",
    ]
    assert len(study.cells) == 3 and study.superseded == 0


def test_the_later_record_of_a_cell_counts():
    first = fake_records.record()
    study = arrange([first, with_coherence(first, 0.5)])
    assert study.superseded == 1
    held = study.estimate(0, 0, 0, "coherence")
    assert held is not None and held.value == 0.5


def test_equal_titles_of_different_graphs_are_told_apart():
    first = fake_records.record()
    study = arrange([first, first | {"graph_seed": 1}])
    assert [p.title for p in study.panels] == [
        "spanning tree · graph seed 0",
        "spanning tree · graph seed 1",
    ]


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "no records"),
        ([{"schema": 2}], "schema 2"),
        ([{"schema": 1, "task": "x"}], "lacks sampler"),
    ],
)
def test_unusable_records_get_a_sentence(records: list[dict[str, Any]], words: str):
    with pytest.raises(MaskwalkError, match=words):
        arrange(records)


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


# ------------------------------------------------------------------------------- sentences


def test_the_summary_names_what_the_records_say():
    study = arrange(fake_records.records(3, 2, 1))
    said = {f.lead: f.text for f in findings(study, 0, ranking_flips(study, 0))}
    flawless = said["Never off the graph."]
    assert flawless.startswith(
        "Bisection (5 calls) and guided bisection (6.4 calls and never over 8)"
    )
    assert "22–24 calls" in flawless and "6 panels" in flawless
    assert said["Cheapest of the best, unconditional and endpoints:"] == (
        "bisection on all 3 graphs (1.000 at 5 calls)."
    )
    assert intro(study).startswith(
        "27 samplers on 3 graphs and 2 tasks (unconditional and endpoints)"
    )
    assert "82,944 walks of 24 tokens" in intro(study)


def test_the_summary_does_not_praise_what_failed_once():
    records = small(modes=1)
    records[3] = with_coherence(records[3], 0.9, 0.013)  # bisection, on the first graph
    study = arrange(records)
    said = " ".join(f"{f.lead} {f.text}" for f in findings(study, 0, ranking_flips(study, 0)))
    assert "Never off the graph. Random (22–24 calls) made no invalid step" in said
    study = arrange([with_coherence(r, 0.9) for r in records])
    said = " ".join(f"{f.lead} {f.text}" for f in findings(study, 0, ranking_flips(study, 0)))
    assert "Nobody is always right" in said and "at least 0.900" in said


def test_lists_read_well():
    assert listed(["a"]) == "a" and listed(["a", "b"]) == "a and b"
    assert listed(["a", "b, c", "d"]) == "a; b, c; and d"
    assert listed([str(i) for i in range(12)], 4) == "0, 1, 2 and 9 more"


# ------------------------------------------------------------------------------- files


def test_the_page_is_self_contained_and_stable(tmp_path: Path):
    records = small()
    (path,) = write_report(records, tmp_path / "deep" / "folder")
    text = path.read_text("utf-8")
    assert path == tmp_path / "deep" / "folder" / "report.html"
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.]+\.[a-z]{2,}", text))
    assert addresses == {"http://www.w3.org"}  # the name of SVG, not an address
    assert not re.search(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=\"(?!data:,)", text)
    assert page(arrange(records)) == text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert len(data["cells"]) == len(records)


def test_hostile_titles_stay_text(tmp_path: Path):
    evil = "</script><img src=x onerror=alert(1)>"
    record = fake_records.record() | {"title": evil, "notes": [evil], "experiment": evil}
    text = page(arrange([record]))
    assert "<img" not in text
    assert json.loads(str(embedded([evil]))) == [evil]


def test_gaps_in_records_are_not_errors():
    bare = {k: fake_records.record()[k] for k in ("task", "sampler", "denoiser", "preset")}
    for metrics in (
        {"coherence": None},
        {"coherence": {"value": float("nan"), "se": None, "n": None}},
    ):
        text = page(arrange([bare | {"metrics": metrics}]))
        assert "nothing to compare" in text and "NaN" not in text
    half = with_coherence(fake_records.record(), 0.5, None) | {
        "trace": {"tokens": [1, 2], "rounds": [0]}
    }
    assert '"trace"' not in page(arrange([half])).split('id="data">')[1].split("</script>")[0]


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_figures_are_files_that_open(tmp_path: Path, suffix: str):
    records = small(modes=1)
    made = write_report(records, tmp_path / "a", (suffix,))
    again = write_report(records, tmp_path / "b", (suffix,))
    names = {"coherence-unconditional-oracle-exact", "coherence-endpoints-oracle-exact"}
    names |= {"traces-unconditional-oracle-exact", "traces-endpoints-oracle-exact"}
    assert {p.stem for p in made} == names | {"tv1-unconditional-oracle-exact"}
    for one, two in zip(made, again):
        assert one.read_bytes() == two.read_bytes()
    if suffix == "pdf":
        assert all(p.read_bytes().startswith(b"%PDF") for p in made)
    else:
        tree = ElementTree.parse(next(p for p in made if p.stem.startswith("coherence-unc")))
        assert {"spanning tree", "degree 7", "bisection"} <= set(tree.getroot().itertext())


def test_tables_are_written_in_every_format(tmp_path: Path):
    made = write_report(small(modes=1), tmp_path, ("csv", "md", "tex", "csv"))
    assert len(made) == len(set(made)) == 3 * 3 + 1
    assert (tmp_path / "tables" / "records.csv").stat().st_size > 0


def test_bad_formats_and_bad_disks_get_a_sentence(tmp_path: Path):
    with pytest.raises(MaskwalkError, match="Did you mean 'html'"):
        write_report(small(), tmp_path, ("htm",))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MaskwalkError, match="Cannot write"):
        write_report(small(), tmp_path / "file")


# ------------------------------------------------------------------------------- the browser

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--disable-quic"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens the page of some records from disk; at the end nothing was logged or requested."""
    complaints: list[str] = []
    contexts = []

    def opened(records: list[dict[str, Any]], **options: Any) -> Any:
        (path,) = write_report(records, tmp_path)
        context = chromium.new_context(viewport={"width": 1300, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request",
            lambda asked: complaints.append(asked.url) if asked.url != path.as_uri() else None,
        )
        tab.goto(path.as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def positions(tab: Any, panel: int = 0) -> dict[str, str]:
    """Where every sampler's mark is in a figure."""
    script = """(panel) => Object.fromEntries([...document.querySelectorAll(
        `.panel[data-panel="${panel}"][data-metric="coherence"] .point`)].map(
        (p) => [p.dataset.s, p.querySelector("path").getAttribute("transform")]))"""
    return tab.evaluate(script, panel)


def test_the_page_draws_every_panel_and_the_mode_switch_changes_it(open_page: Any):
    tab = open_page(small())
    assert tab.locator(".plot svg").count() == 4 + 2  # coherence everywhere, TV where unconditional
    before = positions(tab)
    assert len(before) == len(SOME)
    sentences = tab.locator("#summary li:visible").all_inner_texts()
    tab.get_by_text("network · exact", exact=True).first.click()
    after = positions(tab)
    assert set(after) == set(before) and after != before
    assert tab.locator("#summary li:visible").all_inner_texts() != sentences
    assert tab.locator("table:visible caption").first.inner_text().endswith("(network · exact)")


def test_samplers_and_families_can_be_toggled(open_page: Any):
    tab = open_page(small(modes=1))
    chip = tab.get_by_role("button", name="random ×2", exact=True)
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert len(positions(tab)) == len(positions(tab, 1)) == len(SOME) - 1
    tab.locator("button[data-family]", has_text="random").click()
    assert len(positions(tab)) == 1
    tab.get_by_role("button", name="Show all").click()
    assert len(positions(tab)) == len(SOME)


def test_points_speak_to_the_keyboard_and_the_mouse(open_page: Any):
    tab = open_page(small(modes=1))
    tip = tab.locator("#tip")
    assert not tip.is_visible()
    first = tab.locator(".panel .point[tabindex='0']").first
    first.focus()
    words = tip.inner_text()
    assert tip.is_visible() and "coherence" in words and "n = 512" in words and "±" in words
    assert words.splitlines()[0] in first.get_attribute("aria-label")
    tab.keyboard.press("ArrowRight")
    assert tip.inner_text() != words
    tab.keyboard.press("Escape")
    assert not tip.is_visible()
    tab.locator(".panel .point path").nth(1).hover()
    assert tip.is_visible()


def test_zoom_scale_and_size_redraw(open_page: Any):
    tab = open_page(small(modes=1))
    log = positions(tab)
    tab.get_by_text("linear", exact=True).click()
    assert positions(tab) != log
    tab.evaluate("document.querySelector('.panel').scrollIntoView({block: 'center'})")
    box = tab.locator(".plot svg").first.bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + 8)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5, steps=4)
    tab.mouse.up()
    reset = tab.locator(".panel .reset").first
    assert reset.is_visible() and len(positions(tab)) < len(SOME)
    reset.click()
    assert len(positions(tab)) == len(SOME)
    tab.get_by_role("button", name="Enlarge").first.click()
    assert tab.locator(".plot svg").first.bounding_box()["width"] > 2 * box["width"]


def test_tables_sort_and_traces_show_the_first_invalid_step(open_page: Any):
    records = small(modes=1, tasks=1, graphs=1)
    records[1]["trace"]["valid"] = [t not in (5, 9) for t in range(24)]
    tab = open_page(records)
    tab.locator("table.sortable").first.get_by_role("button", name="spanning tree").click()
    cells = tab.locator("table.sortable").first.locator("tbody td:nth-child(3)")
    shown = [float(text.split()[0]) for text in cells.all_inner_texts()]
    assert shown == sorted(shown, reverse=True) and shown[0] > shown[-1]
    tab.locator("#trace-sampler").select_option(label="random ×2")
    tokens = records[1]["trace"]["tokens"]
    assert f"first impossible step: {tokens[4]} → {tokens[5]}" in tab.locator("#trace").inner_text()
    assert tab.locator("#trace .wrong").count() == tab.locator("#trace .late-wrong").count() == 1
    tab.locator(".strip", has_text="bisection").click()
    assert "bisection: 5 rounds" in tab.locator("#trace").inner_text()


def test_themes_paper_and_narrow_screens(open_page: Any):
    tab = open_page(small(), color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(colour)
    tab.get_by_text("light", exact=True).click()
    assert tab.evaluate(colour) != dark
    tab.get_by_text("dark", exact=True).click()
    assert tab.evaluate(colour) == dark
    tab.set_viewport_size({"width": 420, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 420
    tab.emulate_media(media="print")
    assert tab.evaluate(colour) == "rgb(255, 255, 255)"
    assert not tab.locator("#modes").is_visible() and tab.locator("#legend .families").is_visible()


@pytest.mark.parametrize("kind", ["single", "conditional", "null", "partial"])
def test_thin_records_still_make_a_page(open_page: Any, kind: str):
    one = fake_records.record()
    records = {
        "single": [one],
        "conditional": [fake_records.record(task=fake_records.TASKS[1]) | {"trace": None}],
        "null": [one | {"metrics": dict.fromkeys(one["metrics"]), "trace": None}],
        "partial": [r for r in small() if r["denoiser"] == "oracle" or r["title"] == "degree 7"],
    }[kind]
    tab = open_page(records)
    assert tab.locator("#tv").count() == (kind in ("single", "partial"))
    assert tab.locator("#modes").count() == (kind == "partial")
    if kind in ("conditional", "null"):
        assert tab.get_by_text("No traces were recorded here.").is_visible()
    if kind == "partial":
        tab.get_by_text("network · exact", exact=True).first.click()
        assert tab.get_by_text("Not run in this mode.").first.is_visible()
