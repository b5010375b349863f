"""What a run says while it runs: a live line, a file of numbers, TensorBoard and W&B if they are
installed (W&B only where it is set up: WANDB_API_KEY or WANDB_MODE in the environment).
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from maskwalk.errors import time_left
from maskwalk.resources import write_file
from maskwalk.training.settings import Job

FIRST, LAST = 10.0, 300.0  # seconds until a log file gets a line, and between two at most


class Log:
    """Writes `progress.jsonl` in the run's directory and keeps the line on the screen current."""

    def __init__(
        self, out: Path, jobs: list[Job], steps: int, done: int, live: bool, about: dict[str, Any]
    ) -> None:
        self.path, self.jobs, self.steps = out / "progress.jsonl", jobs, steps
        self.begun, self.first = time.monotonic(), done
        self.shown: dict[str, float] = {}
        out.mkdir(parents=True, exist_ok=True)
        lines = []
        if self.path.exists():
            lines = [line for line in self.path.read_text().splitlines() if _step(line) <= done]
        write_file(self.path, "".join(f"{line}\n" for line in lines).encode())
        self.live = live and sys.stderr.isatty()
        self.plain = live and not self.live
        self.due = FIRST
        self.board = _tensorboard(out)
        self.wandb = _wandb(out, about)

    def losses(self, done: int, losses: list[float]) -> None:
        """The mean losses since the last call."""
        self.write(done, {f"loss/{j.name}": v for j, v in zip(self.jobs, losses)}, file=False)
        self.shown["loss"] = sum(losses) / len(losses)
        floors = [j.floor for j in self.jobs if j.floor is not None]
        if floors:
            self.shown["floor"] = sum(floors) / len(floors)
        if self.live:
            self._say(f"\r\033[K{self.line(done)}")
        elif self.plain and (spent := time.monotonic() - self.begun) >= self.due:
            self.due = spent + min(spent, LAST)
            self._say(f"{self.line(done)}\n")

    def line(self, done: int) -> str:
        """step, loss, floor, what validation said, steps per second, time left."""
        spent = max(time.monotonic() - self.begun, 1e-9)
        rate = (done - self.first) / spent
        left = (self.steps - done) / rate if rate > 0 else float("nan")
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in self.shown.items())
        return f"step {done:,}/{self.steps:,}  {numbers}  {rate:.1f} steps/s  {time_left(left)}"

    def checkpoint(self, done: int, losses: list[float], metrics: list[dict[str, float]]) -> None:
        """What validation found at a checkpoint, one dictionary a model."""
        values = {f"loss/{job.name}": loss for job, loss in zip(self.jobs, losses)}
        for job, numbers in zip(self.jobs, metrics):
            values |= {f"{name}/{job.name}": value for name, value in numbers.items()}
        self.write(done, values)
        for name in ("bound", "impossible", "bound_rest", "coherence"):
            each = [numbers[name] for numbers in metrics if name in numbers]
            if each:
                self.shown[name] = sum(each) / len(each)
        if self.live or self.plain:
            self._say(("\r\033[K" if self.live else "") + self.line(done) + "\n")

    @staticmethod
    def _say(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def write(self, done: int, values: dict[str, float], file: bool = True) -> None:
        """One row of numbers to every place that keeps them."""
        if file:
            with self.path.open("a") as lines:
                lines.write(json.dumps({"step": done, **values}) + "\n")
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, done)
        if self.wandb is not None:
            self.wandb.log(values, step=done)

    def close(self) -> None:
        """Ends the line and closes the writers."""
        if self.live:
            sys.stderr.write("\n")
        if self.board is not None:
            self.board.close()
        if self.wandb is not None:
            self.wandb.finish()


def _step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")  # a line cut short by a kill


def _tensorboard(out: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except (ImportError, AttributeError):  # not installed, or not fit for this NumPy
        return None
    writer: Any = SummaryWriter
    return writer(str(out / "tensorboard"))


def _wandb(out: Path, about: dict[str, Any]) -> Any:
    if not {"WANDB_API_KEY", "WANDB_MODE"} & set(os.environ):
        return None
    try:
        import wandb
    except ImportError:
        return None
    return wandb.init(project="maskwalk", dir=str(out), config=about, resume="allow")
