"""Records and rows of a diagnosis that were edited, cut or come from elsewhere."""

import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.records import load_records
from maskwalk.errors import MaskwalkError
from maskwalk.paper.compare import compare
from maskwalk.paper.ledger import verdicts
from maskwalk.paper.tables import attach
from maskwalk.reading import json_value, unpacked
from tests import fake_records, fake_texts
from tests.abuse.case import Case, refused
from tests.abuse.corrupt import LONE, Keys, changed, field, line, without

RESULTS = Path(__file__).parents[2] / "results"
WALKS = fake_records.small(graphs=1, tasks=1, modes=1)
RECORD = WALKS[1]
PAPER = fake_records.record(sampler="random(block=2)", mode=fake_records.MODES[2])
PAPER |= {"column": "st_er_p0", "described": {"heads": fake_records.OWN}}
AXIS = fake_records.distant()[0]
TEXTS = fake_texts.small()
ROW: dict[str, Any] = {
    "key": "a", "sampler": "bisection(order=1)", "calls": 2.0, "calls_max": 2, "n": 8, "orders": 1,
    "kl_kind": "exact", "nll": 6.1, "nll_se": 0.2, "lost": 0.0, "kl": 0.1, "kl_se": 0.01,
    "dependence": 0.1, "denoiser": 0.0, "reliable": True, "kl_infinite": False, "worst_round": 0,
    "rounds": [
        {"positions": [0], "nll": 3.0, "dependence": 0.1, "denoiser": 0.0, "share": 1.0},
        {"positions": [1], "nll": 3.1, "dependence": 0.0, "denoiser": 0.0, "share": 1.0},
    ],
    "example": {"tokens": [1, 2], "rounds": [0, 1], "dependence": [0.1, 0], "denoiser": [0, 0]},
    "world": "coins(length=2)", "task": "unconditional()", "mode": "exact", "model": "oracle",
    "seed": 0,
}  # fmt: skip
NAN, INFINITE, HUGE = float("nan"), float("inf"), 10**400
FILE, DIAGNOSIS = "run/records.jsonl", "run/diagnosis.jsonl"
REPORT, COMPARE = ("report", "{dir}/run"), ("compare", "{dir}/run")
TEXT_COMPARE = ("text", "compare", "{dir}/run")


def second(bad: Any) -> str:
    """A file whose second line is bad."""
    return line(RECORD) + (bad if isinstance(bad, str) else line(bad))


def of_walks(path: Keys, new: Any, argv: tuple[str, ...] = REPORT, base: Any = RECORD) -> Case:
    kind = "nan" if new != new else f"{len(str(new))} digits" if new == HUGE else repr(new)[:20]
    name = f"{argv[0]}-{field(path)}-{kind}"
    says = f"Line 2 of {{dir}}/{FILE} is not a maskwalk record: {field(path)}"
    if "marks" in path and isinstance(new[0], dict):
        says = "there is no axis.marks[0].at"
    if isinstance(new, float) and (new != new or new in (INFINITE, -INFINITE)):
        says = f"Line 2 of {{dir}}/{FILE} is not a maskwalk record: it must be JSON"
    return Case(name, argv, says, {FILE: second(changed(base, path, new))})


def gone(path: Keys, argv: tuple[str, ...] = REPORT, base: Any = RECORD) -> Case:
    says = f"Line 2 of {{dir}}/{FILE} is not a maskwalk record: there is no {field(path)}"
    files = {FILE: second(without(base, path))}
    return Case(f"{argv[0]}-{field(path)}-gone", argv, says, files)


VALUE: Keys = ("metrics", "coherence", "value")
WRONG = [
    *((("key",), new) for new in (3, None, ["a"], "")),
    *((("metrics",), new) for new in (3, None, [1], "many", [[]])),
    *((("metrics", "coherence"), new) for new in (0.5, "half", [0.5], True)),
    *((VALUE, new) for new in ("high", [0.5], {"a": 1}, True, 1.5, -0.2, 1e308)),
    *((VALUE, new) for new in (NAN, INFINITE, HUGE)),
    *((("metrics", "coherence", "se"), new) for new in ("small", -0.1, NAN, HUGE, [])),
    *((("metrics", "coherence", "n"), new) for new in (0, -1, 1.5, "512", HUGE)),
    *((("metrics", "calls", "max"), new) for new in (-INFINITE, HUGE, {"a": {"b": {}}})),
    *((("sampler",), new) for new in (3, None, "", ["random"], {"name": "random"})),
    *((("world",), new) for new in (3, "walk(", "1 + 1", LONE.encode("utf-16", "surrogatepass"))),
    *((("task",), new) for new in (None, "task(a=b c)", [])),
    *((("mode",), new) for new in (5, "", ["exact"])),
    *((("denoiser",), new) for new in (5, None)),
    *((("cell",), new) for new in ("first", 1.5, -1, HUGE, [0])),
    *((("count",), new) for new in ("many", -5, 2.5)),
    *((("per_prompt",), new) for new in (0, -1, "one")),
    *((("title",), new) for new in (["a"], {"a": 1}, 7)),
    *((("experiment",), new) for new in (["a"], {"a": 1})),
    *((("notes",), new) for new in ("one", [1], {"a": 1})),
    *((("seconds",), new) for new in ("fast", -1, NAN)),
    *((("sources",), new) for new in (3, ["a.py"], {"a.py": 1})),
    *((("kind",), new) for new in (3, ["exact"])),
    *((("schema",), new) for new in (3, "2", None, 10**30)),
    *((("trace",), new) for new in ("long", [1], 3)),
    *((("trace", "tokens"), new) for new in ("abc", [1, "b"], [-1] * 24, [1], [HUGE] * 24)),
    *((("trace", "rounds"), new) for new in ([0.5] * 24, [10**9] * 24, {"a": 1})),
    *((("trace", "entropy"), new) for new in (["a"] * 24, [True] * 24, [1e200] * 24)),
    *((("trace", "valid"), new) for new in ([1] * 24, "yes")),
]
ROWS = [of_walks(path, new if not isinstance(new, bytes) else {"bytes": 1}) for path, new in WRONG]
ROWS += [
    of_walks(path, new, argv, base)
    for argv, base, wrong in (
        (
            COMPARE,
            PAPER,
            [
                (VALUE, "high"),
                (VALUE, NAN),
                (("metrics", "coherence", "se"), [1]),
                (("metrics", "coherence", "n"), 0),
                (("column",), ["st_er_p0"]),
                (("task",), "task("),
                (("described", "heads", "digits"), "two"),
                (("described", "heads", "limits"), 3),
            ],
        ),
        (
            (*COMPARE, "--claims"),
            PAPER,
            [(VALUE, True), (("mode",), {"a": 1}), (("denoiser",), ["oracle"])],
        ),
        (
            (*REPORT, "--fronts"),
            AXIS,
            [
                (("axis",), "x"),
                (("axis", "name"), 3),
                (("axis", "value"), "four"),
                (("axis", "marks"), [["a"]]),
                (("axis", "marks"), [{"label": "K"}]),
                (("metrics", "calls", "value"), -1e300),
            ],
        ),
        (
            TEXT_COMPARE,
            TEXTS[1],
            [
                (("texts",), "once"),
                (("texts",), [1]),
                (("judge",), 4),
                (("metrics", "mauve", "value"), "near"),
                (("metrics", "replay_bpb", "value"), HUGE),
                (("metrics", "replay_bpb", "nats"), ["a"]),
            ],
        ),
    )
    for path, new in wrong
]
ROWS += [gone((key,)) for key in ("key", "metrics", "world", "task", "sampler", "mode")]
ROWS += [gone(("metrics", "coherence", key), COMPARE, PAPER) for key in ("value", "se", "n")]
ROWS += [gone(("trace", key)) for key in ("tokens", "rounds", "entropy")]
WHOLE = {
    "not-json": ("{'key': 1}\n", "must be JSON"),
    "a-list": ("[1, 2]\n", "it must be a table of fields, not [1, 2]"),
    "a-number": ("7\n", "it must be a table of fields, not 7"),
    "null": ("null\n", "it must be a table of fields, not null"),
    "empty-line": ("\n", "must be JSON"),
    "deep-lists": ("[" * 100_000 + "]" * 100_000 + "\n", "not nested so deeply"),
    "deep-tables": ('{"a":' * 50_000 + "1" + "}" * 50_000 + "\n", "not nested so deeply"),
    "half-a-character": (
        line(RECORD | {"title": LONE}),
        "title must be a text of whole characters",
    ),
    "half-a-metric": (
        line(RECORD | {"metrics": {LONE: {"value": 1, "se": 0, "n": 1}}}),
        "must be a text of whole characters",
    ),
    "half-a-note": (line(RECORD | {"notes": [LONE]}), "notes must be a text of whole characters"),
    "thousands-of-digits": (line(RECORD).replace('"seed": 0', f'"seed": {"9" * 5000}'), "JSON"),
    "two-on-a-line": (line(RECORD).strip() + line(RECORD), "must be JSON"),
    "future-schema": (line(RECORD | {"schema": 9}), "install the one that wrote it"),
}
ROWS += [Case(name, REPORT, says, {FILE: second(bad)}) for name, (bad, says) in WHOLE.items()]
BYTES = {
    "latin-1": (line(RECORD).encode() + '{"title": "Zürich"}\n'.encode("latin-1"), "JSON in UTF-8"),
    "utf-16": (line(RECORD).encode("utf-16"), "JSON"),
    "nul-bytes": (line(RECORD).encode() + b"\0" * 100 + b"\n", "must be JSON"),
    "a-pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x04evil\x94.\n", "Line 1 of"),
}
ROWS += [Case(f"bytes-{name}", REPORT, says, {FILE: bad}) for name, (bad, says) in BYTES.items()]
PACKED = gzip.compress(line(RECORD).encode())
ZIPPED = {
    "not-gzip": (b"not packed at all\n", "is not a complete gzip file"),
    "cut": (PACKED[:-20], "is not a complete gzip file"),
    "damaged": (PACKED[:60] + b"\0\0\0\0" + PACKED[64:], "is not a complete gzip file"),
    "bad-line": (gzip.compress(b"{}\n"), "Line 1 of {dir}/run/records.jsonl.gz is not a maskwalk"),
}
ROWS += [
    Case(f"gzip-{name}", REPORT, says, {FILE + ".gz": bad}) for name, (bad, says) in ZIPPED.items()
]
XZ = lzma.compress(line(RECORD).encode())
SQUEEZED = {
    "not-xz": (b"not packed at all\n", "is not a complete xz file"),
    "cut": (XZ[:-20], "is not a complete xz file"),
    "bad-line": (lzma.compress(b"{}\n"), "Line 1 of {dir}/run/records.jsonl.xz is not a maskwalk"),
}
ROWS += [
    Case(f"xz-{name}", REPORT, says, {FILE + ".xz": bad}) for name, (bad, says) in SQUEEZED.items()
]
ROWS += [
    Case(
        f"diagnosis-{field(path)}-{repr(new)[:20]}",
        REPORT,
        f"Line 1 of {{dir}}/{DIAGNOSIS} is not a row of `maskwalk diagnose`: {field(path)}",
        {DIAGNOSIS: line(changed(ROW, path, new))},
    )
    for path, new in (
        (("sampler",), 3),
        (("calls",), "two"),
        (("calls",), -1),
        (("calls",), 10**400),
        (("rounds",), "two"),
        (("rounds",), [3]),
        (("rounds", 0, "positions"), "first"),
        (("rounds", 0, "positions"), [0.5]),
        (("worst_round",), 7),
        (("worst_round",), "last"),
        (("kl_infinite",), "no"),
        (("reliable",), 1),
        (("kl",), {"a": 1}),
        (("example",), [1]),
        (("example", "rounds"), [0]),
        (("example", "dependence"), "low"),
        (("world",), ["a"]),
        (("n",), -1),
    )
]
PROCESSES = {"compare-metrics.coherence.value-'high'", "deep-lists", "gzip-cut"}


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_bad_record_is_a_sentence(
    case: Case, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = case.name in PROCESSES
    says = case.says.replace("{dir}", str(tmp_path))
    refused(replace(case, says=says, process=process), tmp_path, capsys, monkeypatch)
    assert [p.name for p in (tmp_path / "run").iterdir()] == [Path(n).name for n in case.files]


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 130 and len({case.name for case in ROWS}) == len(ROWS)
    assert sum(case.name in PROCESSES for case in ROWS) == len(PROCESSES)


def test_a_good_record_is_read(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "records.jsonl").write_text(second(PAPER))
    (tmp_path / "diagnosis.jsonl").write_text(line(ROW))
    code, _, err = cli("report", str(tmp_path))
    assert code == 0, err
    assert cli("compare", str(tmp_path))[0] == 0


def test_a_bomb_is_not_unpacked() -> None:
    packed = gzip.compress(b"\0" * 10_000_000)
    with pytest.raises(MaskwalkError, match="unpacks to more than the 1,000 bytes"):
        unpacked(packed, 1_000, "records.jsonl.gz")


def test_a_mark_at_the_front_and_whole_characters_are_no_mistake() -> None:
    assert json_value(b"\xef\xbb\xbf" + json.dumps({"a": "\U0001f600"}).encode()) == {
        "a": "\U0001f600"
    }


def test_a_record_whose_number_is_null_is_left_out_of_the_paper() -> None:
    records = load_records(RESULTS / "paper")
    for record in records:
        for estimate in record["metrics"].values():
            if estimate is not None and "value" in estimate:
                estimate["value"] = None
        record.pop("title", None)
    assert all("published" not in record for record in attach(records))
    assert all(not any(claim["modes"].values()) for claim in verdicts(records))
    with pytest.raises(MaskwalkError, match="None of these records"):
        compare(records)
