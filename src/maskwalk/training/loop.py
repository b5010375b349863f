"""The training loop: steps, and every so often a checkpoint and a look at how good the models are.

Validation comes in as a callback, so nothing here knows about sampling: `validate(name, denoiser)`
returns named numbers, of which `coherence` decides which weights are kept as best; without it the
bound on held-out walks does, which is computed here, beside the floor of a perfect denoiser.

    OUT/model.safetensors, model.json    the averaged weights at the end (in OUT/NAME for several)
    OUT/best/                            those of the best validation so far
    OUT/checkpoint-STEP/                 everything `resume` needs
    OUT/progress.jsonl                   the numbers, one line a checkpoint
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from maskwalk.decoding.processes import Group
from maskwalk.denoisers.files import Pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError
from maskwalk.resources import held
from maskwalk.stats import standard_errors
from maskwalk.training.checkpoints import checkpoints, identity, load_checkpoint, save_checkpoint
from maskwalk.training.logs import Log
from maskwalk.training.maskings import MASKINGS, check_output
from maskwalk.training.objective import split_bound
from maskwalk.training.settings import PLAIN, Job, Settings
from maskwalk.training.step import Stepper

Validate = Callable[[str, NetworkDenoiser], dict[str, float]]


class Judge:
    """Looks at the averaged weights of every model of a run."""

    def __init__(self, stepper: Stepper, jobs: list[Job], validate: Validate | None) -> None:
        self.stepper, self.jobs, self.validate = stepper, jobs, validate
        self.denoiser: NetworkDenoiser | None = None
        held_walks = [job.held for job in jobs if job.held is not None]
        self.held: Tensor | None = None
        if len(held_walks) == len(jobs):
            count = min(len(walks) for walks in held_walks)
            self.held = torch.stack([walks[:count] for walks in held_walks]).to(stepper.device)

    def bounds(self) -> list[dict[str, float]]:
        """The bound on the held-out walks, its standard error, and the floor where it is known.

        Where tokens of these walks have p = 0 there is no bound: the share of such tokens, and the
        nats per token of the others.
        """
        if self.held is None:
            return [{} for _ in self.jobs]
        config, layout = self.stepper.config, self.stepper.layout
        narrow = torch.float16 if self.held.is_cuda else torch.float32
        matrices, singles = layout.parts(self.stepper.averages())
        weights = layout.grouped(matrices.to(narrow), singles)
        nats, lost = split_bound(config, weights, self.held, self.stepper.angles)
        error = standard_errors(nats, 1).nan_to_num(0.0)
        result = []
        for job, *numbers in zip(
            self.jobs, *(x.tolist() for x in (nats.mean(1), error, lost.mean(1)))
        ):
            floor = {} if job.floor is None else {"floor": job.floor}
            result.append(_held_out(*numbers) | floor)
        return result

    def __call__(self) -> list[dict[str, float]]:
        """Everything known about each model now."""
        metrics = self.bounds()
        if self.validate is None:
            return metrics
        for job, numbers, weights in zip(self.jobs, metrics, self.stepper.averages()):
            if self.denoiser is None:
                self.denoiser = NetworkDenoiser(
                    self.stepper.config, weights, device=self.stepper.device
                )
            self.denoiser.load(weights)
            numbers |= self.validate(job.name, self.denoiser)
        return metrics


def _held_out(nats: float, error: float, lost: float) -> dict[str, float]:
    """What a file says: a bound, or, where none is finite, what is impossible and the rest."""
    if lost == 0:
        return {"bound": nats, "bound_se": error}
    return {"impossible": lost, "bound_rest": nats / max(1 - lost, 1e-9)}


def train(
    config: DDiTConfig,
    jobs: list[Job],
    settings: Settings,
    out: str | Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    validate: Validate | None = None,
    live: bool = True,
    about: list[dict[str, Any]] | None = None,
) -> list[Pretrained]:
    """Trains all jobs together; returns (and writes) their averaged weights.

    `about` is what each model's file should say of it (graph, walk, …). Under `torchrun` every
    process calls this with the same arguments, and the first one writes.
    """
    _check(config, jobs)
    out, about = Path(out), about or [{} for _ in jobs]
    with Group(device) as group, _alone(out, group):
        run = identity(config, jobs, settings, group.world)
        if not resume and checkpoints(out):
            raise MaskwalkError(
                f"{out} already holds a run; continue it with --resume, or name another directory."
            )
        checkpoint = load_checkpoint(out, run) if resume else None
        stepper = Stepper(config, jobs, settings, group.device, group.rank, group.world)
        progress: dict[str, Any] = {"seconds": 0.0, "best": {}}
        if checkpoint is not None:
            stepper.load(checkpoint[1], checkpoint[0])
            progress = checkpoint[2]
        group.wait()
        log = Log(out, jobs, settings.steps, stepper.done, live, run) if group.first else None
        judge = Judge(stepper, jobs, validate if group.first else None)
        metrics: list[dict[str, float]] = [{} for _ in jobs]
        while stepper.done < settings.steps:
            begun = time.monotonic()
            goal = min(settings.steps, (stepper.done // settings.every + 1) * settings.every)
            losses = _advance(stepper, goal, log)
            progress["seconds"] += time.monotonic() - begun
            if log is not None:
                metrics = judge()
                log.checkpoint(stepper.done, losses, metrics)
                _keep_best(stepper, jobs, metrics, progress, out, about)
                save_checkpoint(out, run, stepper.done, stepper.tensors(), progress)
        if log is not None:
            log.close()
        metrics = metrics if any(metrics) or log is None else judge()
        return _finish(stepper, jobs, settings, metrics, progress, out, about, group.first)


@contextmanager
def _alone(out: Path, group: Group) -> Iterator[None]:
    """No other run in `out` meanwhile; a full disk is a sentence that says how to go on."""
    try:
        with held(out, "training into") if group.first else nullcontext():
            yield
    except OSError as problem:
        where = problem.filename or out
        if out.exists() and not out.is_dir():
            raise MaskwalkError(f"{out} is a file; --out names a folder: choose another.") from None
        raise MaskwalkError(
            f"Cannot write {where}: {problem.strerror}. The last checkpoint in {out} is intact; "
            "make room and run the same command with --resume."
        ) from None


def _check(config: DDiTConfig, jobs: list[Job]) -> None:
    for job in jobs:
        check_output(MASKINGS.build(job.masking), job.masking, config)
        low, high = int(job.walks.min()), int(job.walks.max())
        if low < 0 or high >= config.vocab_size:
            raise MaskwalkError(
                f"The walks of {job.name!r} hold tokens {low} to {high}; the network's vocabulary "
                f"is 0 to {config.vocab_size - 1}."
            )


def _advance(stepper: Stepper, goal: int, log: Log | None) -> list[float]:
    """Steps up to `goal`, showing the loss about once a second; the mean losses on the way."""
    total = torch.zeros(stepper.ring.shape[1], dtype=torch.float64)
    start, chunk = stepper.done, 1
    while stepper.done < goal:
        begun = time.monotonic()
        now = min(chunk, goal - stepper.done)
        losses = stepper.advance(now).to("cpu", torch.float64)
        if not bool(losses.isfinite().all()):
            raise MaskwalkError(
                f"The loss is not finite near step {stepper.done}; lower the learning rate."
            )
        total += losses.sum(0)
        chunk = max(1, int(now / max(time.monotonic() - begun, 1e-3)))
        if log is not None:
            log.losses(stepper.done, losses.mean(0).tolist())
    return (total / max(stepper.done - start, 1)).tolist()


def _model(stepper: Stepper, index: int, about: dict[str, Any]) -> Pretrained:
    return Pretrained(stepper.config, stepper.averages()[index].cpu(), about)


def _place(out: Path, jobs: list[Job], index: int) -> Path:
    return out if len(jobs) == 1 else out / jobs[index].name


def _merit(numbers: dict[str, float]) -> tuple[float, float, float]:
    """Higher is better: coherence, else the bound; among infinite ones, fewer impossible tokens."""
    first = numbers.get("coherence", -numbers.get("bound", float("inf")))
    return first, -numbers.get("impossible", 0.0), -numbers.get("bound_rest", 0.0)


def _keep_best(
    stepper: Stepper,
    jobs: list[Job],
    found: list[dict[str, float]],
    progress: dict[str, Any],
    out: Path,
    about: list[dict[str, Any]],
) -> None:
    for index, (job, numbers) in enumerate(zip(jobs, found)):
        best = progress["best"].get(job.name)
        if numbers and (best is None or _merit(numbers) > _merit(best)):
            progress["best"][job.name] = {"step": stepper.done, **numbers}
            description = {**about[index], "step": stepper.done, **numbers}
            save_pretrained(_model(stepper, index, description), _place(out, jobs, index) / "best")


def _finish(
    stepper: Stepper,
    jobs: list[Job],
    settings: Settings,
    found: list[dict[str, float]],
    progress: dict[str, Any],
    out: Path,
    about: list[dict[str, Any]],
    write: bool,
) -> list[Pretrained]:
    models = []
    for index, job in enumerate(jobs):
        known = {
            **about[index],
            "settings": {**settings.to_json(), "seed": job.seed, "dropout": job.dropout},
            **({} if job.masking == PLAIN else {"masking": job.masking}),
            "walks": len(job.walks),
            "seconds": round(progress["seconds"], 1),
            **found[index],
        }
        models.append(_model(stepper, index, known))
        if write:
            save_pretrained(models[-1], _place(out, jobs, index))
    return models
