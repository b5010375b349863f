"""The player of a report, packed data, and the address: in a real browser where it matters."""

import json
import random
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.page import PACKED, TEMPLATES, data_block, page
from maskwalk.report.page_data import page_data
from tests.fake_records import data_of, small

WALK = "walk(graph=st_er(nodes=30, p=0.03), law=lazy(stay=0.2), length=10)"
SAMPLERS = ("bisection", "random(block=4)", "random(block=2)", "entropy(block=1)")


def ran(*samplers: str, world: str = WALK, task: str = "endpoints") -> list[Any]:
    cells = [Cell.checked(world=world, task=task, sampler=s, count=4) for s in samplers]
    return [run_cell(cell)[0] for cell in cells]


@pytest.fixture(scope="module")
def walks() -> list[Any]:
    return ran(*SAMPLERS)


def test_a_cast_has_every_family_before_a_second_setting(walks: list[Any]) -> None:
    data = page_data(arrange(walks))
    (cast,) = data["casts"]
    families = [data["samplers"][s]["family"] for s in cast["s"]]
    assert len(set(families[:3])) == 3 and len(cast["s"]) == 4
    assert data["samplers"][cast["s"][0]]["label"] == "bisection"
    (stage,) = cast["stages"]  # one map for all walks, so that panes can be compared
    walked = {token for cell in data["cells"] for token in cell["trace"]["tokens"]}
    assert stage["kind"] == "graph" and set(stage["nodes"][: stage["visited"]]) == walked


def test_what_was_evaluated_comes_first_beside_bisection(
    visit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more families than a cast has room for, one's own, which no table sorts first."""
    others = ("entropy(block=2)", "margin", "confidence", "left_to_right", "dus", "random")
    records = ran(*others, "bisection", "threshold(tau=0.3)", "halton(steps=4)")
    data = page_data(arrange(records))
    (cast,) = data["casts"]
    family = lambda s: data["samplers"][s]["spec"].split("(")[0]  # noqa: E731
    assert "first" not in cast and len(cast["s"]) == 6 and family(cast["s"][0]) == "bisection"
    (cast,) = page_data(arrange(records), own=["threshold"])["casts"]
    assert [family(s) for s in cast["s"]][:2] == ["threshold", "bisection"] and len(cast["s"]) == 6
    assert cast["first"] == cast["s"][:2]
    many = ["margin", "threshold", "dus", "random", "confidence", "entropy"]
    (cast,) = page_data(arrange(records), own=many)["casts"]
    assert [family(s) for s in cast["s"]] == [*many[:5], "bisection"]
    assert [family(s) for s in cast["first"]] == ["margin", "bisection"]
    assert "first" not in page_data(arrange(records), own=["none"])["casts"][0]
    (path,) = write_report(records, tmp_path, policies=["threshold"])
    tab = visit(path)
    panes = tab.locator("#player .pane h3")
    assert [panes.nth(i).get_attribute("title").split("(")[0] for i in range(panes.count())] == [
        "threshold",
        "bisection",
    ]


def test_walks_that_are_too_many_for_a_map_have_one_each(
    walks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = max(len(set(record["trace"]["tokens"])) for record in walks)
    monkeypatch.setattr("maskwalk.report.player.maps.MOST_VISITED", longest)
    data = page_data(arrange(walks))
    (cast,) = data["casts"]
    maps = dict(zip(cast["s"], cast["stages"], strict=True))
    for cell in data["cells"]:
        stage = maps[cell["s"]]
        assert set(stage["nodes"][: stage["visited"]]) == set(cell["trace"]["tokens"])


def test_a_grid_is_one_stage_for_all_and_text_has_none() -> None:
    data = page_data(arrange(ran("bisection", "random", world="latin(n=3)", task="unconditional")))
    ((stage,),) = [cast["stages"] for cast in data["casts"]]
    assert stage["kind"] == "grid" and stage["signs"] == ["1", "2", "3"]
    records = small(modes=1, tasks=1, graphs=1)
    for record in records:
        record["world"] = "text(source=None)"
    text = page(arrange(records))
    assert data_of(text)["casts"] == [] and 'id="watch"' not in text


def test_the_player_of_a_report_plays_its_traces(
    walks: list[Any], visit: Any, tmp_path: Path
) -> None:
    (path,) = write_report(walks, tmp_path)
    tab = visit(path)
    chips = tab.locator("#cast button")
    assert chips.count() == 4
    for i in range(4):
        if chips.nth(i).get_attribute("aria-pressed") == "false":
            chips.nth(i).click()
    assert tab.locator(".pane").count() == 4
    tab.locator("#player").focus()
    assert tab.locator(".deck output").inner_text().startswith("round 8 of")  # a still of the end
    tab.keyboard.press("Home")
    for number in range(1, 5):
        tab.keyboard.press("ArrowRight")
        for record in walks:
            pane = tab.locator(".pane").filter(has=tab.locator(f'h3[title="{record["sampler"]}"]'))
            rounds, tokens = record["trace"]["rounds"], record["trace"]["tokens"]
            words = pane.locator(".tile-of b").all_inner_texts()
            wanted = [str(t) if r < number else "·" for t, r in zip(tokens, rounds)]
            assert words == wanted, (record["sampler"], number)
    first = walks[0]["trace"]
    drawn = [i for i, r in enumerate(first["rounds"]) if r >= 0]
    shown = tab.locator(".pane").first.locator(".tile-of small").all_inner_texts()
    for i in drawn:
        assert float(shown[i].strip("✗<")) == pytest.approx(first["prob"][i], abs=0.01)
    assert "round=4" in tab.url
    chips.first.click()
    assert tab.locator(".pane").count() == 3


def test_the_address_holds_what_a_reader_chose(visit: Any, tmp_path: Path) -> None:
    (path,) = write_report(small(), tmp_path)
    tab = visit(path)
    tab.get_by_text("network · exact", exact=True).first.click()
    tab.get_by_text("linear", exact=True).click()
    tab.get_by_role("button", name="random ×2", exact=True).click()
    tab.get_by_text("dark", exact=True).click()
    tab.locator("nav a", has_text="Tables").click()
    tab.wait_for_function("location.hash.startsWith('#tables&mode=1')")
    words = tab.url.split("#")[1].split("&")
    assert {"tables", "mode=1", "scale=linear", "theme=dark"} <= set(words)
    before = tab.locator(".plot svg").first.inner_html()
    tab.reload()
    assert tab.locator(".plot svg").first.inner_html() == before
    chip = tab.get_by_role("button", name="random ×2", exact=True)
    assert chip.get_attribute("aria-pressed") == "false"
    assert tab.locator("#modes input:checked").get_attribute("value") == "1"
    assert tab.locator("#theme input:checked").get_attribute("value") == "dark"
    assert tab.evaluate("scrollY") > 400  # the section that the address names


def test_an_address_pasted_into_the_same_tab_is_followed(visit: Any, tmp_path: Path) -> None:
    (path,) = write_report(small(), tmp_path)
    tab = visit(path)
    tab.evaluate("location.hash = '#tables&mode=1&scale=linear&hide=0&theme=dark'")
    tab.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert tab.locator("#modes input:checked").get_attribute("value") == "1"
    assert tab.locator("#scale input:checked").get_attribute("value") == "linear"
    assert (
        tab.locator('[data-sampler][aria-pressed="false"]').count()
        + tab.locator('[data-family][aria-pressed="false"]').count()
    )
    tab.locator("nav a", has_text="Summary").click()  # a link within the page keeps it
    tab.wait_for_function("location.hash.startsWith('#summary') && /mode=1/.test(location.hash)")


def test_an_address_that_asks_for_nonsense_is_the_page(visit: Any, tmp_path: Path) -> None:
    (path,) = write_report(small(), tmp_path)
    tab = visit(path)
    tab.goto(f"{path.as_uri()}#mode=99&hide=x.900&panel=-1&round=1e9&theme=%3Cb%3E")
    tab.reload()
    assert tab.locator("#modes input:checked").get_attribute("value") == "0"
    assert tab.locator(".plot svg").count() == 6


def test_a_mode_without_traces_of_a_panel_shows_another(visit: Any, tmp_path: Path) -> None:
    """The menus hold the panels that the chosen mode has, so no choice leads nowhere."""
    records = small(modes=2)
    for record in records:
        if record["denoiser"] != "oracle" and record["title"] == "spanning tree":
            record["trace"] = None
    (path,) = write_report(records, tmp_path)
    tab = visit(path)
    assert "panning tree" in tab.locator("#trace-panel option:checked").inner_text()
    tab.locator("#modes label").nth(1).click()
    for menu in ("#trace-panel", "#watch-panel"):
        options = tab.locator(f"{menu} option").all_inner_texts()
        assert options and not any("panning tree" in words for words in options)
    assert tab.locator("#strips .strip").count() > 0 and tab.locator(".pane").count() > 0


# ------------------------------------------------------------------------------- packed data


def test_short_data_stay_readable_and_long_ones_are_packed() -> None:
    evil = "</script><script>alert(1)</script>"
    short, long = {"a": evil}, {"a": [f"{evil}{i}" for i in range(PACKED // 20)]}
    assert "data-packed" not in data_block(short) and data_of(data_block(short)) == short
    packed = data_block(long)
    assert "data-packed" in packed and data_of(packed) == long
    assert packed.count("<") == 2 and len(packed) < len(json.dumps(long)) / 4


def test_the_page_inflates_what_zlib_deflates(chromium: Any) -> None:
    """Stored, fixed and dynamic blocks, long matches, and text that is no ASCII."""
    draw = random.Random(0)
    texts = [
        "",
        "a",
        "walk " * 4000,
        "".join(chr(draw.randrange(32, 0x2FF)) for _ in range(3000)),
        json.dumps([draw.randrange(500) for _ in range(60_000)]),
    ]
    script = (TEMPLATES / "inflate.js").read_text("utf-8")
    cases = []
    for text in texts:
        for level, strategy in ((0, 0), (1, 0), (9, 0), (9, zlib.Z_FIXED)):
            press = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
            data = press.compress(text.encode()) + press.flush()
            cases.append((text, b64encode(data).decode()))
    tab = chromium.new_page()
    read = tab.evaluate(
        f"(all) => {{ {script}; return all.map((text) => unpacked("
        "{ dataset: { packed: '' }, textContent: text })); }",
        [packed for _, packed in cases],
    )
    tab.close()
    assert read == [text for text, _ in cases]


def test_a_packed_page_draws_the_same(
    monkeypatch: pytest.MonkeyPatch, visit: Any, tmp_path: Path
) -> None:
    records = small(modes=1, tasks=1)
    (path,) = write_report(records, tmp_path / "plain")
    plain = visit(path).locator(".plot svg").first.inner_html()
    monkeypatch.setattr("maskwalk.report.page.PACKED", 0)
    (path,) = write_report(records, tmp_path / "packed")
    assert "data-packed" in path.read_text("utf-8")
    assert visit(path).locator(".plot svg").first.inner_html() == plain
