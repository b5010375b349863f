"""The commands that are killed: each small enough to be run a thousand times.

A command is a function of a directory; `python -m tests.faults.commands NAME DIR` runs one in a
process of its own. What must be the same as after an undisturbed run is `results(NAME, DIR)`: keys
and what stands under them, without what a clock says.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
CLOCK = ("seconds", "commit", "tokens_per_second", "flops_per_second")
BENCH = """
name = "killed"
length = 6
count = 16
metrics = ["calls", "coherence"]
tasks = ["unconditional", "endpoints"]
samplers = ["random(block=2)", "entropy(block=1)", "bisection", "left_to_right"]
[[graphs]]
title = "Tree"
graph = "st_er(nodes=12, p=0.1)"
walk = "lazy()"
[[graphs]]
title = "Two"
graph = "two_communities(nodes=6, p=0.5, bridges=1)"
walk = "lazy()"
"""
TRAIN = (
    *("--graph", "st_er(nodes=6, p=0.2)", "--length", "4", "--hidden", "16", "--blocks", "1"),
    *("--heads", "2", "--walks", "64", "--batch", "8", "--steps", "40", "--every", "8"),
    *("--lr", "0.003", "--resume"),
)


def cli(*words: str) -> None:
    """The command line, as a person types it."""
    from maskwalk.cli.main import main

    sys.argv = ["maskwalk", *words]
    main()


def bench(out: Path, workers: int = 1) -> None:
    """An experiment of sixteen cells."""
    file = _beside(out, "bench.toml", BENCH)
    cli("bench", str(file), "--out", str(out), "--workers", str(workers))


def bench_two(out: Path) -> None:
    """The same in two processes."""
    bench(out, 2)


def train(out: Path) -> None:
    """A model of a few hundred weights, five checkpoints."""
    cli("train", *TRAIN, "--out", str(out))


def evaluate(out: Path) -> None:
    """A verdict on one sampler, with two scenes and four baselines."""
    import maskwalk
    from maskwalk.bench.verdict.suite import DEGREE, TREE, Scene

    baselines = ("random(block=24)", "random(block=8)", "bisection", "left_to_right")
    places = ((TREE, "endpoints"), (DEGREE, "unconditional"))
    scenes = [Scene(*place, task, False, 8, baselines, 2) for place, task in places]
    maskwalk.evaluate("entropy(block=4)", scenes, out=out, workers=0, progress=False)


def reproduce(out: Path) -> None:
    """A few cells of a table of the paper, and the report of them."""
    from maskwalk.bench.experiment import Experiment
    from maskwalk.paper import reproduce as paper

    def some(only: Any, quick: bool) -> list[Experiment]:
        whole = Experiment.load(ROOT / "experiments" / "paper" / "table_endpoints.toml")
        fast = [e for e in whole.entries if e.cell.sampler in ("bisection(order=1)", "dus()")]
        return [replace(whole, entries=tuple(fast[:6])).reduced(2, 1)]

    paper.paper = some
    cli("reproduce", "paper", "--quick", "--workers", "1", "--device", "cpu", "--out", str(out))


def text(out: Path) -> None:
    """Texts of two tiny models, four settings, kept for a judge."""
    models = out.parent.parent / "models"
    content = (
        'kind = "text"\nname = "killed"\npresets = ["exact"]\nlength = 16\ncount = 4\n'
        'replayed = 2\npaths = 2\nreferences = 2\njudged = 4\njudge = ["all"]\n'
        f'masked = "{models / "mdm"}"\ncausal = "{models / "ar"}"\n'
        'samplers = ["random(block=4)", "bisection", "entropy(block=4)"]\n'
    )
    cli("bench", str(_beside(out, "text.toml", content)), "--out", str(out))


COMMANDS: dict[str, Callable[[Path], None]] = {
    "bench": bench,
    "bench, 2 workers": bench_two,
    "train": train,
    "evaluate": evaluate,
    "reproduce": reproduce,
    "text": text,
}
NEEDS_TEXT = ("text",)
FILES = {  # what a command leaves, by how it is read
    "lines": ("records.jsonl", "baselines-*.jsonl", "progress.jsonl"),
    "json": ("evaluation.json", "evaluations/*.json", "model.json", "best/model.json"),
    "bytes": ("model.safetensors", "best/model.safetensors", "samples/*", "tables/*"),
}


def _beside(out: Path, name: str, content: str) -> Path:
    """A file next to the directory, the same every time."""
    file = out.parent / name
    if not file.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        aside = out.parent / f".{name}"
        aside.write_text(content)
        aside.replace(file)
    return file


def make_models(folder: Path) -> None:
    """Two tiny models of text in `folder`/models, once."""
    from tests.tiny_books import tiny_books

    if not (folder / "models" / "ar" / "best").exists():
        for name in ("source", "data", "models"):
            shutil.rmtree(folder / name, ignore_errors=True)
        tiny_books(folder)


def lines_of(out: Path) -> list[tuple[str, str]]:
    """(key, content) of every whole line that a command wrote, in order."""
    found = []
    for pattern in FILES["lines"]:
        for path in sorted(out.glob(pattern)):
            for line in path.read_bytes().split(b"\n")[:-1]:
                row = _row(line)
                key = row.get("key") or f"step {row.get('step')}" if row else "no record"
                found.append((f"{path.name} {key}", _hash(_plain(row))))
    return found


def results(out: Path) -> dict[str, str]:
    """Everything a command leaves, by name: a hash of what must be equal."""
    found = dict(lines_of(out))
    for pattern in FILES["json"]:
        for path in out.glob(pattern):
            found[str(path.relative_to(out))] = _hash(_plain(_row(path.read_bytes())))
    for pattern in FILES["bytes"]:
        for path in out.glob(pattern):
            if path.suffix != ".csv":  # which say how long things took
                name = str(path.relative_to(out))
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _row(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """Without what a clock says."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in CLOCK}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]))
