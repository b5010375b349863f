"""Many records in little memory: what is held does not grow with their traces, and nothing is lost.

A page made from a lean reading is the page of a full one.
"""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.records import as_written
from maskwalk.bench.stored import StoredTrace, loaded
from maskwalk.bench.versions import load_newest
from maskwalk.errors import MaskwalkError
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.page_data import MOST_TRACED, left_out, traced_panels
from tests.fake_records import record, small


def written(folder: Path, records: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return folder


def held(folder: Path, lean: bool) -> int:
    """Bytes that the records of a run take."""
    tracemalloc.start()
    records = as_written(folder, lean)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(records) == 300
    return size


def test_memory_does_not_grow_with_the_traces(tmp_path: Path) -> None:
    """300 records of 8 and of 512 tokens: lean ones take the same, full ones many times as much."""
    short, long = (
        written(
            tmp_path / str(length),
            [record(sampler=f"random(block={i + 1})", length=length) for i in range(300)],
        )
        for length in (8, 512)
    )
    assert held(long, lean=True) < 1.2 * held(short, lean=True) + 50_000
    assert held(long, lean=False) > 5 * held(long, lean=True)
    assert held(short, lean=True) < 0.6 * held(short, lean=False)


def test_a_stored_trace_is_the_trace(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", small())
    full, lean = as_written(folder), as_written(folder, lean=True)
    for one, other in zip(full, lean, strict=True):
        trace: Any = other["trace"]
        assert isinstance(trace, StoredTrace) and trace and "rounds" in trace
        assert dict(trace) == loaded(trace) == one["trace"] and trace.get("pictures") is None
        assert {**other, "trace": 0} == {**one, "trace": 0}
    assert loaded(None) is None and loaded({"tokens": [1]}) == {"tokens": [1]}


def test_a_file_that_changes_meanwhile_is_a_sentence(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", small())
    lean = as_written(folder, lean=True)
    (folder / "records.jsonl").write_text("gone\n")
    with pytest.raises(MaskwalkError, match="was changed while its records were read"):
        loaded(lean[-1]["trace"])


@pytest.mark.parametrize("formats", [("html", "csv", "md", "svg")])
def test_the_report_is_the_same(tmp_path: Path, formats: tuple[str, ...]) -> None:
    folder = written(tmp_path / "run", small())
    outs = []
    for lean in (False, True):
        out = tmp_path / str(lean)
        paths = write_report(load_newest(folder, lean)[0], out, formats)
        outs.append({p.relative_to(out): p.read_bytes() for p in paths if p.suffix != ".svg"})
    assert outs[0] == outs[1] and len(outs[0]) > 4


def test_only_carried_traces_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what a page carries no trace is looked at."""
    folder = written(tmp_path / "run", small())
    study = arrange(load_newest(folder, lean=True)[0])
    every = traced_panels(study)
    assert len(every) == 8 and left_out(study, every) == 0 and MOST_TRACED > 1000
    monkeypatch.setattr("maskwalk.report.page_data.MOST_TRACED", 200)  # two panels of four traces
    looked: list[StoredTrace] = []
    load = StoredTrace.load
    monkeypatch.setattr(StoredTrace, "load", lambda self: looked.append(self) or load(self))
    carried = traced_panels(study)
    assert carried == {(0, 0), (0, 1)} and left_out(study, carried) == 6
    assert len(looked) == 12  # and those of the panel that is too much
