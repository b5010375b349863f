"""Commands that no other table of bad input holds: tune, leaderboard, play, convert, verify, …"""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import maskwalk
from maskwalk.bench.cluster import connection
from maskwalk.errors import MaskwalkError
from tests.abuse.case import Case, refused

HUGE = str(10**8)
QUESTION = '{"prompt": "1 + 1 =", "answer": "2"}\n'
EXPERIMENT = """
name = "small"
count = 4
samplers = ["left_to_right"]
tasks = ["unconditional"]
[[graphs]]
title = "graph"
graph = "st_er(nodes=12, p=0.1)"
walk = "lazy(stay=0.5)"
length = 6
"""
SMALL = {"e.toml": EXPERIMENT}
TIED = "It is .5. <!-- verify: v.py:name key=a -->\n"
OPEN = "It is .5. <!-- verify: results/x\n"
ENDS = "raise SystemExit(0)\n"
LEAVES = f"def verify(name):\n    {ENDS}"
ROWS: list[tuple[str, str, dict[str, str]]] = [
    # the words, what is named, the files
    ("tune --denoiser nobody", "nobody", {}),
    ("tune --denoiser zoo:nobody", "nobody", {}),
    ("tune --denoiser oracle --seed -1", "seed", {}),
    ("tune --denoiser oracle --samplers bisectoin", "bisection", {}),
    ("tune --denoiser oracle --calls 0 --world latin(n=3)", "calls", {}),
    ("tune --denoiser oracle --judge hf:gpt2", "--judge", {}),
    ("tune --denoiser zoo:books_mdm --task endpoints", "it has no world and no task", {}),
    (f"tune --denoiser zoo:books_mdm --paths {HUGE}", "paths", {}),
    ("tune --denoiser zoo:books_mdm --written 0", "written", {}),
    ("leaderboard {dir}/none", "none", {}),
    ("leaderboard {dir} --cells -1", "cells", {}),
    ("leaderboard {dir} --cells 0", "cells", {}),
    ("leaderboard {dir}", "records.jsonl", {"records.jsonl": "no record\n"}),
    ("play --sampler bisectoin", "bisection", {}),
    ("play --sequence -1", "sequence", {}),
    ("play --seed -1", "seed", {}),
    ("play --world sudoku(box=0)", "box", {}),
    ("play" + "".join(f" --sampler random(block={n})" for n in range(1, 10)), "at most 8", {}),
    ("convert {dir}/none.ckpt {dir}/new", "none.ckpt", {}),
    ("convert {dir}/m.ckpt {dir}/new", "m.ckpt", {"m.ckpt": "no pickle"}),
    ("convert {dir} {dir}/new", "holds no pickled weights", {}),
    ("verify {dir}/none.md", "none.md", {}),
    ("verify {dir}/a.md", "nowhere", {"a.md": "It is .5. <!-- verify: results/nowhere -->\n"}),
    ("verify {dir}/a.md", "rm -rf", {"a.md": "It is .5. <!-- verify: `maskwalk rm -rf` -->\n"}),
    ("text score --denoiser zoo:addition {dir}/none.jsonl", "none.jsonl", {}),
    ("text score --denoiser zoo:addition {dir}/q.jsonl", "q.jsonl", {"q.jsonl": "not json\n"}),
    ("text score --denoiser zoo:addition {dir}/q.jsonl --count 0", "count", {"q.jsonl": QUESTION}),
    ("text score --denoiser zoo:addition {dir}/q.jsonl --new 0", "new", {"q.jsonl": QUESTION}),
    ("text score --denoiser zoo:addition {dir}/q.jsonl --seed -1", "seed", {"q.jsonl": QUESTION}),
    ("text consistency zoo:nobody", "nobody", {}),
    ("text consistency --orders 1", "orders", {}),
    (f"text consistency --orders {HUGE}", "orders", {}),
    ("text consistency --count 0", "count", {}),
    (f"text replay --paths {HUGE}", "paths", {}),
    ("text replay --paths 0", "paths", {}),
    ("bench {dir}/e.toml --out o --engine ray --address nope:1", "nope:1", SMALL),
    ("bench {dir}/e.toml --out o --engine ray --address nope", "HOST:PORT", SMALL),
    ("diagnose --engine ray --address 127.0.0.1:1", "127.0.0.1:1", {}),
    ("diagnose --samplers ;;", "--samplers ';;' names none", {}),
    ("tune --denoiser oracle --samplers ;", "--samplers ';' names none", {}),
    ("train --out {dir}/e.toml", "e.toml is a file; --out names a folder", SMALL),
    ("verify {dir}/a.md", "a.md:1: This comment is not closed", {"a.md": OPEN}),
    ("verify {dir}/a.md", "a.md:1: This comment is not closed", {"a.md": f"{OPEN} {TIED}"}),
    ("verify {dir}/a.md", "verify in v.py called sys.exit", {"a.md": TIED, "v.py": LEAVES}),
    ("verify {dir}/a.md", "the module in v.py called sys.exit", {"a.md": TIED, "v.py": ENDS}),
    *(
        (words, "is a device or a pipe", {"a.md": "It is .5. <!-- verify: /dev/zero key=x -->\n"})
        for words in ("bench /dev/zero --out o", "compare /dev/zero", "verify {dir}/a.md")
    ),
]
PROCESSES = {"bench /dev/zero --out o", "compare /dev/zero"}


@pytest.mark.parametrize(("words", "says", "files"), ROWS, ids=[row[0] for row in ROWS])
def test_a_command_in_wrong_hands_is_a_sentence(
    words: str,
    says: str,
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Case(words, tuple(words.split()), says, files, process=words in PROCESSES)
    refused(row, tmp_path, capsys, monkeypatch)


def test_an_empty_out_is_not_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (("bench", "quickstart"), ("new", "world", "mine"), ("train",)):
        case = Case("empty", (*words, "--out", ""), "It is empty; name a place")
        refused(case, tmp_path, capsys, monkeypatch)
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    case = Case("pipe", ("bench", "pipe", "--out", "o"), "pipe is a device or a pipe")
    refused(case, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("address", ["nope:1", "nope", "host:port", "host:99999", ":1", "[::1]:1"])
def test_an_address_where_nobody_is_does_not_keep_one_waiting(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray itself would try for minutes, in silence; here it is never asked."""
    ray = SimpleNamespace(
        is_initialized=lambda: False, init=lambda **_: pytest.fail("Ray was asked.")
    )
    monkeypatch.setattr(connection, "load_ray", lambda: ray)
    with pytest.raises(MaskwalkError, match="Ray cluster"):
        connection.connect(connection.Cluster(address))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sampler": "bisectoin"}, "bisection"),
        ({"sampler": "bisection", "count": 0}, "count"),
        ({"sampler": "bisection", "seed": -1}, "seed"),
        ({"sampler": "bisection", "world": "latin(n=0)"}, "n"),
    ],
)
def test_run_in_wrong_hands_is_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(MaskwalkError, match=says):
        maskwalk.run(**given)


def test_records_that_are_none_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match="nowhere"):
        maskwalk.read_records(tmp_path / "nowhere")
    (tmp_path / "records.jsonl").write_text('{"key": 3}\n')
    with pytest.raises(MaskwalkError, match=r"Line 1 of .*records\.jsonl"):
        maskwalk.read_records(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "bisection()"),
        ("tune", "--denoiser", "oracle"),
        ("diagnose",),
        ("text", "score", "sums.jsonl", "--denoiser", "zoo:books_mdm"),
        ("text", "consistency"),
    ],
)
def test_torchrun_is_refused_where_every_process_would_do_the_same(
    cli: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")  # as torchrun says
    code, out, err = cli(*words)
    assert code == 2 and not out and "torchrun started 2" in " ".join(err.split())
