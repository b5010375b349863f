"""Progress where nobody watches: plain lines in a log file, and what a terminal gets."""

import io
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, TextColumn

import maskwalk
from maskwalk.bench import bars
from maskwalk.bench.bars import Bars
from maskwalk.cli.common import progress
from maskwalk.cli.waiting import at_work
from maskwalk.training import logs


def said(seconds: float = 0.0, terminal: bool = False, **options: Any) -> str:
    """What is written while one of three things is done and takes so long."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    with Bars(TextColumn("{task.description}"), BarColumn(), console=console, **options) as some:
        task = some.add_task("work     ", total=3)
        some.advance(task)
        time.sleep(seconds)
        some.advance(task, 2)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_one_slow_cell_does_not_turn_the_time_left_over() -> None:
    now = 0.0
    some = Bars(console=Console(file=io.StringIO()))
    some.get_time = lambda: now
    task = some.add_task("cells", total=100)
    for seconds in [1.0] * 40 + [40.0]:
        now += seconds
        some.advance(task)
    assert some.tasks[0].time_remaining == pytest.approx(59 * 79 / 40, rel=0.05)


def test_a_log_file_gets_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "FIRST", 0.1)
    *lines, last = said(0.5).splitlines()
    assert 2 <= len(lines) <= 3  # after 0.1, 0.2 and 0.4 s
    assert set(lines) == {"work: 1/3, 0 s"}
    assert last.startswith("work: 3/3, ") and "left" not in last
    assert said(0.5, transient=True).count("\n") in (2, 3)  # no last line
    assert said(0.5, shown=False) == ""


def test_what_is_run_meanwhile_prints_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`audit` looks at what a decoder prints."""
    monkeypatch.setattr(bars, "FIRST", 0.1)
    with progress() as some, redirect_stderr(io.StringIO()) as seen:
        some.add_task("checks", total=3)
        time.sleep(0.3)
    assert seen.getvalue() == ""


def test_quick_work_says_only_that_it_is_done() -> None:
    assert said() == "work: 3/3, 0 s\n" and said(transient=True) == ""


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "FIRST", 0.1)
    assert "\x1b" in said(0.3, terminal=True) and "work: " not in said(0.3, terminal=True)


def test_work_of_unknown_length_says_how_long_it_has_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "FIRST", 0.1)
    with at_work("report"):
        time.sleep(0.35)
    assert set(capsys.readouterr().err.splitlines()) == {"report: 0 s"}


SMALL = ("--count", "8")
LONG = {
    "sample": ("sample", "--sampler", "entropy(block=1)", "--task", "endpoints"),
    "diagnose": ("diagnose", "--samplers", "bisection;entropy(block=1)", *SMALL),
    "bench": ("bench", "{file}", "--out", "{out}"),
    "generate": ("generate", "--denoiser", "zoo:books_mdm", "--length", "32"),
    "tune": (
        "tune",
        "--denoiser",
        "zoo:st_er_p0",
        "--samplers",
        "bisection",
        "--calls",
        "8",
        *SMALL,
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_commands_in_a_log_file(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Lines of words and numbers, no control characters."""
    monkeypatch.setattr(bars, "FIRST", 0.02)
    file = tmp_path / "some.toml"
    file.write_text(
        'samplers = ["entropy(block=1)"]\ntasks = ["unconditional"]\ncount = 512\n'
        '[[worlds]]\ntitle = "a"\nworld = "latin(n=4)"\n'
    )
    places = {"file": str(file), "out": str(tmp_path / "run")}
    code, _, err = cli(*(word.format(**places) for word in LONG[name]))
    assert code == 0, err
    assert [line for line in err.splitlines() if " s" in line and "/" in line], err
    assert "\x1b" not in err and "\r" not in err and "━" not in err


def test_training_writes_lines_between_checkpoints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = logs.Log(tmp_path, [], 100, 0, True, {})
    log.jobs = []
    log.losses(10, [1.0])
    assert capsys.readouterr().err == ""
    now = log.begun
    for seconds, lines in ((11, 1), (19, 0), (23, 1), (60, 1), (90, 0)):
        monkeypatch.setattr("time.monotonic", lambda at=now + seconds: at)
        log.losses(20, [1.0])
        err = capsys.readouterr().err
        assert err.count("\n") == lines and "\r" not in err and (not lines or "20/100" in err)


def test_a_run_in_python_shows_its_progress_if_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "FIRST", 1e-4)
    monkeypatch.setattr(bars, "LAST", 1e-4)
    options: dict[str, Any] = {"world": "sudoku(box=2)", "count": 256}
    one = maskwalk.run("entropy(block=1)", **options)
    assert capsys.readouterr().err == ""
    shown = maskwalk.run("entropy(block=1)", progress=True, **options)
    assert "positions: " in capsys.readouterr().err
    assert shown.tokens.equal(one.tokens)
    maskwalk.run(["entropy(block=1)"], progress=True, **options)
    assert "/4,096, " in capsys.readouterr().err  # of 256 grids of 16 cells
