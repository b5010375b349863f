"""Full disks, directories that cannot be written, two processes at once, a clock that jumps."""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.records import Record, RecordFile, as_written
from maskwalk.decoding.trace import Trace
from maskwalk.resources import held, write_file
from maskwalk.training.checkpoints import checkpoints
from tests.faults.commands import BENCH, ROOT, TRAIN, results
from tests.faults.server import Server


def committed() -> Record:
    """A record that somebody's bench wrote."""
    return as_written(ROOT / "results" / "carries")[0]


# ---- a disk that is full


def test_a_full_disk_costs_bench_one_record(server: Server, tmp_path: Path) -> None:
    whole, out = tmp_path / "a" / "run", tmp_path / "b" / "run"
    assert server("bench", whole).code == 0
    size = (whole / "records.jsonl").stat().st_size
    ended = server("bench", out, largest=size // 2)
    assert ended.code == 2 and "Traceback" not in ended.said
    assert "records.jsonl: File too large" in ended.said and "are intact" in ended.said
    written = as_written(out)
    assert 0 < len(written) < 16
    assert (out / "records.jsonl").read_bytes().endswith(b"\n")
    assert server("bench", out).code == 0
    assert results(out) == results(whole)


def test_a_full_disk_under_train_names_the_file_and_the_way_on(
    server: Server, tmp_path: Path
) -> None:
    whole, out = tmp_path / "a" / "run", tmp_path / "b" / "run"
    assert server("train", whole).code == 0
    (last,) = checkpoints(whole)
    size = (last / "state.safetensors").stat().st_size
    weights = (whole / "model.safetensors").stat().st_size
    assert weights < size - 1  # the best weights still fit, the checkpoint does not
    ended = server("train", out, largest=size - 1)
    assert ended.code == 2 and "Traceback" not in ended.said
    assert "state.safetensors: File too large" in ended.said and "--resume" in ended.said
    assert checkpoints(out) == []
    assert server("train", out).code == 0
    assert results(out) == results(whole)


def test_what_was_there_survives_a_full_disk(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert server("reproduce", out).code == 0
    page = (out / "report.html").read_bytes()
    ended = server("reproduce", out, largest=len(page) // 2)
    assert ended.code == 2 and "report.html" in ended.said and "Traceback" not in ended.said
    assert (out / "report.html").read_bytes() == page
    assert not list(out.glob(".*.partial"))


# ---- a directory that cannot be written


@pytest.mark.parametrize("command", ["bench", "train", "evaluate"])
def test_a_directory_that_may_not_be_written(command: str, server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (tmp_path / "bench.toml").write_text(BENCH)
    out.chmod(0o555)
    ended = server(command, out, obedient=True)
    out.chmod(0o755)
    assert ended.code != 0 and str(out) in ended.said.replace("\n", ""), ended.said
    assert list(out.iterdir()) == []
    if command != "evaluate":  # which is called from Python here, and raises its sentence
        assert ended.code == 2 and "Traceback" not in ended.said


# ---- two at once


def test_a_second_train_in_one_directory_is_refused(cli: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with held(out, "training into"):
        code, _, err = cli("train", *TRAIN, "--out", str(out))
    assert code == 2 and "Another process is training into" in err and list(out.iterdir()) == []
    assert cli("train", *TRAIN, "--out", str(out))[0] == 0


def test_a_second_bench_and_evaluation_in_one_directory_are_refused(
    cli: Any, tmp_path: Path
) -> None:
    from maskwalk.bench.verdict.files import _append

    file, out = tmp_path / "bench.toml", tmp_path / "run"
    file.write_text(BENCH)
    with RecordFile(out / "records.jsonl") as first:
        first.append(committed())
        code, _, err = cli("bench", str(file), "--out", str(out))
        assert code == 2 and "Another process is writing" in err
        with pytest.raises(Exception, match="Another process is writing"):
            _append(out / "records.jsonl", [])
    assert len(as_written(out)) == 1


# ---- a directory that was renamed


def test_training_goes_on_in_a_renamed_directory(server: Server, tmp_path: Path) -> None:
    whole, out = tmp_path / "a" / "run", tmp_path / "b" / "run"
    kill = server("train", whole).seconds / 2
    while not checkpoints(out):
        server("train", out, kill=kill)
        kill *= 1.3
    moved = tmp_path / "b" / "another"
    out.rename(moved)
    ended = server("train", moved)
    assert ended.code == 0, ended.said
    assert results(moved) == results(whole)


# ---- a clock that jumps


def test_no_result_depends_on_the_clock(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bench.toml"
    file.write_text(BENCH)

    def both(name: str) -> dict[str, str]:
        for words in (("bench", str(file)), ("train", *TRAIN)):
            out = tmp_path / name / words[0] / "run"
            code, _, err = cli(*words, "--out", str(out))
            assert code == 0, err
        return results(tmp_path / name / "bench" / "run") | results(tmp_path / name / "train/run")

    steady = both("steady")
    chance = random.Random(0)
    for clock in ("time", "perf_counter", "monotonic"):
        monkeypatch.setattr(time, clock, lambda: chance.uniform(-1e9, 1e9))
    jumping = both("jumping")
    monkeypatch.undo()
    assert jumping == steady and len(steady) > 20


# ---- files written aside


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    other, file = tmp_path / "other", tmp_path / "file"
    other.write_text("mine")
    (tmp_path / ".file.partial").symlink_to(other)  # somebody else's link
    write_file(file, b"new")
    assert file.read_bytes() == b"new" and not file.is_symlink()
    assert other.read_text() == "mine" and not (tmp_path / ".file.partial").exists()
    link = tmp_path / "link"
    link.symlink_to(file)
    write_file(link, b"newer")
    assert link.is_symlink() and file.read_bytes() == b"newer"
    with pytest.raises(OSError) as caught:
        write_file(tmp_path / "no" / "file", b"")
    assert caught.value.filename == str(tmp_path / "no" / "file")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, b"through")  # a device cannot be replaced
    assert os.read(reader, 10) == b"through" and pipe.is_fifo()
    os.close(reader)


def test_a_failed_trace_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    tokens = torch.tensor([[0, 2], [1, 0]])
    trace = Trace.start(tokens, torch.arange(2), 2)
    path = tmp_path / "x.parquet"
    trace.save(path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        trace.save(path)
    assert caught.value.filename == str(path) and path.read_bytes() == before
    monkeypatch.undo()
    assert Trace.load(path).length == 2


def test_several_policies_share_a_directory(tmp_path: Path) -> None:
    import maskwalk
    from maskwalk.bench.verdict.suite import Scene
    from maskwalk.decoding.policy import UnmaskingPolicy

    class Stuck(UnmaskingPolicy):
        """Reveals nothing: its contract is broken."""

        def choose(self, view: Any, state: Any, rng: Any) -> Any:
            return view.masked & False, state

    baselines = ("random(block=24)", "random(block=8)", "bisection", "left_to_right")
    scenes = [Scene("tree", "st_er_p0", "endpoints", False, 8, baselines, 2)]
    more: dict[str, Any] = {"out": tmp_path, "workers": 0, "progress": False}
    with RecordFile(tmp_path / "records.jsonl") as file:
        file.append(committed())
    maskwalk.evaluate("entropy(block=4)", scenes, **more)
    first = as_written(tmp_path)
    assert first[0] == committed() and len(first) == 6
    maskwalk.evaluate("margin(block=4)", scenes, **more)
    second = as_written(tmp_path)
    assert second[:6] == first and len(second) == 7  # the baselines are there already
    maskwalk.evaluate("margin(block=4)", scenes, **more)
    maskwalk.evaluate(Stuck, scenes, **more)
    assert as_written(tmp_path) == second
    names = {path.name for path in (tmp_path / "evaluations").iterdir()}
    assert names == {"entropy-own.json", "margin-own.json", "test_disks.Stuck-own.json"}
    last = json.loads((tmp_path / "evaluation.json").read_text())
    assert last == json.loads((tmp_path / "evaluations/test_disks.Stuck-own.json").read_text())
