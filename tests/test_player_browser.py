"""The player in a real browser: rounds, keys, the address, the broken step, narrow and dark."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk.bench.cell import Cell
from maskwalk.bench.reels import Change, Guess, Reel, record_reel
from maskwalk.report.player.page import play_page
from maskwalk.worlds.world import build_world

WALK = "walk(graph=st_er(nodes=30, p=0.03), law=lazy(stay=0.2), length=10)"


def cell(sampler: str, world: str = WALK, task: str = "endpoints") -> Cell:
    return Cell.checked(world=world, task=task, sampler=sampler, count=1)


@pytest.fixture
def open_player(visit: Any, tmp_path: Path) -> Callable[..., Any]:
    """Opens the page of some samplers, or of reels made by hand."""

    def opened(*samplers: str | Reel, world: str = WALK, task: str = "endpoints", **options: Any):
        reels = [
            record_reel(cell(one, world, task)) if isinstance(one, str) else one for one in samplers
        ]
        path = tmp_path / "play.html"
        path.write_text(play_page(cell("bisection", world), build_world(world), reels, "a command"))
        tab = visit(path, **({"reduced_motion": "reduce"} | options))
        if "reduced_motion" not in options:
            tab.keyboard.press("Home")  # it opens on the last round
        return tab

    return opened


def masked(tab: Any, pane: int = 0) -> int:
    return tab.locator(".pane").nth(pane).locator(".tile-of.masked").count()


def test_panes_go_in_step_and_the_address_remembers(open_player: Any) -> None:
    tab = open_player("bisection", "random(block=2)")
    assert [masked(tab, 0), masked(tab, 1)] == [8, 8]
    tab.keyboard.press("ArrowRight")
    assert [masked(tab, 0), masked(tab, 1)] == [7, 6]
    assert tab.locator(".pane").nth(1).locator(".tile-of.new").count() == 2
    tab.get_by_role("button", name="One round on").click()
    assert [masked(tab, 0), masked(tab, 1)] == [5, 4] and tab.url.endswith("#round=2")
    tab.keyboard.press("ArrowLeft")
    assert [masked(tab, 0), masked(tab, 1)] == [7, 6]
    tab.keyboard.press("End")
    assert [masked(tab, 0), masked(tab, 1)] == [0, 0]
    tab.keyboard.press("+")
    assert tab.url.endswith("#round=4&speed=2")
    tab.reload()
    assert tab.locator(".deck output").inner_text() == "round 4 of 4" and masked(tab) == 0
    assert tab.locator(".deck select").input_value() == "2"
    tab.keyboard.press("Home")
    slider = tab.get_by_role("slider")
    slider.fill("3")
    assert masked(tab, 1) == 2 and slider.get_attribute("aria-valuetext") == "round 3 of 4"


def test_it_plays_to_the_end_and_again(open_player: Any) -> None:
    tab = open_player("bisection")
    tab.locator(".deck select").select_option("8")
    tab.keyboard.press("Space")
    assert tab.get_by_role("button", name="Pause").count() == 1
    tab.get_by_role("button", name="Play").wait_for()
    assert masked(tab) == 0 and "round 4 of 4" in tab.locator(".deck").inner_text()
    tab.get_by_role("button", name="Play").click()
    assert masked(tab) == 8


def test_a_position_shows_its_probability_and_entropy(open_player: Any) -> None:
    tab = open_player("bisection")
    reel = record_reel(cell("bisection"))
    guess = reel.guesses[0][0]
    tile = tab.locator(".tile-of").nth(guess.position)
    assert tile.locator("b").inner_text() == str(guess.likeliest[0][0])
    assert float(tile.locator("small").inner_text()) == pytest.approx(
        guess.likeliest[0][1], abs=0.006
    )
    tile.hover()
    words = tab.locator("#tip").inner_text()
    assert "masked" in words and f"entropy {guess.nats:.2f} nats" in words
    most = max([g.nats for r in reel.guesses for g in r], default=0)
    height = float(tile.evaluate("(n) => n.style.getPropertyValue('--h')"))
    assert height == pytest.approx(guess.nats / most, abs=0.02)
    tab.keyboard.press("ArrowRight")
    (change,) = reel.rounds[0]
    tile = tab.locator(".tile-of").nth(change.position)
    assert tile.locator("b").inner_text() == str(change.token)
    tile.hover()
    assert "revealed in round 1" in tab.locator("#tip").inner_text()


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_page_plays_once_or_shows_the_last_round(open_player: Any, motion: Any) -> None:
    tab = open_player("bisection", reduced_motion=motion)
    if motion == "no-preference":
        assert tab.get_by_role("button", name="Pause").count() == 1 and masked(tab) > 0
        tab.locator(".deck select").select_option("8")
        tab.get_by_role("button", name="Play").wait_for()
    else:
        assert "#" not in tab.url  # nobody chose anything
    assert masked(tab) == 0 and tab.locator(".step.on").count() == 9
    tab.keyboard.press("Home")
    assert tab.url.split("#")[1].startswith("round=0")
    tab.reload()  # a link to the first round stays there
    assert masked(tab) == 8 and tab.get_by_role("button", name="Play").count() == 1


def test_a_tap_and_a_node_of_the_map_say_their_numbers(open_player: Any) -> None:
    tab = open_player("bisection", has_touch=True)
    tab.keyboard.press("End")
    tab.locator(".tile-of:not(.given)").first.tap()
    words = tab.locator("#tip").inner_text()
    assert all(word in words for word in ("position", "round", "probability", "entropy"))
    tab.locator(".told").first.tap()
    assert tab.locator("#tip").is_hidden()
    tab.locator(".node.on").first.hover()
    assert "position" in tab.locator("#tip").inner_text()


def test_breaks_are_told_in_sentences_and_colours_are_in_the_legend(open_player: Any) -> None:
    tab = open_player("random(block=8)", world="sudoku(box=2)", task="unconditional")
    told = []
    for _ in range(2):
        tab.keyboard.press("ArrowRight")
        told.append(tab.locator(".told span:not(.room)").inner_text())
    assert "is impossible, and so are" in " ".join(told) and "cannot be" not in " ".join(told)
    assert "filled in by the sampler" in tab.locator(".means").inner_text()
    assert tab.locator(".tile-of i >> visible=true").count() == 0  # no walk, no way
    tab = open_player("bisection(along='world')", world="addition(digits=2)", task="operands")
    assert "carried" in tab.locator(".means").inner_text()


def broken_reel() -> Reel:
    """A walk that stays on its path but for one step, drawn in two rounds."""
    law = build_world(WALK)
    tokens = law.sample(1, 3)[0].tolist()
    joined = law.graph.adjacency.toarray() > 0
    tokens[6:] = [next(n for n in range(30) if not joined[tokens[5]][n] and n != tokens[5])] * 4
    order = ([0, 5, 2], [1, 3, 4, 6, 7, 8, 9])
    rounds = tuple(tuple(Change(i, tokens[i], 0.5, 1.0) for i in part) for part in order)
    valid = tuple(i != 6 for i in range(10))
    return Reel("mine()", (None,) * 10, rounds, ((), ()), tuple(tokens), valid, 2, "factorised")


def mixed_reel(number: int) -> Reel:
    """A walk in another order: many steps that do not exist, from node to node of the picture."""
    law = build_world(WALK)
    walk = law.sample(1, number)[0]
    tokens = tuple(walk[[0, 5, 1, 6, 2, 7, 3, 8, 4, 9]].tolist())
    valid = tuple(law.valid(torch.tensor([tokens]))[0].tolist())
    rounds = (tuple(Change(i, tokens[i], 0.5, 1.0) for i in range(10)),)
    return Reel(f"mine({number})", (None,) * 10, rounds, ((),), tokens, valid, 1, "factorised")


def test_the_cross_of_a_broken_step_lies_on_no_node(open_player: Any) -> None:
    reels = [mixed_reel(number) for number in range(9)]
    tab = open_player(*reels)
    tab.keyboard.press("End")
    crosses = tab.evaluate(CROSSES)
    assert len(crosses) == sum(reel.valid.count(False) for reel in reels) > 40
    for x, y, nodes in crosses:
        assert all(math.hypot(x - u, y - v) > r + 10 for u, v, r in nodes)


CROSSES = """() => [...document.querySelectorAll(".cut.on")].map((cut) => {
  const nodes = [...cut.parentNode.querySelectorAll(".node")].map((node) => {
    const [x, y] = node.getAttribute("transform").match(/[-\\d.]+/g).map(Number);
    return [x, y, Number(node.querySelector("circle").getAttribute("r"))];
  });
  return [Number(cut.getAttribute("x")), Number(cut.getAttribute("y")) - 13, nodes];
})"""


def test_the_step_that_breaks_is_red_once_both_ends_are_there(open_player: Any) -> None:
    reel = broken_reel()
    tab = open_player(reel)
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".step.bad, .tile-of.bad").count() == 0
    tab.keyboard.press("ArrowRight")
    (step,) = tab.locator(".step.on.bad").all()
    red = tab.evaluate(
        "() => getComputedStyle(document.querySelector('.badge.bad')).getPropertyValue('color')"
    )
    assert step.evaluate("(n) => getComputedStyle(n).stroke") == red
    assert tab.locator(".step").nth(6).evaluate("(n) => n.classList.contains('bad')")
    assert tab.locator(".tile-of.bad").count() == 1 and tab.locator(".cut.on").count() == 1
    said = tab.locator(".told").inner_text()
    assert f"{reel.tokens[5]} → {reel.tokens[6]}: no such step" in said
    assert "One step of this walk does not exist." in said


def test_captions_say_what_the_sequence_came_to_and_keep_their_height(open_player: Any) -> None:
    for world, task, wanted in (
        (WALK, "endpoints", "Every step of this walk exists."),
        ("addition(digits=2)", "operands", "The sum is right."),
        ("latin(n=3)", "unconditional", "Every cell is possible."),
        ("dyck(length=6)", "unconditional", "Every token is possible."),
    ):
        tab = open_player("left_to_right", world=world, task=task)
        tops = set()
        for key in ("Home", *["ArrowRight"] * 12):
            tab.keyboard.press(key)
            tops.add(tab.locator(".deck").evaluate("(n) => n.getBoundingClientRect().y"))
        assert len(tops) == 1, world
        assert wanted in tab.locator(".told").inner_text()


def test_an_address_pasted_into_the_same_tab_is_followed(open_player: Any) -> None:
    tab = open_player("bisection", "random(block=2)")
    tab.evaluate("location.hash = '#round=3&speed=2'")
    tab.wait_for_function("document.querySelector('.deck output').textContent === 'round 3 of 4'")
    assert tab.locator(".deck select").input_value() == "2"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_coloured_cells_can_be_read(open_player: Any, scheme: str) -> None:
    """A contrast of 3:1 or more on every colour, new or not."""
    tab = open_player("bisection", world="potts", task="unconditional", color_scheme=scheme)
    tab.keyboard.press("End")
    tab.wait_for_timeout(500)
    found = tab.evaluate("""() => [...document.querySelectorAll(".cells .cell-of.on")].map((n) => {
        const s = getComputedStyle(n), canvas = document.createElement("canvas");
        const paint = canvas.getContext("2d", { willReadFrequently: true });
        return [s.color, s.backgroundColor].map((c) => {
            paint.fillStyle = c; paint.fillRect(0, 0, 1, 1);
            return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3); }); })""")

    def light(rgb: list[int]) -> float:
        parts = [v / 255 / 12.92 if v < 11 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for ink, ground in found:
        low, high = sorted((light(ink), light(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3, (ink, ground)


def text_stage() -> dict[str, Any]:
    """Tokens of very different widths, and one that was only expected."""
    names = {"0": "Incomprehensibilities", "1": " a", "2": "\n", "3": " of"}
    return {"kind": "text", "names": names}


def test_blanks_of_a_text_are_equally_wide_and_say_their_numbers(
    open_player: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The width of a blank must not tell the token that comes."""
    monkeypatch.setattr("maskwalk.report.player.page.stage_of", lambda *_: text_stage())
    ahead = tuple(Guess(i, 1.25, ((3, 0.4), (1, 0.25))) for i in range(3))
    rounds = ((Change(0, 0, 0.125, 2.0),), (Change(1, 1, 0.5, 1.0), Change(2, 2, 0.75, 1.0)))
    reel = Reel("mine()", (None,) * 3, rounds, (ahead, ahead[1:]), (0, 1, 2), None, 2, "exact")
    tab = open_player(reel)
    pieces = tab.locator(".prose .piece")
    widths = [pieces.nth(i).bounding_box()["width"] for i in range(3)]
    assert max(widths) - min(widths) < 0.5 and "ncomp" not in tab.locator(".prose").inner_text()
    assert pieces.nth(0).locator("rt").inner_text() == ".40"
    pieces.nth(0).hover()
    words = tab.locator("#tip").inner_text()
    assert "entropy 1.25 nats" in words and "likeliest: of .40, a .25" in words
    tab.keyboard.press("ArrowRight")
    assert pieces.nth(0).locator("span").inner_text() == "Incomprehensibilities"
    assert pieces.nth(0).locator("rt").inner_text() == ".13"
    assert tab.locator("#tip").is_hidden()  # it spoke of the round before
    tab.mouse.move(0, 0)
    pieces.nth(0).hover()
    assert "probability .13 when it was drawn" in tab.locator("#tip").inner_text()


def test_nodes_stand_where_the_layout_puts_them_and_steps_join_them(open_player: Any) -> None:
    tab = open_player(broken_reel())
    tab.keyboard.press("End")
    found = tab.evaluate("""() => {
        const data = JSON.parse(document.getElementById("data").textContent);
        const at = [...document.querySelectorAll(".node")].map((n) => [
            n.querySelector("text").textContent, n.getAttribute("transform").match(/[\\d.]+/g)]);
        const ends = [...document.querySelectorAll(".step.on")].map((n) => {
            const [a, b] = [n.getPointAtLength(0), n.getPointAtLength(n.getTotalLength())];
            return [a.x, a.y, b.x, b.y]; });
        return { stage: data.stage, at, ends }; }""")
    stage, tokens = found["stage"], broken_reel().tokens
    x, y = stage["places"][::2], stage["places"][1::2]
    at = {int(name): (float(place[0]), float(place[1])) for name, place in found["at"]}
    assert set(at) == set(tokens)
    first = stage["nodes"].index(tokens[0])
    for node, (left, top) in at.items():
        k = stage["nodes"].index(node)
        assert left - at[tokens[0]][0] == pytest.approx(x[k] - x[first], abs=0.1)
        assert top - at[tokens[0]][1] == pytest.approx(y[k] - y[first], abs=0.1)
    for i, (ax, ay, bx, by) in enumerate(found["ends"], 1):
        if tokens[i - 1] != tokens[i]:
            assert (ax, ay) == pytest.approx(at[tokens[i - 1]], abs=0.6)
            assert (bx, by) == pytest.approx(at[tokens[i]], abs=0.6)


def test_grids_sums_and_words_fill(open_player: Any) -> None:
    tab = open_player("random(block=8)", world="sudoku(box=2)", task="unconditional")
    tab.keyboard.press("End")
    cells = tab.locator(".cells .cell-of")
    reel = record_reel(cell("random(block=8)", "sudoku(box=2)", "unconditional"))
    assert cells.all_inner_texts() == [str(token + 1) for token in reel.tokens]
    assert tab.locator(".cells .bad").count() == list(reel.valid).count(False) > 0
    tab = open_player("bisection(along='world')", world="addition(digits=4)", task="operands")
    tab.keyboard.press("End")
    reel = record_reel(cell("bisection(along='world')", "addition(digits=4)", "operands"))
    digits = tab.locator(".sum .cell-of:not(.sign):not(.carry)").all_inner_texts()
    assert digits == [str(token) for token in reel.tokens]
    a, b, total = (int("".join(digits[i:j])) for i, j in ((0, 4), (4, 8), (8, 13)))
    assert a + b == total
    marks = [t == "1" for t in tab.locator(".carry:not(.sign)").all_inner_texts()]
    wanted = [(a % 10**k + b % 10**k) >= 10**k for k in range(1, 5)]
    assert marks == [*reversed(wanted), False]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone_and_follows_the_system(open_player: Any, scheme: str) -> None:
    tab = open_player("bisection", "random(block=4)", color_scheme=scheme)
    tab.set_viewport_size({"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    ink = tab.evaluate("getComputedStyle(document.body).color")
    assert (max(map(int, ink[4:-1].split(","))) > 128) == (scheme == "dark")
    deck = tab.locator(".deck").bounding_box()
    assert deck["y"] + deck["height"] <= 844 and deck["x"] >= 0
