"""Cells that fail, hang, die or run out of memory cost themselves and nothing else; Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.records import as_written
from maskwalk.bench.run import NO_MEMORY, Failure, attempt
from maskwalk.bench.time_limit import time_limit
from maskwalk.bench.workers import READY, start
from maskwalk.errors import MaskwalkError, memory_ran_out
from maskwalk.samplers import SAMPLERS
from tests.faults.commands import BENCH, ROOT
from tests.faults.server import environment

BAD = '''
import os, signal, sys, time
from maskwalk import UnmaskingPolicy
from maskwalk.samplers import SAMPLERS

class Bad(UnmaskingPolicy):
    """Does something bad in its first round."""
    def choose(self, view, state, rng):
        self.act()
        return view.masked, state

def bad(name):
    def add(act):
        SAMPLERS.register(f"bad_{name}")(type(f"Bad{name}", (Bad,), {"act": lambda self: act()}))
    return add

@bad("loop")
def loop():
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass

@bad("dead")
def dead():
    os.kill(os.getpid(), signal.SIGKILL)

@bad("error")
def error():
    raise KeyError("mine")

@bad("exit")
def leave():
    sys.exit(0)

@bad("memory")
def memory():
    import torch
    torch.empty(2**60)

@bad("stop")
def stop():
    raise KeyboardInterrupt
'''


@pytest.fixture
def bad(tmp_path: Path) -> Any:
    file = tmp_path / "bad.py"
    file.write_text(BAD)
    yield file
    for name in [name for name in SAMPLERS if name.startswith("bad_")]:
        del SAMPLERS._members[name]


def experiment(folder: Path, samplers: list[str]) -> Path:
    file = folder / "e.toml"
    file.write_text(
        'length = 6\ncount = 8\nmetrics = ["calls", "coherence"]\n'
        f"samplers = {json.dumps(samplers)}\n"
        '[[graphs]]\ngraph = "st_er(nodes=12, p=0.1)"\nwalk = "lazy()"\n'
    )
    return file


def test_bad_cells_cost_only_themselves(cli: Any, tmp_path: Path, bad: Path) -> None:
    """In one worker process that is ended after ten seconds, and replaced."""
    kinds = ("loop", "dead", "error", "exit", "memory")
    names = ["left_to_right", *(f"bad_{kind}" for kind in kinds), "bisection"]
    run = tmp_path / "run"
    words = ("bench", str(experiment(tmp_path, names)), "--out", str(run), "--include", str(bad))
    code, out, err = cli(*words, "--timeout", "10")
    assert code == 2 and "Traceback" not in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("error: 5 of 7 cells failed; the first is bad_loop()"), err
    assert "skipped.jsonl" in last and "tries the failed ones again" in last
    assert "bisection" in out  # what is finished is shown
    assert [r["sampler"] for r in as_written(run)] == ["left_to_right()", "bisection(order=1)"]
    skipped = [json.loads(line) for line in (run / "skipped.jsonl").read_text().splitlines()]
    reasons = {row["what"].split(" ")[0]: row["reason"] for row in skipped}
    assert reasons["bad_loop()"] == "It took longer than 10 s."
    assert "worker process ended early" in reasons["bad_dead()"]
    assert "mine" in reasons["bad_error()"] and "SystemExit" in reasons["bad_exit()"]
    assert reasons["bad_memory()"] == NO_MEMORY
    # None of them counts as done, and what is done is not run again.
    harmless = BAD.replace("while True:", "while False:")
    bad.write_text(harmless.replace("os.kill(", "print(").replace("raise Key", "print(1) #"))
    code, _, err = cli(*words)
    assert code == 2 and "2 of 7 cells failed" in err, err
    assert len(as_written(run)) == 5


def test_a_bad_cell_in_this_process(cli: Any, tmp_path: Path, bad: Path) -> None:
    run = tmp_path / "run"
    file = experiment(tmp_path, ["bad_error", "left_to_right"])
    code, _, err = cli("bench", str(file), "--out", str(run), "--include", str(bad))
    assert code == 2 and "1 of 2 cells failed" in err and "most recent call last" not in err
    # The sentence, and the user's own lines below it.
    assert "your own lines" in json.loads((run / "skipped.jsonl").read_text())["reason"]
    words = ("diagnose", "--graph", "st_er(nodes=12, p=0.1)", "--length", "6", "--count", "4")
    code, out, err = cli(
        *words, "--samplers", "bad_error;left_to_right", "--include", str(bad), "--json"
    )
    assert code == 2 and [row["sampler"] for row in json.loads(out)] == ["left_to_right()"]
    assert "1 of 2 cells failed" in err and "most recent call last" not in err


def test_a_loop_under_evaluation_is_ended(cli: Any, tmp_path: Path, bad: Path) -> None:
    code, _, err = cli("evaluate", "bad_loop()", "--include", str(bad), "--timeout", "0.5")
    assert code == 2 and "took longer than 0.5 s (--timeout)" in err and "Traceback" not in err
    code, _, err = cli("evaluate", "bad_stop()", "--include", str(bad))
    assert code == 130 and err.strip().startswith("Stopped;") and "Traceback" not in err


def test_the_time_limit_is_gone_afterwards() -> None:
    with time_limit(0.05, "It"):
        pass
    time.sleep(0.1)
    with pytest.raises(MaskwalkError, match="It took longer"), time_limit(0.05, "It"):
        time.sleep(5)
    with pytest.raises(MaskwalkError, match="timeout must be"), time_limit(-1, "It"):
        pass


def test_what_counts_as_no_memory(cli: Any, tmp_path: Path, bad: Path) -> None:
    assert memory_ran_out(MemoryError()) and memory_ran_out(RuntimeError("CUDA out of memory."))
    assert not memory_ran_out(RuntimeError("shape")) and not memory_ran_out(ValueError("memory"))
    words = ("--graph", "st_er(nodes=12, p=0.1)", "--length", "6", "--count", "4")
    code, _, err = cli("sample", *words, "--sampler", "bad_memory", "--include", str(bad))
    assert code == 2 and "Out of memory." in err and "Traceback" not in err
    failed = attempt("cell", {"cell": {}, "traces": False}, "cpu")
    assert isinstance(failed, Failure) and "\n" not in failed.reason and failed.traceback


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    """To the whole group, as a terminal sends it, while a worker process is at work."""
    file, run = tmp_path / "b.toml", tmp_path / "run"
    file.write_text(BENCH.replace("count = 16", "count = 5000"))
    words = [sys.executable, "-m", "maskwalk", "bench", str(file), "--out", str(run)]
    process = subprocess.Popen(
        [*words, "--timeout", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # nohup ignores it
    )
    records, deadline = run / "records.jsonl", time.monotonic() + 120
    while not (records.exists() and records.stat().st_size) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    lines = [line for line in err.splitlines() if "Stopped" in line]
    assert len(lines) == 1 and "the same command goes on from there" in lines[0]
    assert len(as_written(run)) >= 1


def test_a_worker_whose_parent_is_gone_ends_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    """Its answer finds no reader before its standard input ends: no traceback on the terminal."""
    process = start("cpu", ["cell"], [])
    assert process.stdout.readline().strip() == READY
    process.stdout.close()
    process.stdin.write(json.dumps({"function": "cell", "arguments": {}}) + "\n")
    process.stdin.flush()
    assert process.wait(60) == 0
    process.stdin.close()
    assert "Traceback" not in capfd.readouterr().err
