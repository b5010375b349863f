"""Pictures of traces in the report's page: what it carries, and how a browser shows it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from maskwalk.report import page_data, write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.frames import frames
from maskwalk.report.page import page
from tests.fake_records import small
from tests.test_pictures import SUDOKU, WALK, record


def data_of(text: str) -> Any:
    return json.loads(re.search(r'id="data">(.*?)</script>', text)[1])


def test_the_page_carries_pictures_and_says_what_they_are():
    cells = data_of(page(arrange([record(**SUDOKU)])))["cells"]
    drawn = cells[0]["trace"]["pictures"]
    assert [title for title, _ in drawn][:2] == ["given", "round 1"]
    assert ["".join(parts) for _, parts in drawn] == record(**SUDOKU)["trace"]["pictures"]
    assert "✗</span> is a break" in page(arrange([record(**SUDOKU)]))
    walks = page(arrange([record(**WALK)]))
    assert "is a break" not in walks and "pictures" not in data_of(walks)["cells"][0]["trace"]


def test_pictures_count_against_the_size_of_the_page(monkeypatch: pytest.MonkeyPatch):
    first, second = record(**SUDOKU), record(**{**SUDOKU, "world": "latin(n=4)"})
    study = arrange([first, second])
    assert len(page_data.traced_panels(study)) == 2
    monkeypatch.setattr(page_data, "MOST_TRACED", 2 * 16)  # room for the tokens, not the pictures
    assert page_data.traced_panels(study) == {(0, 0)} and page_data.left_out(study, {(0, 0)}) == 1
    for one in (first, second):
        del one["trace"]["pictures"]
    assert len(page_data.traced_panels(arrange([first, second]))) == 2


@pytest.fixture
def open_page(visit: Any, tmp_path: Path) -> Any:
    def opened(records: list[Any], **options: Any) -> Any:
        (path,) = write_report(records, tmp_path)
        return visit(path, **options)

    return opened


def background(tab: Any, selector: str) -> str:
    return tab.evaluate(f"getComputedStyle(document.querySelector('{selector}')).backgroundColor")


def test_pictures_in_a_browser_light_dark_and_narrow(open_page: Any):
    one, other = record(**SUDOKU), record(**{**SUDOKU, "sampler": "left_to_right"})
    other["trace"]["pictures"][-1] = other["trace"]["pictures"][-1].replace(" │", "✗│", 1)
    other["trace"]["valid"][3] = False
    tab = open_page([one, other], color_scheme="dark")
    tab.locator("#trace-sampler").select_option(label="entropy ×2")
    shown = tab.locator("#trace pre").all_inner_texts()
    assert [text.strip("\n") for text in shown] == one["trace"]["pictures"]
    heads = tab.locator("#trace figcaption").all_inner_texts()
    assert heads == ["given", *(f"round {i}" for i in range(1, 6))]
    drawn = frames(one["trace"])
    for figure, frame in zip(tab.locator("#trace figure").all(), drawn, strict=True):
        assert figure.locator("b.new").all_inner_texts() == frame.parts[1::2]
    assert "5 rounds; the sequence is possible" in tab.locator("#trace").inner_text()
    assert tab.locator("#trace svg").count() == 0 and tab.locator(".strip").count() == 2
    boxes = [f.bounding_box() for f in tab.locator("#trace figure").all()[:2]]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]  # side by side
    assert "ono" in tab.evaluate(
        "getComputedStyle(document.querySelector('#trace pre')).fontFamily"
    )
    dark = background(tab, "#trace .new")
    assert dark not in ("rgba(0, 0, 0, 0)", background(tab, "#trace pre"))
    tab.locator(".strip", has_text="left to right").click()
    assert tab.locator("#trace .broken").count() == 1
    assert "10 rounds; the sequence is impossible" in tab.locator("#trace").inner_text()
    tab.get_by_text("light", exact=True).click()
    assert background(tab, "#trace .new") != dark
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_words_thinned_traces_and_walks_in_a_browser(open_page: Any):
    long = record(world="dyck(length=48)", task="unconditional", sampler="left_to_right")
    walk = next(r for r in small(modes=1, tasks=1, graphs=1) if "bisection" in r["sampler"])
    tab = open_page([long, walk])
    assert "48 rounds (31 of them are shown)" in tab.locator("#trace").inner_text()
    words = [f.bounding_box() for f in tab.locator("#trace pre").all()[:2]]
    assert words[0]["x"] == words[1]["x"] and words[0]["y"] < words[1]["y"]  # one per row
    heading = tab.locator("#trace figcaption").first.bounding_box()
    assert heading["x"] + heading["width"] <= words[0]["x"]  # the round in front
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.locator("#trace-panel").select_option(index=1)
    assert tab.locator("#trace pre").count() == 0 and tab.locator("#trace svg").count() == 1
    assert "drawn" not in tab.locator("#trace").get_attribute("class")
