"""Figures and tables saved from the page: what is in the files is what the page shows."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from maskwalk.report import write_report
from tests.fake_records import small

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = small(modes=1, tasks=1)
    for record in records:
        if record["title"] == "spanning tree":
            record["title"] = "50 % & more_of {it}"
    (path,) = write_report(records, tmp_path_factory.mktemp("saved"))
    return path


@pytest.fixture
def saved(page: Path, chromium: Any, tmp_path: Path) -> Any:
    """Clicks a button and reads the file that comes."""
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    tab = context.new_page()
    tab.goto(page.as_uri())

    def click(where: str, label: str) -> tuple[str, bytes, Any]:
        button = tab.locator(where).first.locator(".save", has_text=label)
        with tab.expect_download() as coming:
            button.first.click(force=True)
        path = tmp_path / coming.value.suggested_filename
        coming.value.save_as(path)
        return path.name, path.read_bytes(), tab

    yield click
    context.close()


def test_a_figure_is_saved_with_its_points_and_colours(saved: Any) -> None:
    name, data, tab = saved(".panel", "SVG")
    assert name.endswith(".svg")
    root = ElementTree.fromstring(data)
    ground, *_ = root
    assert ground.tag == f"{SVG}rect" and "rgb(255, 255, 255)" in ground.get("style")
    shown = tab.evaluate("""() => [...document.querySelector(".plot svg").querySelectorAll(
        ".point path")].map((p) => [p.getAttribute("transform"), getComputedStyle(p).fill])""")
    drawn = {(p.get("transform"), _fill(p)) for p in root.iter(f"{SVG}path") if p.get("transform")}
    assert shown and {tuple(one) for one in shown} <= drawn
    assert len({fill for _, fill in drawn}) == 2  # of two families
    assert not any("class" in node.attrib for node in root.iter())


def _fill(node: ElementTree.Element) -> str:
    style = dict(part.split(":", 1) for part in node.get("style", "").split(";"))
    return style["fill"]


def test_a_figure_is_saved_as_pixels(saved: Any) -> None:
    name, data, _ = saved(".panel", "PNG")
    assert name.endswith(".png") and data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") >= 1500


def test_a_table_is_saved_with_values_and_intervals(saved: Any) -> None:
    _, data, tab = saved(".tables .scroll", "CSV")
    heads, *rows = csv.reader(io.StringIO(data.decode()))
    assert heads[:2] == ["sampler", "calls"] and heads[3] == f"{heads[2]} ±"
    wanted = tab.evaluate("""() => [...document.querySelector(".tables table").tBodies[0].rows].map(
        (row) => [row.cells[0].textContent.trim(), +row.cells[1].dataset.v, +row.cells[2].dataset.v,
                  +row.cells[2].querySelector("small").textContent.replace("±", "")])""")
    found = [[row[0], float(row[1]), float(row[2]), float(row[3])] for row in rows]
    assert found[: len(wanted)] == wanted and len(wanted) > 2


def test_a_table_is_saved_as_latex_that_compiles(saved: Any) -> None:
    _, data, _ = saved(".tables .scroll", "LaTeX")
    text = data.decode()
    first, *lines = [line for line in text.splitlines() if line.endswith("\\\\")]
    columns = text.splitlines()[0].count("r}") + text.splitlines()[0].split("{")[-1].count("r")
    assert text.startswith("\\begin{tabular}{l") and columns >= 2
    assert "50 \\% \\& more\\_of \\{it\\}" in first
    assert all(line.count(" & ") == first.count(" & ") for line in lines)
    assert "$\\pm$" in text and "±" not in text
