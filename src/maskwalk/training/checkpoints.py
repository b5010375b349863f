"""Checkpoints of a run: the whole optimiser state, resumable to the same bytes.

A checkpoint is a directory `checkpoint-STEP` with `state.safetensors` and `state.json`, written
under another name and renamed when complete, so that a kill at any moment leaves the previous one.
The JSON says which run it belongs to; a run resumes only its own checkpoints.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.errors import MaskwalkError
from maskwalk.reading import table, text, whole
from maskwalk.resources import read_json, write_file
from maskwalk.training.settings import PLAIN, Job, Settings

FORMAT = "maskwalk-training/1"
STATE = table(
    {"run": table({}), "step": whole(0), "sha256": text(64, 64), "progress": table({})},
    needs=("run", "step", "sha256", "progress"),
)


def identity(config: DDiTConfig, jobs: list[Job], settings: Settings, world: int) -> dict[str, Any]:
    """What must be equal for a checkpoint to continue a run."""
    return {
        "config": config.to_json(),
        "settings": settings.to_json(),
        "processes": world,
        "jobs": [
            {"name": j.name, "seed": j.seed, "dropout": j.dropout, "walks": _digest(j.walks)}
            | ({} if j.masking == PLAIN else {"masking": j.masking})
            for j in jobs
        ],
    }


def _digest(walks: Tensor) -> str:
    return hashlib.sha256(walks.contiguous().numpy().tobytes()).hexdigest()


def save_checkpoint(
    out: Path, run: dict[str, Any], step: int, tensors: dict[str, Tensor], progress: dict[str, Any]
) -> None:
    """Writes the checkpoint of this step, then removes the older ones."""
    data = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()})
    aside, final = out / f".checkpoint-{step:08d}.partial", out / f"checkpoint-{step:08d}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    write_file(aside / "state.safetensors", data)
    about = {
        "format": FORMAT,
        "step": step,
        "sha256": hashlib.sha256(data).hexdigest(),
        "run": run,
        "progress": progress,
    }
    write_file(aside / "state.json", (json.dumps(about, indent=1) + "\n").encode())
    shutil.rmtree(final, ignore_errors=True)
    aside.replace(final)
    for old in checkpoints(out):
        if old != final:
            shutil.rmtree(old)


def checkpoints(out: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in out.glob("checkpoint-*") if path.is_dir())


def name_in(out: Path, resume: bool) -> str:
    """What the model in a directory is called: as when its run began, whatever it is called now."""
    last = checkpoints(out)[-1:] if resume else []
    for path in last:
        run = read_json(path / "state.json", FORMAT, "a training checkpoint of maskwalk").get("run")
        jobs = run.get("jobs") if isinstance(run, dict) else None
        if isinstance(jobs, list) and len(jobs) == 1 and isinstance(jobs[0], dict):
            return str(jobs[0].get("name") or out.name)
    return out.name


def load_checkpoint(
    out: Path, run: dict[str, Any]
) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
    """(step, tensors, progress) of the last checkpoint of this run, None if there is none yet."""
    paths = checkpoints(out)
    if not paths:
        return None
    last = paths[-1]
    about = read_json(last / "state.json", FORMAT, "a training checkpoint of maskwalk", STATE)
    for key, value in run.items():
        if about["run"].get(key) != value:
            raise MaskwalkError(
                f"{last} belongs to another run: its {key} differ: {_difference(about, run, key)}. "
                "Repeat the original command, or train into another directory."
            )
    try:
        data = (last / "state.safetensors").read_bytes()
        tensors = load(data)
    except (OSError, SafetensorError) as problem:
        raise MaskwalkError(
            f"{last} is damaged ({problem}); delete it to start again from the beginning."
        ) from None
    if hashlib.sha256(data).hexdigest() != about["sha256"]:
        raise MaskwalkError(
            f"{last} is damaged (its contents do not match their hash); delete it to start again."
        )
    return about["step"], tensors, about["progress"]


def _difference(about: dict[str, Any], run: dict[str, Any], key: str) -> str:
    old, new = about["run"].get(key), run[key]
    if isinstance(old, dict) and isinstance(new, dict):
        names = [k for k in new if old.get(k) != new[k]]
        return ", ".join(f"{k} was {old.get(k)!r} and is {new[k]!r}" for k in names)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(a, b) for a, b in zip(old, new) if a != b]
        return f"{pairs[0][0]} and {pairs[0][1]}"
    return f"{old!r} and {new!r}"
