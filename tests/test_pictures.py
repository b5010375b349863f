"""Traces in pictures: in the record, and in a terminal of 80 columns."""

import io
import json
import re
from functools import cache
from typing import Any

import pytest
import torch
from rich.console import Console

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.pictures import MOST_CHARACTERS, MOST_PICTURES, spread
from maskwalk.bench.records import Record
from maskwalk.report.frames import Frame, frames, parted
from maskwalk.report.pictures import in_rows
from maskwalk.report.sequence import sample_summary
from maskwalk.worlds.checks import broken_world
from maskwalk.worlds.world import build_world

SUDOKU = {"world": "sudoku(box=2)", "task": "clues(count=6)", "sampler": "entropy(block=2)"}
DYCK = {"world": "dyck(length=8)", "task": "unconditional", "sampler": "bisection"}
WALK = {
    "world": "walk(graph=st_er(nodes=9, p=0.3), law=lazy(stay=0.2), length=6)",
    "task": "unconditional",
    "sampler": "bisection",
}


@cache
def _ran(**place: Any) -> tuple[Record, tuple[str, ...]]:
    cell = Cell.checked(**{"count": 8, **place})
    record, decoded = run_cell(cell)
    world = build_world(cell.world)
    return record, tuple(world.show(tokens) for tokens in decoded.tokens[:4])


def record(**place: Any) -> Record:
    """A fresh copy of the record of a small cell."""
    return json.loads(json.dumps(_ran(**place)[0]))


def printed(renderable: Any, width: int = 80, colour: bool = False) -> str:
    console = Console(
        width=width,
        file=io.StringIO(),
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------- the record


def test_a_trace_holds_what_is_given_and_the_canvas_after_every_round():
    trace = record(**SUDOKU)["trace"]
    world = build_world("sudoku(box=2)")
    tokens, rounds = torch.tensor(trace["tokens"]), torch.tensor(trace["rounds"])
    assert trace["picture_rounds"] == list(range(-1, 5))
    for number, picture in zip(trace["picture_rounds"], trace["pictures"], strict=True):
        assert picture == world.show(tokens.where(rounds <= number, world.vocab_size))
    assert trace["pictures"][0].count("·") == 10 and "·" not in trace["pictures"][-1]


def test_a_denoiser_with_another_mask_is_drawn_the_same(monkeypatch: pytest.MonkeyPatch):
    class Other:
        def __init__(self, oracle: Any) -> None:
            self.oracle, self.score_grid = oracle, oracle.score_grid
            self.vocab_size, self.mask_id = oracle.vocab_size, oracle.mask_id + 3

        def __call__(self, tokens: Any, at: Any = None) -> Any:
            return self.oracle(tokens.clamp(max=self.oracle.mask_id), at)

    other = Other(build_world("sudoku(box=2)").oracle())
    monkeypatch.setattr("maskwalk.bench.cell._denoiser", lambda *_: other)
    again = run_cell(Cell.checked(**SUDOKU, count=8))[0]["trace"]
    assert again["pictures"] == record(**SUDOKU)["trace"]["pictures"]


def test_walks_have_no_pictures():
    assert set(record(**WALK)["trace"]) == {"tokens", "rounds", "entropy", "prob", "valid"}


def test_the_first_sequence_ends_with_its_own_last_round():
    cell = Cell.checked(**{**DYCK, "sampler": "threshold(tau=0.9)"}, count=16)
    for trace in (1, True):  # of the first sequence, and of all of them
        story = run_cell(cell, trace=trace)[0]["trace"]
        assert story["picture_rounds"][-1] == max(story["rounds"])
        assert "·" not in story["pictures"][-1]


def test_long_traces_keep_both_ends_and_an_even_choice():
    assert spread(1, 32) == [0] and spread(5, 32) == [0, 1, 2, 3, 4]
    assert spread(49, 9) == [0, 6, 12, 18, 24, 30, 36, 42, 48] and spread(100, 0) == [0, 99]
    many = record(world="dyck(length=48)", task="unconditional", sampler="left_to_right")["trace"]
    assert len(many["pictures"]) == len(many["picture_rounds"]) == MOST_PICTURES
    assert many["picture_rounds"][0] == -1 and many["picture_rounds"][-1] == 47
    steps = [b - a for a, b in zip(many["picture_rounds"], many["picture_rounds"][1:])]
    assert set(steps) <= {1, 2}
    strip = {"world": "potts(height=4, width=48)", "task": "unconditional"}
    large = record(**strip, sampler="random(block=8)", count=1, metrics=("calls",))
    pictures = large["trace"]["pictures"]
    assert 2 < len(pictures) < MOST_PICTURES
    assert sum(map(len, pictures)) <= MOST_CHARACTERS


@pytest.mark.parametrize("world", ["latin(n=3)", "addition(digits=2)", "hmm(length=4)"])
def test_a_world_that_says_it_draws_masks_draws_them(world: str):
    place = build_world(world)
    assert "shows_a_sequence" not in broken_world(place)
    show = place.show

    def forgetful(tokens: Any) -> str:
        assert int(tokens.max()) < place.vocab_size
        return show(tokens)

    try:
        place.show = forgetful  # type: ignore[method-assign]
        assert "shows_a_sequence" in broken_world(place)
    finally:
        del place.show


# ------------------------------------------------------------------------------- what is new


def marked(before: str, now: str) -> str:
    """The picture with what is new in braces."""
    return "".join(f"{{{p}}}" if i % 2 else p for i, p in enumerate(parted(before, now)))


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("2 · │ 1", "2 4 │ 1", "2 {4} │ 1"),
        ("· ·", "1 ·", "{1} ·"),
        ("1 2\n─┼─\n· ·", "1 2\n─┼─\n1✗3", "1 2\n─┼─\n{1}✗{3}"),  # the break fills a gap
        ("1 · 3 ·", "1 2✗3 4✗", "1 {2}✗3 {4}✗"),
        ("  · 2\n= 1 ·", "  1\n  3 2\n= 1✗·", "  1\n  {3} 2\n= 1✗·"),  # carries come on top
        ("(()·)", "(()✗])", "(()✗{]})"),  # the break pushes brackets aside
        ("· 11 ·", "7 11 ·", "{7} 11 ·"),
        ("· 3 ·", "11 ✗3 12", "{11} ✗3 {12}"),
        ("a · c", "((a b) c)", "((a {b}) c)"),  # a tree when it is whole
        ("((·· ··)", "((·· 11)", "((·· {11})"),
        ("((·· ··)", "(( 7 ··)", "(( {7} ··)"),
        ("5 ·", "· 5", "{·} {5}"),  # taken back
        ("░·", "░█", "░{█}"),
        ("a b", "a c d", "a c d"),  # nobody can say
    ],
)
def test_what_is_new_is_found_in_the_text(before: str, now: str, said: str):
    assert marked(before, now) == said
    assert "".join(parted(before, now)) == now and marked(now, now) == now


def test_the_first_round_is_compared_with_the_empty_canvas():
    first, *rest = frames(record(**DYCK)["trace"])
    assert first.title == "round 1" and len(first.parts[1]) == 1 and "·" in first.parts[0]
    titles = [frame.title for frame in frames(record(**SUDOKU)["trace"])]
    assert titles == ["given", *(f"round {i}" for i in range(1, 6))] and rest
    assert frames(record(**WALK)["trace"]) == []


def test_every_revealed_cell_is_new_once():
    trace = record(**SUDOKU)["trace"]
    given, *after = frames(trace)
    assert given.parts[1::2] == []
    for number, frame in enumerate(after):
        shown = [str(t + 1) for t, r in zip(trace["tokens"], trace["rounds"]) if r == number]
        assert [sign for part in frame.parts[1::2] for sign in part.split()] == shown


# ------------------------------------------------------------------------------- the terminal


def test_grids_stand_side_by_side_in_80_columns():
    said = printed(sample_summary(record(**SUDOKU), _ran(**SUDOKU)[1]))
    lines = said.split("Sequences:\n")[1].split("\n")
    assert all(len(line) <= 80 for line in said.split("\n"))
    grids = [text.split("\n") for text in _ran(**SUDOKU)[1]]
    for row, line in enumerate(lines[:5]):
        assert re.split(r" {3,}", line.strip()) == [grid[row].strip() for grid in grids]
    assert "Order of unmasking" not in said and "█" not in said
    heads = re.search(r"given +round 1 +round 2 +round 3 +round 4 +round 5", said)
    assert heads and said.count("given") == 1
    below = said[heads.start() :].split("\n")[1]
    assert below.count("│") == 6


def test_rows_of_pictures_wrap_with_a_line_between():
    wide = [Frame(f"round {i}", ["x" * 24 + "\n" + "y" * 24]) for i in range(4)]
    lines = [line.rstrip() for line in printed(in_rows(wide)).split("\n")]
    assert lines[0].split() == ["round", "0", "round", "1", "round", "2"]
    assert lines[1] == "  " + "   ".join(["x" * 24] * 3)  # 80 columns to the last
    assert lines[3] == "" and lines[4] == "  round 3"
    narrow = printed(in_rows(wide), width=79).split("\n")
    assert narrow[1].count("x") == 48
    far = [line.rstrip() for line in printed(in_rows(wide), width=20).split("\n")]
    assert far[1] == "  " + "x" * 18 and all(len(line) <= 20 for line in far)


def test_last_lines_align_where_a_picture_is_taller():
    two = [Frame("round 1", ["a\nb"]), Frame("round 2", ["1\na\nb"])]
    lines = [line.split() for line in printed(in_rows(two)).split("\n")[1:4]]
    assert lines == [["1"], ["a", "a"], ["b", "b"]]


def test_words_stand_one_a_row_with_the_round_in_front():
    said = printed(sample_summary(record(**DYCK), _ran(**DYCK)[1]))
    trace = record(**DYCK)["trace"]
    for number, picture in zip(trace["picture_rounds"], trace["pictures"]):
        assert (f"  round {number + 1}  {picture}" in said) == (number >= 0)
    assert "given" not in said


def test_what_is_new_is_bold_where_the_terminal_can():
    frame = Frame("round 1", parted("· 2", "1 2✗"))
    assert "\x1b[1;32m1\x1b[0m 2\x1b[1;31m✗" in printed(in_rows([frame]), colour=True)
    assert "\x1b" not in printed(in_rows([frame]))


def test_walks_and_text_are_summed_up_as_before():
    said = printed(sample_summary(record(**WALK), ["1 2", "3 4"]))
    assert "Order of unmasking of the first sequence (█ now, ░ before; positions):" in said
    assert "\n  1 2" in said and "\n  3 4" in said
    text = printed(sample_summary(record(**WALK), ["one\ntwo", "three\nfour"]))
    assert [line.strip() for line in text.split("Sequences:\n")[1].split("\n")[:4]] == [
        *("one", "two", "three", "four"),
    ]


def test_the_note_says_how_often_evidence_was_impossible():
    one = record(**DYCK)
    end = "the tokens so far fitted no sequence; the oracle then answers with every token alike."
    for times, said in ((1, f"Note: 1 time {end}"), (23, f"Note: 23 times {end}")):
        shown = " ".join(printed(sample_summary(one | {"impossible": times}, [])).split())
        assert shown.endswith(said)
    assert "Note: " not in printed(sample_summary(one | {"impossible": 0}, []))
    other = one | {"impossible": 5, "notes": ["float16 operands"]}
    assert printed(sample_summary(other, [])).rstrip().endswith("Note: Float16 operands.")
