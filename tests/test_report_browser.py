"""The report's page in a real browser, opened from disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from maskwalk.decoding.draw import decoding_in
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.budgets import front_samplers
from tests import fake_records
from tests.fake_records import SOME, reproduction, small
from tests.test_report_budgets import crowd
from tests.test_report_losses import NAMES, lost


@pytest.fixture
def open_page(visit: Any, tmp_path: Path) -> Any:
    """Opens the page of some records from disk."""

    def opened(
        records: list[dict[str, Any]], losses: Sequence[dict[str, Any]] = (), **options: Any
    ) -> Any:
        (path,) = write_report(records, tmp_path, losses=losses)
        return visit(path, **options)

    return opened


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
    assert (
        tab.locator("table:visible caption")
        .first.inner_text()
        .endswith("(network · exact; n = 512)")
    )


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
    tab.locator("table.sortable").first.get_by_role("button", name="coherence").click()
    cells = tab.locator("table.sortable").first.locator("tbody td:nth-child(3)")
    shown = [float(text.split()[0]) for text in cells.all_inner_texts()]
    assert shown == sorted(shown, reverse=True) and shown[0] > shown[-1]
    tab.locator("#trace-sampler").select_option(label="random ×2")
    tokens = records[1]["trace"]["tokens"]
    assert f"first impossible step: {tokens[4]} → {tokens[5]}" in tab.locator("#trace").inner_text()
    assert tab.locator("#trace .wrong").count() == tab.locator("#trace .late-wrong").count() == 1
    tab.locator(".strip", has_text="bisection").click()
    assert "bisection: 5 rounds" in tab.locator("#trace").inner_text()


def test_a_trace_that_nobody_can_check_makes_no_claim(open_page: Any):
    records = small(modes=1, tasks=1, graphs=1)
    for record in records:
        record["trace"]["valid"] = None
    tab = open_page(records)
    words = tab.locator("#trace").inner_text()
    assert "sequence" in words and "possible" not in words
    assert tab.locator("#trace .wrong").count() == tab.locator("#strips .wrong").count() == 0
    assert "nobody can check it" in tab.locator(".strip").first.get_attribute("aria-label")


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
    drawn = tab.locator("[data-metric='tv1']").count()
    assert drawn == {"single": 1, "partial": 2}.get(kind, 0)
    assert tab.locator("#figures2").count() == (kind == "partial")  # one panel: one section
    assert tab.locator("#modes").count() == (kind == "partial")
    for name in ("traces", "swaps", "series", "budgets", "losses"):
        links = tab.locator(f"nav [href='#{name}']").count()
        assert links == tab.locator(f"#{name}").count()
    assert tab.locator("#traces").count() == (kind in ("single", "partial"))
    if kind == "partial":
        tab.get_by_text("network · exact", exact=True).first.click()
        assert tab.get_by_text("Not measured in this mode.").first.is_visible()


def test_on_a_phone_a_swap_is_two_lines_across(open_page: Any):
    tab = open_page(reproduction())
    tab.set_viewport_size({"width": 390, "height": 800})
    boxes = tab.evaluate(
        """[...document.querySelectorAll(".swaps tbody tr")].filter(r => r.offsetWidth).map(
            r => [...r.cells].map(c => c.getBoundingClientRect()).map(
                b => [b.left, b.top, b.right, b.bottom]))"""
    )
    assert boxes
    for here, there, task, places, p in boxes:
        assert here[1] == there[1] and here[2] <= there[0] and there[2] <= 390
        assert here[2] - here[0] > 160 and there[2] - there[0] > 160
        assert task[1] >= max(here[3], there[3]) and places[1] == p[1] >= task[3]


def test_a_table_that_is_all_folded_stands_alone(open_page: Any):
    tab = open_page(reproduction())
    lone = """[...document.querySelectorAll(".tables > .scroll")].filter(
        t => t.offsetWidth && t.querySelector(":scope > .alike + .more")).map(
        t => t.offsetWidth / t.parentElement.offsetWidth)"""
    shares = tab.evaluate(lone)
    assert shares and min(shares) > 0.99


def points(tab: Any, figure: str) -> int:
    return tab.locator(f"{figure} .point").count()


def test_lines_against_a_parameter_follow_the_switch_and_the_legend(open_page: Any):
    tab = open_page(reproduction(SOME))
    bridges, order = "[data-series='0']", "[data-series='2']"
    assert tab.locator("#series .panel").count() == 5
    assert points(tab, bridges) == 3 * len(SOME) and tab.locator(f"{bridges} .error").count() > 0
    assert (
        tab.locator(order).get_by_text("Not measured in this mode.").is_visible()
    )  # no oracle there
    path = f"{bridges} .series-line"
    before = [tab.locator(path).nth(i).get_attribute("d") for i in range(len(SOME))]
    tab.get_by_text("network · exact", exact=True).first.click()
    after = [tab.locator(path).nth(i).get_attribute("d") for i in range(len(SOME))]
    assert before != after
    assert points(tab, order) == 2 * 8 + 2  # two lines over eight orders, two level lines
    assert tab.locator(f"{order} .mark-line").count() == 2
    assert tab.locator(f"{order} .mark-name").all_text_contents() == ["4", "5"]
    assert tab.locator(f"{order} .level").count() == 2
    tab.get_by_role("button", name="bisection order 3", exact=True).click()
    assert points(tab, order) == 2 * 8 + 1
    tab.locator("button[data-family]", has_text="guided bisection").click()
    assert points(tab, order) == 8 + 1
    tab.locator(f"{order} .point").last.focus()
    words = tab.locator("#tip").inner_text()
    assert "memory order" in words and "coherence" in words and "±" in words
    tab.locator(f"{bridges} .point path").first.hover(force=True)  # equal points cover each other
    assert "bridges b 1" in tab.locator("#tip").inner_text()
    calls = tab.locator("[data-series='1'] .series-line").first.get_attribute("d")
    tab.get_by_text("linear", exact=True).click()
    assert tab.locator("[data-series='1'] .series-line").first.get_attribute("d") != calls


def test_the_papers_value_is_beside_ours_and_tells_the_difference(open_page: Any):
    tab = open_page(reproduction(SOME, 1))
    cell = tab.locator("#tables td .paper").first
    assert cell.is_visible() and "combined standard errors" in cell.get_attribute("title")
    tab.locator(".panel[data-metric='coherence'] .point[tabindex='0']").first.focus()
    assert "paper " in tab.locator("#tip").inner_text()


def test_a_click_on_a_point_copies_its_decoding_as_options(open_page: Any):
    records = small(modes=1)
    tab = open_page(records)
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    point = tab.locator(".panel[data-metric='coherence'] .point path").first
    point.hover(force=True)
    shown = tab.locator("#tip").inner_text().splitlines()
    (line,) = (text.removeprefix("as options: ") for text in shown if text.startswith("as options"))
    assert line in {decoding_in(record) for record in records}
    point.click(force=True)
    tab.wait_for_function("document.querySelector('#tip').innerText.includes('copied: ')")
    assert tab.evaluate("navigator.clipboard.readText()") == line


def test_a_third_world_is_drawn_with_its_own_metric(open_page: Any):
    tab = open_page(fake_records.coins())
    assert [f.get_attribute("data-metric") for f in tab.locator("#figures .panel").all()] == [
        "coherence",
        "heads",
    ]
    assert points(tab, "[data-metric='heads']") == len(SOME)
    tab.locator("[data-metric='heads'] .point").first.focus()
    words = tab.locator("#tip").inner_text()
    assert "heads shown " in words and " ± 0.10" in words  # its own title and digits
    assert "n = 256; ± half of a 95 % interval" in words
    assert tab.locator("#budgets tbody tr").count() == 1
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=5_000)


@pytest.mark.parametrize("records", [[], small(modes=1)], ids=["alone", "with records"])
def test_losses_draw_bars_and_a_round_tells_its_positions(open_page: Any, records: Any):
    rows = lost()
    tab = open_page(records, losses=rows)
    bars = tab.locator("[data-view='bars'] .loss-row")
    assert bars.count() == len(NAMES)
    for row in bars.all():
        assert row.locator(".dependence").count() == row.locator(".denoiser").count() == 1
    # Least loss first, and the widths of the two parts add up in proportion to the nats.
    losses = sorted(rows, key=lambda r: r["kl"])
    shown = tab.evaluate(
        """() => [...document.querySelectorAll("[data-view='bars'] .loss-row")].map(
        (row) => ["dependence", "denoiser"].map(
        (part) => +row.querySelector("." + part).getAttribute("width")))"""
    )
    scale = sum(shown[-1]) / (losses[-1]["dependence"] + losses[-1]["denoiser"])
    for (one, two), row in zip(shown, losses):
        assert one == pytest.approx(scale * row["dependence"], abs=0.5)
        assert two == pytest.approx(scale * row["denoiser"], abs=0.5)
    assert points(tab, "[data-view='curves']") == sum(len(row["rounds"]) for row in rows)
    tip = tab.locator("#tip")
    bars.filter(has_text="random ×2").click()
    row = next(r for r in rows if r["sampler"] == "random(block=2)")
    rounds = tab.locator("[data-view='rounds'] .round")
    assert rounds.count() == 4
    rounds.nth(1).hover()
    together = [i for i, r in enumerate(row["example"]["rounds"]) if r == 1]
    cost = sum(row["example"][part][i] for part in ("dependence", "denoiser") for i in together)
    words = tip.inner_text()
    assert words.startswith("random ×2, round 2")
    assert f"example: positions {together[0]}, {together[1]} together, cost" in words
    assert float(words.split("together, cost ")[1].split()[0]) == pytest.approx(cost, abs=6e-3)
    assert "dependence" in words and "% of sequences" in words
    tab.locator("[data-view='curves'] .point path").first.hover(force=True)
    assert ", round " in tip.inner_text()
    bars.first.focus()
    tab.keyboard.press("ArrowDown")
    assert "KL" in tip.inner_text()
    name = tab.locator("button[data-family]", has_text="entropy")
    name.click()
    assert tab.locator("[data-view='bars'] .loss-row").count() == len(NAMES) - 1
    tab.locator("#losses summary").click()
    assert tab.locator("#losses table tbody tr").count() == len(NAMES)
    tab.set_viewport_size({"width": 400, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_crowd_is_toggled_by_rule_and_its_front_stands_out(open_page: Any):
    tab = open_page(crowd())
    figure = ".panel[data-panel='0'][data-metric='coherence']"
    assert points(tab, figure) == 61
    # Up to 5 calls some blocks of random are on the front, then bisection, at 24 calls entropy.
    study = arrange(crowd())
    front = front_samplers(study, 0, [0])
    drawn = tab.locator(f"{figure} .point:not(.behind)")
    assert {int(p.get_attribute("data-s")) for p in drawn.all()} == front and len(front) > 4
    labels = tab.locator(f"{figure} text.label").all_text_contents()
    assert {"bisection", "entropy"} <= set(labels)
    chip = tab.get_by_role("button", name="random ×2", exact=True)
    assert not chip.is_visible()
    tab.get_by_role("button", name="Choose settings").click()
    chip.click()
    assert points(tab, figure) == 60
    tab.get_by_role("button", name="Hide all").click()
    assert tab.locator(figure).get_by_text("Every sampler of this figure is hidden.").is_visible()
    tab.locator("button[data-family]", has_text="bisection").click()
    assert points(tab, figure) == 1
    tab.get_by_role("button", name="Only the fronts").click()
    either = len(front_samplers(study, 0, [0, 1]))
    assert either > len(front)  # on the other graph random ×1 is the best at 24 calls
    assert points(tab, figure) == either
    tab.get_by_role("button", name="Show all").click()
    assert points(tab, figure) == 61
    rows = tab.locator("#tables table:visible tbody tr")
    assert rows.count() == either
    tab.locator("#tables summary").click()
    assert rows.count() == either + 61
    assert tab.locator("#budgets tbody tr").count() == 2
    tab.set_viewport_size({"width": 400, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
