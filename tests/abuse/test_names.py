"""Names with brackets, bytes that are no UTF-8, and outputs that are closed or full."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.abuse.case import TRACEBACK, Case, refused

SMALL = ("--graph", "st_er(nodes=12, p=0.1)", "--length", "6", "--count", "4")
BOOKS = ("generate", "--denoiser", "zoo:books_mdm")
ODD = "caf\udce9"  # the byte 0xe9, as it comes from a command line
LONG = "x" * 100_000
CASES = [
    Case("a sampler in brackets", ("sample", *SMALL, "--sampler", "[/x]"), "[/x]"),
    Case("a sampler of markup", ("sample", *SMALL, "--sampler", "[bold]x[/bold]"), "[bold]x"),
    Case("a sampler of half a tag", ("sample", *SMALL, "--sampler", "x[/"), "x[/"),
    Case("a sampler of bytes", ("sample", *SMALL, "--sampler", ODD), "caf\\udce9"),
    Case("a sampler of nothing", ("sample", *SMALL, "--sampler", ""), "Cannot read the spec ''"),
    Case("a sampler of 100,000 letters", ("sample", *SMALL, "--sampler", LONG), "Unknown sampler"),
    Case("a sampler of NUL", ("sample", *SMALL, "--sampler", "a\0b"), "Cannot read the spec"),
    Case("a sampler of lines", ("sample", *SMALL, "--sampler", "a\nb"), "Cannot read the spec"),
    Case("nested too deep", ("sample", *SMALL, "--sampler", "(" * 5000), "Cannot read the spec"),
    Case("minus signs", ("sample", *SMALL, "--sampler", f"r({'-' * 5000}1)"), "the spec"),
    Case("a world in brackets", ("sample", "--world", "[/x]"), "[/x]"),
    Case("a world of bytes", ("sample", "--world", ODD), "caf\\udce9"),
    Case("a graph of bytes", ("sample", "--graph", f"file(path='{ODD}')"), "Cannot read the spec"),
    Case("a graph in brackets", ("sample", "--graph", "file(path='[/x]')"), "[/x]"),
    Case("a task in brackets", ("sample", *SMALL, "--task", "x[/x]"), "[/x]"),
    Case("a draw in brackets", ("sample", *SMALL, "--draw", "[/x]"), "[/x]"),
    Case("a preset in brackets", ("sample", *SMALL, "--preset", "[/x]"), "[/x]"),
    Case("ties in brackets", ("sample", *SMALL, "--ties", "[/x]"), "[/x]"),
    Case("a device in brackets", ("sample", *SMALL, "--device", "[/x]"), "[/x]"),
    Case("a denoiser in brackets", ("sample", *SMALL, "--denoiser", "[/x]"), "[/x]"),
    Case("a denoiser of bytes", ("sample", *SMALL, "--denoiser", ODD), "caf\\udce9"),
    Case("an included file in brackets", ("sample", "--include", "[/x].py"), "[/x].py"),
    Case("an included file of bytes", ("sample", "--include", f"{ODD}.py"), "caf\\udce9.py"),
    Case("a file to evaluate in brackets", ("evaluate", "[/x].py:A"), "[/x].py"),
    Case("an experiment in brackets", ("bench", "[/x].toml", "--out", "o"), "[/x].toml"),
    Case("an experiment of bytes", ("bench", f"{ODD}.toml", "--out", "o"), "caf\\udce9.toml"),
    Case("a report in brackets", ("report", "{dir}/[/x]"), "[/x]"),
    Case("a kind in brackets", ("list", "[/x]"), "[/x]"),
    Case("a zoo model in brackets", ("sample", "--denoiser", "zoo:[/x]"), "[/x]"),
    Case("a file's name inside a file", ("sample", "--include", "m.py"), "x[/x]",
         {"m.py": "raise ValueError('x[/x]')"}, user_traceback=True),
]  # fmt: skip
TEXTS = [
    Case("half a character", (*BOOKS, "--prompt", "a \ud800 b"), "is no text"),
    Case("bytes in a prompt", (*BOOKS, "--prompt", ODD), "The prompt is no text"),
    Case("bytes in a template", (*BOOKS, "--template", f"{ODD} {{3}}"), "The template is no text"),
    Case("10^9 texts", (*BOOKS, "--count", "1000000000"), "of memory; this machine has"),
    Case("10^12 texts", (*BOOKS, "--count", "1000000000000"), "count must be a whole number"),
    Case("10^9 rows", (*BOOKS, "--rows", "1000000000"), "rows must be a whole number from 1"),
    Case("no rows", (*BOOKS, "--rows", "0"), "rows must be a whole number from 1"),
    Case("a gap of 10^9", (*BOOKS, "--template", "a {1000000000} b"), "a gap of the template"),
    Case(
        "a gap of 10^400", (*BOOKS, "--template", f"a {{{'9' * 400}}} b"), "a gap of the template"
    ),
    Case("a gap of 0", (*BOOKS, "--template", "a {0} b"), "a gap of the template"),
    Case("a length of 10^9", (*BOOKS, "--length", "1000000000"), "length must be a whole number"),
    Case("a seed of 2^64", (*BOOKS, "--seed", str(2**64)), "seed must be a whole number from 0"),
    Case(
        "a seed of -1",
        (
            *BOOKS,
            "--seed=-1",
        ),
        "seed must be a whole number from 0",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_odd_name_is_shown_as_it_is(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(case, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.name)
def test_texts_that_cannot_be(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra `language`")
    monkeypatch.setenv("MASKWALK_MEMORY", "16")
    refused(case, tmp_path, capsys, monkeypatch)


def run(words: tuple[str | bytes, ...], where: Path, **more: Any) -> "subprocess.CompletedProcess":
    command = [sys.executable, "-m", "maskwalk", *words]
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 120} | more
    return subprocess.run(command, cwd=where, check=False, **more)


def test_a_directory_of_brackets_and_bytes_works(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(
        'count = 4\nlength = 6\nsamplers = ["bisection"]\n'
        '[[graphs]]\ntitle = "A [/x] B"\ngraph = "st_er(nodes=12, p=0.1)"\nwalk = "lazy()"\n'
    )
    name = b"caf\xe9[/b]"
    done = run(("bench", "e.toml", "--out", name), tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / os.fsdecode(name) / "records.jsonl").exists()
    said = re.sub(rb"\s+", b"", done.stdout)
    assert b"A[/x]B" in said and b"caf\\udce9[/b]" in said


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(("list",), tmp_path, stdout=writing)
    os.close(writing)
    assert done.returncode in (0, 141) and done.stderr == b"", done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_output_is_a_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(("sample", *SMALL, "--json"), tmp_path, stdout=full)
    said = done.stderr.decode()
    assert done.returncode == 2 and "No space left on device" in said, said
    assert TRACEBACK not in said and "Exception ignored" not in said


def test_no_output_at_all(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m maskwalk list draws >&- 2>&-"
    assert subprocess.run(shell, shell=True, cwd=tmp_path, check=False).returncode in (0, 2)
