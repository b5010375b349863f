"""Records and experiment files changed at random: read, or refused with a sentence, nothing else.

The suite tries few, always the same; `make fuzz` tries thousands, new ones every time.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maskwalk.bench.diagnosis import load_rows
from maskwalk.bench.experiment import load_experiment
from maskwalk.bench.records import load_records, read_records
from maskwalk.bench.run import Job
from maskwalk.errors import MaskwalkError
from maskwalk.paper.compare import compare
from maskwalk.paper.ledger import verdicts
from maskwalk.paper.tables import attach
from maskwalk.report import comparison, front_tables, write_report
from tests import fake_records, fake_texts
from tests.abuse.conftest import budget
from tests.abuse.corrupt import changed, leaves, line, without
from tests.abuse.test_experiments import GOOD, TEXT
from tests.abuse.test_records import AXIS, PAPER, ROW

RECORDS = [*fake_records.small(graphs=1, tasks=1, modes=1)[:2], PAPER, AXIS]
RECORDS += [*fake_records.coins()[:1], *fake_texts.small()[:3]]
PLACES = [(i, path) for i, record in enumerate(RECORDS) for path in leaves(record)]
ROW_PLACES = list(leaves(ROW))
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([10**18, 10**400, 1e308, 5e-324, float("nan"), float("inf")]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "[/x]", "a(b", "$\\frac{", "<script>", "\ud800", "random(block=-1)", "∞"]),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=6,
    ),
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def use(folder: Path) -> None:
    """Everything that reads records, each of which may refuse them."""
    records = load_records(folder)
    texts = [record for record in records if record.get("texts") is not None]
    for work in (
        lambda: write_report(attach(records), folder / "out", ("html", "csv", "md", "tex")),
        lambda: front_tables(records),
        lambda: compare(records),
        lambda: verdicts(records),
        lambda: read_records(folder),
        lambda: comparison.predictions(texts),
        lambda: comparison.truncations(texts),
    ):
        try:
            work()
        except MaskwalkError:
            continue


def write(folder: Path, records: list[Any], *others: str) -> None:
    (folder / "records.jsonl").write_text("".join([*map(line, records), *others]))


@budget()
@given(place=st.sampled_from(PLACES), new=ODD, gone=st.booleans())
def test_records_with_another_value_somewhere(
    folder: Path, place: tuple[int, Any], new: Any, gone: bool
) -> None:
    i, path = place
    bad = without(RECORDS[i], path) if gone else changed(RECORDS[i], path, new)
    write(folder, [*RECORDS[:i], bad, *RECORDS[i + 1 :]])
    try:
        use(folder)
    except MaskwalkError as problem:
        assert "records.jsonl" in str(problem) and f"Line {i + 1}" in str(problem)


@budget()
@given(at=st.integers(0, 10**6), new=st.binary(max_size=6), away=st.integers(0, 40))
@example(at=5, new=b"\n", away=0)
def test_records_with_other_bytes(folder: Path, at: int, new: bytes, away: int) -> None:
    data = "".join(map(line, RECORDS[:3])).encode()
    at %= len(data)
    (folder / "records.jsonl").write_bytes(data[:at] + new + data[at + away :])
    try:
        use(folder)
    except MaskwalkError as problem:
        assert str(problem)


@budget()
@given(path=st.sampled_from(ROW_PLACES), new=ODD, gone=st.booleans())
def test_rows_of_a_diagnosis(folder: Path, path: Any, new: Any, gone: bool) -> None:
    row = without(ROW, path) if gone else changed(ROW, path, new)
    (folder / "diagnosis.jsonl").write_text(line(row))
    try:
        rows = load_rows(folder)
        write_report([], folder / "out", ("html", "csv", "md", "tex"), losses=rows)
    except MaskwalkError as problem:
        assert str(problem)


# ---------------------------------------------------------------- experiment files

SETTINGS = [row.partition(" =")[0] for row in (GOOD + TEXT).splitlines() if " = " in row]
VALUES = st.one_of(
    st.sampled_from(["nan", "-inf", "1979-05-27", "07:32:00", "0x" + "f" * 99, "1e999", "[[[]]]"]),
    st.sampled_from(['"oracle"', '["exact"]', '["a(b"]', '[""]', '["sweep(all)"]', '"zoo:x"']),
    st.booleans().map(lambda value: str(value).lower()),
    st.integers().map(str),
    st.text(max_size=12).map(json.dumps),
    st.lists(st.integers() | st.text(max_size=6), max_size=3).map(json.dumps),
)


def try_toml(folder: Path, data: bytes) -> None:
    file = folder / "x.toml"
    file.write_bytes(data)
    try:
        jobs = load_experiment(file).jobs(folder)
    except MaskwalkError as problem:
        assert str(problem)
    else:
        assert all(isinstance(job, Job) for job in jobs)


@budget()
@given(
    base=st.sampled_from([GOOD, TEXT]),
    name=st.sampled_from(sorted({*SETTINGS, "axis", "modes", "traces", "quick", "zoo", "world"})),
    value=VALUES,
    last=st.booleans(),
)
def test_experiments_with_another_setting(
    folder: Path, base: str, name: str, value: str, last: bool
) -> None:
    kept = [row for row in base.splitlines() if not row.startswith(f"{name} =")]
    try_toml(
        folder,
        "\n".join([*kept, f"{name} = {value}"] if last else [f"{name} = {value}", *kept]).encode(
            "utf-8", "surrogatepass"
        ),
    )


@budget()
@given(
    base=st.sampled_from([GOOD, TEXT]),
    at=st.integers(0, 10**4),
    new=st.binary(max_size=6),
    away=st.integers(0, 20),
)
def test_experiments_with_other_bytes(
    folder: Path, base: str, at: int, new: bytes, away: int
) -> None:
    data = base.encode()
    at %= len(data)
    try_toml(folder, data[:at] + new + data[at + away :])
