"""Experiment files with settings of a wrong type or size, odd bytes, or no end."""

from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.experiment import load_experiment
from tests.abuse.case import Case, refused

GOOD = """
name = "small"
count = 4
tasks = ["unconditional"]
samplers = ["random(block=2)", "bisection"]
metrics = ["coherence", "calls"]
[[graphs]]
title = "Five nodes"
graph = "st_er(nodes=5, p=0.2)"
walk = "lazy(stay=0.2)"
length = 5
"""
TEXT = """
kind = "text"
masked = "zoo:books_mdm"
causal = "zoo:books_ar"
presets = ["exact"]
samplers = ["random(block=8)"]
count = 2
"""
BENCH = ("bench", "{dir}/x.toml", "--out", "{dir}/run")


def top(name: str, value: str) -> str:
    """The file with another setting at its top."""
    good = GOOD.partition("[[graphs]]")[0] if name == "graphs" else GOOD
    kept = [row for row in good.splitlines() if not row.startswith(f"{name} =")]
    return f"{name} = {value}\n" + "\n".join(kept)


def row(name: str, value: str) -> str:
    """The file with another setting of its one world."""
    kept = [row for row in GOOD.splitlines() if not row.startswith(f"{name} =")]
    return "\n".join(kept) + f"\n{name} = {value}\n"


def of_text(name: str, value: str) -> str:
    kept = [row for row in TEXT.splitlines() if not row.startswith(f"{name} =")]
    return f"{name} = {value}\n" + "\n".join(kept)


TOP = {
    "metrics": ("3", '"coherence"', "[3]", "[[1]]", '["calls", "calls"]', "[nan]", "{a = 1}"),
    "modes": ("3", "[3]", '"exact"', '[["exact"]]', "[1979-05-27]"),
    "presets": ("true", "[true]", '"exact"', "[1.5]"),
    "denoisers": ("3", "[3]", '"oracle"', '[{name = "oracle"}]'),
    "traces": ('"no"', "0", "[]", "1979-05-27"),
    "axis": ('"calls"', "3", "[1]", "{}", "{name = 3}", '{name = "x", value = "y"}'),
    "tasks": ('"endpoints"', "[3]", "[[]]", "[{count = 3}]", '[{task = "endpoints", count = "a"}]'),
    "samplers": ('"random"', "[3]", "[1979-05-27T07:32:00Z]", "{}"),
    "count": ("nan", "inf", "1.5", '"many"', "0", "-1", "true", "1979-05-27", "[4]"),
    "per_prompt": ("0", '"one"', "1e300"),
    "seed": ("-1", "9223372036854775808", "0.5"),
    "name": ("3", "[]", '""'),
    "graphs": ("3", "[3]", '"many"', '[["a"]]'),
    "quick_samplers": ('"random"', "[3]"),
}
ROW = {
    "quick": ('"no"', "0", "1979-05-27", "[]"),
    "title": ("3", "[]", "nan"),
    "graph": ("3", '["a"]', "{}"),
    "walk": ("3", "true"),
    "length": ("nan", '"five"', "5.0"),
    "graph_seed": ("-1", '"a"'),
    "column": ("[1]", "3"),
    "zoo": ("3", '["a"]'),
    "world": ("3", '["sudoku"]'),
    "axis": ('{name = "x", value = nan}', '{name = "x", marks = [nan]}', '{name = "x", marks = 3}'),
}
OF_TEXT = {
    "presets": ("3", "[3]"),
    "masked": ("3",),
    "count": ("nan", '"a"'),
    "quick": ("3", "{count = nan}"),
    "judge": ("4", "[[]]"),
}


def rows(kind: str, table: dict[str, tuple[str, ...]], make: Any, prefix: str = "") -> list[Case]:
    return [
        Case(f"{kind}-{name}-{value}", BENCH, f"{prefix}{name}", {"x.toml": make(name, value)})
        for name, values in table.items()
        for value in values
    ]


ROWS = (
    rows("top", TOP, top) + rows("world", ROW, row, "graphs[0].") + rows("text", OF_TEXT, of_text)
)
MANY = ", ".join(f'"random(block={i})"' for i in range(20_000))
BAD: dict[str, tuple[str | bytes, str]] = {
    "not-toml": ("a = = 3", "x.toml is not a TOML file"),
    "cut": (GOOD[:60], "x.toml is not a TOML file"),
    "odd-bytes": (b'name = "\xff\xfe"\n', "x.toml is not a TOML file"),
    "nul-bytes": (b"\0\0\0\0", "x.toml is not a TOML file"),
    "a-pickle": (b"\x80\x04\x95\x0b\x00\x00", "x.toml is not a TOML file"),
    "twice": (GOOD + 'title = "again"\n', "x.toml is not a TOML file"),
    "empty": ("", "describes no cells"),
    "deep-lists": (f"metrics = {'[' * 5_000}{']' * 5_000}", "x.toml is nested too deeply"),
    "deep-tables": (f"a = {'{a = ' * 3_000}1{'}' * 3_000}", "x.toml is nested too deeply"),
    "dotted-key": (".".join("a" * 100_000) + " = 1", "a key of more than 32 parts"),
    "digits": (top("count", "9" * 5_000), "x.toml is not a TOML file"),
    "hex-digits": (top("count", "0x" + "f" * 9_000), "count in"),
    "unknown": (top("sampler", '["random"]'), "sampler"),
    "unknown-in-a-world": (row("titel", '"a"'), "titel"),
    "a-kind": (top("kind", '"cell"'), "Unknown kind of experiment"),
    "kind-of-a-wrong-type": (top("kind", "3"), "Unknown kind of experiment"),
    "many-samplers": (top("samplers", f"[{MANY}]"), "a list of at most 10,000 texts"),
    "many-sweeps": (
        top("samplers", "[" + ", ".join(['"sweep(all)"'] * 5_000) + "]"),
        "cells, and an experiment has at most 100,000",
    ),
    "many-bytes": (b"#" * 10_000_000, "has 10,000,000 bytes, and an experiment file at most"),
    "long-list": (top("metrics", "[" + "1, " * 400_000 + "]"), "an experiment file at most"),
    "million-samplers": (
        top("samplers", "[" + '"bisection", ' * 1_000_000 + "]"),
        "an experiment file at most",
    ),
    "quoted-flag": (
        top("samplers", "[\"dus(merge='no')\"]"),
        "merge of sampler 'dus' must be True",
    ),
    "number-for-a-text": (
        top("samplers", '["guided_bisection(score=3)"]'),
        "score of sampler 'guided_bisection' must be a text in quotes, not 3",
    ),
}
ROWS += [Case(name, BENCH, says, {"x.toml": bad}) for name, (bad, says) in BAD.items()]
PROCESSES = {"deep-lists", "million-samplers", "number-for-a-text", "top-axis-3"}


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_bad_experiment_is_a_sentence(
    case: Case, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = case.name in PROCESSES
    row = Case(case.name, case.argv, case.says, case.files, process=process)
    refused(row, tmp_path, capsys, monkeypatch)
    assert not (tmp_path / "run").exists()


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 90 and len({case.name for case in ROWS}) == len(ROWS)
    assert sum(case.name in PROCESSES for case in ROWS) == len(PROCESSES)


def test_the_good_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(GOOD)
    assert len(load_experiment(tmp_path / "x.toml").cells) == 2
