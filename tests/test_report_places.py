"""Points stand at their numbers: on the pages in a browser, and in the static figures.

Places are measured against the axes as a reader would: by the grid lines and what is written at
them, not by the functions that drew them.
"""

import re
import xml.etree.ElementTree as ElementTree
from math import log2
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.labels import KNOWN
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.drawing import slimmed
from maskwalk.report.estimates import estimate
from maskwalk.report.layout import rings
from tests import fake_records
from tests.fake_records import data_of, small, with_coherence

RESULTS = Path(__file__).parent.parent / "results"
WIDTHS = (1400, 390)

MEASURE = """() => [...document.querySelectorAll(".panel[data-metric], .panel[data-series]")].map(
  (panel) => {
    const at = (node, x, y) => { const m = node.getScreenCTM();
      return [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f]; };
    const ticks = (line, along) => {
      const of = (name) => line[name].baseVal.value;
      const written = line.nextElementSibling;
      const crosswise = along === "x" ? of("x1") === of("x2") : of("y1") === of("y2");
      return crosswise && written?.tagName === "text" && written.textContent !== ""
        && Number.isFinite(+written.textContent)
        ? [[+written.textContent, at(line, of("x1"), of("y1"))[along === "x" ? 0 : 1]]] : [];
    };
    const svg = panel.querySelector(".plot svg");
    if (!svg) return null;
    const grid = [...svg.querySelectorAll("line.grid")];
    const box = svg.getBoundingClientRect();
    return {
      data: {...panel.dataset},
      x: grid.flatMap((l) => ticks(l, "x")), y: grid.flatMap((l) => ticks(l, "y")),
      box: [box.left, box.top, box.right, box.bottom],
      points: [...svg.querySelectorAll(".point")].map((p) => ({
        s: p.dataset.s, label: p.getAttribute("aria-label"), at: at(p.querySelector("path"), 0, 0),
      })),
    };
  }).filter((panel) => panel)"""


def resize(tab: Any, width: int) -> None:
    """Sets the width of the window, and waits until figures were drawn anew."""
    tab.set_viewport_size({"width": width, "height": 900})
    tab.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r, 50)))")


def place(ticks: list[list[float]], value: float, log: bool) -> float:
    """Where a value belongs, by the first and the last tick of an axis."""
    along = log2 if log else float
    (a, one), (b, two) = ticks[0], ticks[-1]
    assert a != b, "an axis needs two ticks"
    return one + (along(value) - along(a)) / (along(b) - along(a)) * (two - one)


def inside(panel: dict[str, Any]) -> None:
    left, top, right, bottom = panel["box"]
    for point in panel["points"]:
        x, y = point["at"]
        assert left <= x <= right and top <= y <= bottom, (panel["data"], point)


def check_scatter(page: dict[str, Any], panel: dict[str, Any], mode: int, log: bool) -> int:
    """Every cell of a panel is drawn, and every mark is at its cost and value."""
    where, key, cost = int(panel["data"]["panel"]), panel["data"]["metric"], page["cost"]
    cells = {
        str(c["s"]): c["e"]
        for c in page["cells"]
        if c["m"] == mode and c["p"] == where and key in c["e"] and cost in c["e"]
    }
    assert {p["s"] for p in panel["points"]} == set(cells)
    for point in panel["points"]:
        numbers = cells[point["s"]]
        wanted = place(panel["x"], numbers[cost]["v"], log), place(panel["y"], numbers[key]["v"], 0)
        assert point["at"] == pytest.approx(wanted, abs=1.0), (panel["data"], point)
    return len(cells)


def check_series(page: dict[str, Any], panel: dict[str, Any], mode: int, log: bool) -> int:
    """The marks of a line figure, in the order of its lines."""
    shown = page["series"][int(panel["data"]["series"])]
    points = [p for line in shown["lines"] if line["m"] == mode for p in line["points"]]
    assert len(points) == len(panel["points"])
    for wanted, point in zip(points, panel["points"]):
        x, y = point["at"]
        upright = log and shown["metric"]["plain"]
        assert y == pytest.approx(place(panel["y"], wanted["v"], upright), abs=1.0)
        if wanted["x"] is not None and len(panel["x"]) > 1:
            assert x == pytest.approx(place(panel["x"], wanted["x"], shown["log"]), abs=1.0)
    return len(points)


def check(tab: Any, mode: int = 0, log: bool = True) -> int:
    """Measures every figure of a page as it is drawn now; returns how many points there were."""
    page, count = data_of(tab.content()), 0
    for panel in tab.evaluate(MEASURE):
        inside(panel)
        of_axis = "series" in panel["data"]
        count += (check_series if of_axis else check_scatter)(page, panel, mode, log)
    return count


@pytest.mark.parametrize("name", ["paper", "atlas", "language", "worlds"])
def test_points_of_the_committed_pages_stand_at_their_calls(visit: Any, name: str):
    tab = visit(RESULTS / name / "report.html")
    for width in WIDTHS:
        resize(tab, width)
        assert check(tab) > 100
    tab.get_by_text("linear", exact=True).click()
    check(tab, log=False)


def crowded_place() -> list[dict[str, Any]]:
    """All samplers of a panel at one place but one, which needs less than a call."""
    records = [
        with_coherence(fake_records.record(sampler=s), 0.5, 0.01) for s in fake_records.SAMPLERS[:9]
    ]
    for record in records:
        record["metrics"]["calls"] |= {"value": 12.0}
    records[0]["metrics"]["calls"] |= {"value": 0.5}
    return records


def test_marks_at_one_place_are_rings_with_a_count_and_all_are_named(visit: Any, tmp_path: Path):
    (path,) = write_report(crowded_place(), tmp_path)
    tab = visit(path)
    for width in WIDTHS:
        resize(tab, width)
        assert check(tab) >= 9
    figure = ".panel[data-metric='coherence']"
    assert tab.locator(f"{figure} text.count").all_text_contents() == ["8"]
    sizes = tab.evaluate(
        """(figure) => [...document.querySelectorAll(figure + " .point path")].map(
        (p) => p.getBBox().width)""",
        figure,
    )
    assert len({round(size) for size in sizes}) >= 4  # rings around rings
    tab.locator(f"{figure} .point[data-s='1'] path").hover(force=True)
    words = tab.locator("#tip").inner_text()
    assert words.count("0.500 ± 0.020 at 12") == 7 and "Also here:" in words


def test_rings_differ_where_marks_touch():
    points = [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (30.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    assert rings(points, [1], 3.5, 3) == [1, 0, 2, 0, 3, 3]
    assert rings(points, [], 0.5, 3) == [0] * 6


SVG = "{http://www.w3.org/2000/svg}"


def drawn(axes: Any) -> tuple[dict[str, list[list[float]]], list[tuple[str, float, float]]]:
    """Ticks of both axes and the marks (colour, x, y) of one panel of a static figure."""
    ticks: dict[str, list[list[float]]] = {"x": [], "y": []}
    marks = []
    for group in axes.iter(f"{SVG}g"):
        tick = re.fullmatch(r"([xy])tick_\d+", group.get("id", ""))
        if tick:
            use = group.findall(f".//{SVG}use")[-1]
            word = "".join(t.text or "" for t in group.iter(f"{SVG}text")).replace("−", "-")
            ticks[tick[1]].append([float(word), float(use.get(tick[1]))])
        for use in group.findall(f"{SVG}g[@clip-path]/{SVG}use"):
            colours = re.findall(r"#[0-9a-f]{6}", use.get("style") or "")
            marks.append((colours, float(use.get("x")), float(use.get("y"))))
    return ticks, marks


def test_points_of_the_static_figures_stand_at_their_calls(tmp_path: Path):
    records = [*small(modes=1, tasks=1), *crowded_place()]
    study = arrange(records)
    metric = study.quality
    assert metric is not None
    (path,) = [
        p for p in write_report(records, tmp_path, ("svg",)) if p.stem.startswith("coherence")
    ]
    tree = ElementTree.parse(path)
    panels = [g for g in tree.iter(f"{SVG}g") if re.fullmatch(r"axes_\d+", g.get("id", ""))]
    assert len(panels) == len(study.panels)
    family = {f.name: f for f in study.families}
    for panel, axes in enumerate(panels):
        ticks, marks = drawn(axes)
        wanted = []
        for (_, p, s), record in study.cells.items():
            if p == panel:
                cost, value = estimate(record, study.cost), estimate(record, metric)
                assert cost and value
                x = place(ticks["x"], cost.value, True)
                y = place(ticks["y"], value.value, False)
                wanted.append((family[study.samplers[s].family].light, x, y))
        for colour, x, y in wanted:
            here = [m for m in marks if abs(m[1] - x) < 1 and abs(m[2] - y) < 1 and colour in m[0]]
            assert here, (panel, colour, x, y)
        assert len([m for m in marks if len(m[0]) >= 1]) >= len(wanted)
        for _, x, y in marks:
            assert any(abs(x - a) < 1 and abs(y - b) < 1 for _, a, b in wanted), (panel, x, y)


COLOURS = """() => {
  const fill = (node) => getComputedStyle(node.querySelector("path")).fill;
  const shape = (node) => node.querySelector("path").getAttribute("d").split(/[ac]/i).length > 2
    ? "round" : String(node.querySelector("path").getAttribute("d").split("L").length);
  const marks = {};
  for (const p of document.querySelectorAll(".panel .point:not(.ring)")) {
    (marks[p.dataset.s] ??= new Set()).add(fill(p) + shape(p));
  }
  const chips = Object.fromEntries([...document.querySelectorAll("[data-family]")].map(
    (b) => [b.dataset.family, fill(b.querySelector("svg")) + shape(b.querySelector("svg"))]));
  return [Object.fromEntries(Object.entries(marks).map(([s, all]) => [s, [...all]])), chips];
}"""


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_legend_has_the_colours_of_the_marks(visit: Any, tmp_path: Path, scheme: str):
    records = small(modes=1)
    (path,) = write_report(records, tmp_path)
    tab = visit(path, color_scheme=scheme)
    study = arrange(records)
    marks, chips = tab.evaluate(COLOURS)
    place = {family.name: i for i, family in enumerate(study.families)}
    assert len(chips) == len(study.families) >= 2 and len(set(chips.values())) == len(chips)
    for s, looks in marks.items():
        family = place[study.samplers[int(s)].family]
        assert looks == [chips[str(family)]], study.samplers[int(s)].label
    for i, family in enumerate(study.families):
        known = KNOWN[family.name][0 if scheme == "light" else 1]
        assert chips[str(i)].startswith(rgb(known)), family.name


def test_the_static_legend_has_the_colours_of_the_marks(tmp_path: Path):
    """The name beside a legend's mark is that of the family drawn in its colour."""
    records = small(modes=1, tasks=1)
    study = arrange(records)
    (path,) = [
        p for p in write_report(records, tmp_path, ("svg",)) if p.stem.startswith("coherence")
    ]
    (legend,) = [g for g in ElementTree.parse(path).iter(f"{SVG}g") if g.get("id") == "legend_1"]
    uses = list(legend.iter(f"{SVG}use"))
    names = [t.text for t in legend.iter(f"{SVG}text")]
    shown = dict(zip(names, (re.findall(r"#[0-9a-f]{6}", u.get("style") or "")[0] for u in uses)))
    assert shown == {f.label: f.light for f in study.families} and len(shown) >= 2


def test_a_slimmed_figure_says_the_same(tmp_path: Path) -> None:
    """Places to a hundredth of a point; what is read, names and versions stay."""
    svg = b'<g id="a1.2345">\n   <use x="12.345678" y="-0.001"/>\n  <text>0.98765</text>\n</g>'
    assert slimmed(svg) == (
        b'<g id="a1.2345">\n<use x="12.35" y="-0"/>\n<text>0.98765</text>\n</g>'
    )
    path = write_report(small(modes=1, tasks=1), tmp_path, ("svg",))[0]
    places = [use.get("x") or "" for use in ElementTree.parse(path).iter(f"{SVG}use")]
    assert places and all(len(x.partition(".")[2]) <= 2 for x in places)
