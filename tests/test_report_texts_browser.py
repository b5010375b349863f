"""The page of text records in a real browser, opened from disk."""

from pathlib import Path
from typing import Any

import pytest

from maskwalk.report import write_report
from tests import fake_texts
from tests.fake_texts import SOME, small

EVIL = "</script><img src=x onerror='window.hit = 1'><b>bold</b>\n\n& a second paragraph"


@pytest.fixture
def open_page(visit: Any, tmp_path: Path) -> Any:
    """Opens the page of some records from disk."""

    def opened(records: list[dict[str, Any]], **options: Any) -> Any:
        (path,) = write_report(records, tmp_path)
        return visit(path, **options)

    return opened


def positions(tab: Any, metric: str = "own_bpb") -> dict[str, str]:
    """Where every setting's mark is in a figure."""
    script = """(metric) => Object.fromEntries([...document.querySelectorAll(
        `.panel[data-metric="${metric}"] .point`)].map(
        (p) => [p.dataset.s, p.querySelector("path").getAttribute("transform")]))"""
    return tab.evaluate(script, metric)


def test_the_mode_switch_changes_figures_sentences_table_and_texts(open_page: Any):
    records = small()
    tab = open_page(records)
    assert tab.locator(".plot svg").count() == 8
    before = positions(tab)
    assert len(before) == len(SOME)
    sentences = tab.locator("#summary li:visible").all_inner_texts()
    shown = tab.locator("#text-left .text").inner_text()
    assert shown == next(r for r in records if r["sampler"] == "left_to_right()")["texts"][0]
    tab.get_by_text("top-p 0.9 †", exact=True).first.click()
    after = positions(tab)
    assert set(after) == set(before) and after != before
    assert tab.locator("#summary li:visible").all_inner_texts() != sentences
    assert tab.locator("#tables caption:visible").inner_text() == "Unconditional, Books (top-p 0.9)"
    assert (
        tab.locator("#text-left .text").inner_text()
        == next(r for r in records if r["sampler"] == SOME[0] and r["mode"] == "draw(top_p=0.9)")[
            "texts"
        ][0]
    )
    replay = tab.locator(".panel[data-metric='replay_bpb']")
    assert replay.get_by_text("Not measured in this mode.").is_visible()


def test_fronts_only_where_there_is_a_direction_and_held_out_text_everywhere(open_page: Any):
    records = fake_texts.records()
    tab = open_page(records)
    for figure in tab.locator(".panel").all():
        metric = figure.get_attribute("data-metric")
        directed = metric in ("mauve", "replay_bpb")
        assert figure.locator(".front").count() == directed
        labels = figure.locator("text.label").all_text_contents()
        assert "AR" in labels
        held = records[0]["metrics"].get(metric)
        assert figure.locator(".mark-line").count() == (held is not None)
        if held:
            assert f"held-out text {held['value']:.3f}" in labels
    bounded = [r for r in records if r["sampler"].startswith("random")]
    for record in bounded:
        if "replay_bpb" in record["metrics"]:
            record["metrics"]["replay_bpb"]["bound"] = True
    again = open_page(records)
    figure = again.locator(".panel[data-metric='replay_bpb']")
    assert figure.locator(".front").count() == 0  # a bound may or may not be beaten
    assert "AR" in figure.locator("text.label").all_text_contents()
    spoken = again.locator("[data-metric='replay_bpb'] .point[aria-label*='replay']")
    said = spoken.evaluate_all("(marks) => marks.map((mark) => mark.getAttribute('aria-label'))")
    told = [words for words in said if "replay bits/byte ≤ " in words]
    assert len(told) == 4 and all(words.startswith("random") for words in told)
    # The level line is where a point of that value would be: between AR's and the others'.
    script = """(metric) => {
        const figure = document.querySelector(`.panel[data-metric="${metric}"]`);
        const at = (p) => +p.getAttribute("transform").match(/ ([-\\d.]+)\\)/)[1];
        return [+figure.querySelector(".mark-line").getAttribute("y1"),
                ...[...figure.querySelectorAll(".point path")].map(at)];
    }"""
    level, *points = tab.evaluate(script, "own_bpb")
    assert all(level > point for point in points)  # own_bpb of held-out text is the lowest


def test_samplers_can_be_toggled(open_page: Any):
    tab = open_page(small(modes=1))
    chip = tab.get_by_role("button", name="bisection order 4", exact=True)
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert len(positions(tab)) == len(positions(tab, "mauve")) == len(SOME) - 1
    tab.locator("button[data-family]", has_text="bisection").click()
    assert len(positions(tab)) == 2
    tab.locator("button[data-family]", has_text="AR").click()
    tab.locator("button[data-family]", has_text="random").click()
    hidden = tab.get_by_text("Every sampler of this figure is hidden.")
    assert hidden.count() == 8
    tab.get_by_role("button", name="Show all").click()
    assert len(positions(tab)) == len(SOME)


def test_points_speak_all_their_numbers(open_page: Any):
    records = small(modes=1)
    tab = open_page(records)
    tip = tab.locator("#tip")
    first = tab.locator(".panel[data-metric='mauve'] .point[tabindex='0']")
    first.focus()
    words = tip.inner_text()
    name = words.splitlines()[0]
    spec = next(s for s in SOME if name == f"bisection order {s[-2]}" and "bisection" in s)
    held = next(r for r in records if r["sampler"] == spec)["metrics"]
    mauve, replay = held["mauve"], held["replay_bpb"]
    assert f"MAUVE {mauve['value']:.3f} ± {1.96 * mauve['se']:.3f} (n = 256)" in words
    assert f"replay bits/byte {replay['value']:.3f} ± {1.96 * replay['se']:.3f} (n = 512)" in words
    *_, counted, options = words.splitlines()
    assert counted == "n = 1,024; ± half of a 95 % interval" and options.startswith("as options: ")
    assert len(words.splitlines()) == 1 + len(held) + 2
    tab.keyboard.press("ArrowRight")
    assert tip.inner_text() != words
    tab.keyboard.press("Escape")
    assert not tip.is_visible()
    tab.locator(".panel .point path").nth(1).hover()
    assert tip.is_visible()


def test_zoom_scale_and_size_redraw(open_page: Any):
    tab = open_page(small(modes=1))
    log = positions(tab, "mauve")
    tab.get_by_text("linear", exact=True).click()
    assert positions(tab, "mauve") != log
    tab.get_by_text("log", exact=True).click()
    tab.evaluate("document.querySelector('.panel').scrollIntoView({block: 'center'})")
    box = tab.locator(".plot svg").first.bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 8)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.98, box["y"] + box["height"] * 0.6, steps=4)
    tab.mouse.up()
    reset = tab.locator(".panel .reset").first
    assert reset.is_visible() and len(positions(tab, "mauve")) == 1  # AR
    reset.click()
    assert len(positions(tab, "mauve")) == len(SOME)
    tab.get_by_role("button", name="Enlarge").first.click()
    assert tab.locator(".plot svg").first.bounding_box()["width"] > 2 * box["width"]


def test_choosing_a_setting_or_a_number_changes_the_text(open_page: Any):
    records = small()
    tab = open_page(records)
    texts = {r["sampler"]: r["texts"] for r in records if r["mode"] == "exact"}
    left, right = (tab.locator(f"#text-{side} .text") for side in ("left", "right"))
    assert left.inner_text() == texts["left_to_right()"][0]
    assert right.inner_text() == texts["bisection(order=1)"][0]  # the lower of two in the middle
    tab.get_by_label("Right").select_option(label="random ×8")
    assert right.inner_text() == texts["random(block=8)"][0]
    assert tab.locator("#text-right h3").inner_text().lower() == "random ×8"
    tab.get_by_label("Left").select_option(label="held-out text")
    assert left.inner_text() == texts["held_out"][0]
    tab.locator("#texts fieldset").get_by_text("3", exact=True).click()
    assert left.inner_text() == texts["held_out"][2]
    assert right.inner_text() == texts["random(block=8)"][2]
    tab.get_by_text("top-p 0.9 †", exact=True).first.click()  # a choice once made stays
    assert tab.locator("#text-right h3").inner_text().lower() == "random ×8†"
    assert right.inner_text() not in texts["random(block=8)"]


def test_hostile_text_is_shown_as_it_is(open_page: Any):
    records = [r | {"texts": [EVIL], "notes": [EVIL]} for r in small()]
    tab = open_page(records)
    assert tab.locator("#text-left .text").inner_text() == EVIL
    assert tab.locator("img").count() == tab.locator("#texts b").count() == 0
    assert tab.evaluate("window.hit") is None


def test_the_table_sorts(open_page: Any):
    tab = open_page(fake_texts.records(modes=1))
    tab.locator("#tables details.more summary").click()  # the front is shown, all rows are folded
    table = tab.locator("#tables table").last
    rows = table.locator("tbody tr")
    assert rows.nth(0).locator("th").inner_text() == "held-out text"
    assert rows.nth(1).locator("th").inner_text().strip() == "AR"
    table.get_by_role("button", name="MAUVE", exact=True).click()
    cells = table.locator("tbody td:nth-child(3)").all_inner_texts()
    shown = [float(text.split()[0]) for text in cells if text != "–"]
    assert shown == sorted(shown, reverse=True) and shown[0] > shown[-1]
    assert set(cells[len(shown) :]) == {"–"}


def test_themes_paper_and_narrow_screens(open_page: Any):
    tab = open_page(fake_texts.records(), color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(colour)
    tab.get_by_text("light", exact=True).click()
    assert tab.evaluate(colour) != dark
    sides = [tab.locator(f"#text-{side}").bounding_box() for side in ("left", "right")]
    assert sides[0]["y"] == sides[1]["y"]
    for width in (500, 380):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    sides = [tab.locator(f"#text-{side}").bounding_box() for side in ("left", "right")]
    assert sides[0]["x"] == sides[1]["x"] and sides[0]["y"] < sides[1]["y"]
    tab.emulate_media(media="print")
    assert tab.evaluate(colour) == "rgb(255, 255, 255)"
    assert not tab.locator("#modes").is_visible() and tab.locator("#legend .families").is_visible()
    assert tab.locator("#text-left .text").is_visible()


@pytest.mark.parametrize("kind", ["single", "held out alone", "null", "no texts", "partial"])
def test_thin_records_still_make_a_page(open_page: Any, kind: str):
    one = fake_texts.record()
    records = {
        "single": [one],
        "held out alone": [fake_texts.record("held_out")],
        "null": [one | {"metrics": dict.fromkeys(one["metrics"])}],
        "no texts": [one | {"texts": None}],
        "partial": [r for r in small() if r["mode"] == "exact" or r["sampler"] != SOME[1]],
    }[kind]
    tab = open_page(records)
    assert tab.locator("#texts").count() == tab.locator("nav [href='#texts']").count()
    assert tab.locator("#texts").count() == (kind != "no texts")
    if kind == "held out alone":
        assert "nothing to draw" in tab.locator("#figures").inner_text()
    if kind == "null":
        assert tab.get_by_text("These records hold nothing to draw.").is_visible()
    if kind == "partial":
        tab.get_by_label("Left").select_option(label="random ×8")
        tab.get_by_text("top-p 0.9 †", exact=True).first.click()
        assert "Not run in this mode." in tab.locator("#text-left").inner_text()
