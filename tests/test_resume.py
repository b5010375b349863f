"""Runs that are killed, continued, or shared by several processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.errors import MaskwalkError
from maskwalk.training.checkpoints import checkpoints, save_checkpoint
from maskwalk.training.distributed import free_port
from maskwalk.training.loop import train
from maskwalk.training.settings import Job, Settings
from tests.conftest import small_law

TINY = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)
SETTINGS = Settings(steps=60, batch=16, lr=3e-3, every=10)


def run(
    out: Path, resume: bool = False, settings: Settings = SETTINGS, dropout: float = 0.2
) -> None:
    law = small_law(length=4)
    job = Job("walks", law.sample(200, seed=1), 3, dropout, law.sample(10, seed=2))
    train(TINY, [job], settings, out, resume=resume, live=False)


SCRIPT = """
import sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
import maskwalk.training.loop as loop
from tests.test_resume import run
if "slow" in sys.argv:  # leave the killer time to strike between checkpoints
    advance = loop.Stepper.advance
    def slowly(self, count):
        time.sleep(0.05 * count)
        return advance(self, count)
    loop.Stepper.advance = slowly
run(Path(sys.argv[1]), resume="resume" in sys.argv)
"""


def start(out: Path, *words: str, **env: str) -> subprocess.Popen:
    root = Path(__file__).parent.parent
    paths = os.pathsep.join([str(root / "src"), str(root)])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(out), *words],
        env={**os.environ, "PYTHONPATH": paths, **env},
        cwd=root,
    )


def weights(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole")
    run(out)
    return out


def test_a_killed_run_resumes_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    process = start(tmp_path, "slow")
    deadline = time.monotonic() + 60
    while not any(c.name >= "checkpoint-00000020" for c in checkpoints(tmp_path)):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "model.safetensors").exists()
    (tmp_path / ".checkpoint-00000099.partial").mkdir()  # what a kill while writing leaves
    with pytest.raises(MaskwalkError, match="continue it with --resume"):
        run(tmp_path)
    run(tmp_path, resume=True)
    assert weights(tmp_path) == weights(whole)
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert lines == (whole / "progress.jsonl").read_text().splitlines()


def test_checkpoints_that_do_not_fit_are_refused(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    (last,) = checkpoints(out)
    with pytest.raises(MaskwalkError, match=r"lr was 0\.003 and is 0\.01"):
        run(out, resume=True, settings=Settings(steps=60, batch=16, lr=1e-2, every=10))
    with pytest.raises(MaskwalkError, match="another run"):
        run(out, resume=True, dropout=0.0)
    state = last / "state.safetensors"
    good = state.read_bytes()
    state.write_bytes(good[: len(good) // 2])
    with pytest.raises(MaskwalkError, match="is damaged"):
        run(out, resume=True)
    state.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(MaskwalkError, match="do not match their hash"):
        run(out, resume=True)
    (last / "state.json").write_text('{"format": "lightning"}')
    with pytest.raises(MaskwalkError, match="'lightning'"):
        run(out, resume=True)


def test_only_the_last_checkpoint_stays(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        save_checkpoint(tmp_path, {}, step, {"a": torch.ones(2)}, {})
    assert [c.name for c in checkpoints(tmp_path)] == ["checkpoint-00000015"]


def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    law = small_law(length=4)
    found = iter([0.2, 0.9, 0.4])
    settings = Settings(steps=30, batch=16, lr=3e-3, every=10)
    train(
        TINY,
        [Job("walks", law.sample(200, seed=1), 3)],
        settings,
        tmp_path,
        validate=lambda name, denoiser: {"coherence": next(found)},
        live=False,
    )
    best = (tmp_path / "best" / "model.json").read_text()
    assert '"step": 20' in best and '"coherence": 0.9' in best
    assert weights(tmp_path / "best") != weights(tmp_path)


def test_two_processes_see_what_one_sees(tmp_path: Path) -> None:
    """gloo, dropout 0.2, antithetic times over the whole batch: the losses of a single process."""
    port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    processes = [start(tmp_path / "two", RANK=str(rank), **port) for rank in range(2)]
    run(tmp_path / "one")
    assert [process.wait(timeout=90) for process in processes] == [0, 0]
    one, two = ((tmp_path / n / "progress.jsonl").read_text().splitlines() for n in ("one", "two"))
    for a, b in zip(one, two, strict=True):
        for key, value in json.loads(a).items():
            assert json.loads(b)[key] == pytest.approx(value, rel=1e-4), key
