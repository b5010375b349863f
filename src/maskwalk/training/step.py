"""One training step of all models: gather, mask, forward, backward, clip, AdamW, average.

On an accelerator the step is compiled code in one CUDA graph: the step counter, the learning rate
and the losses live on the device, so a replay needs nothing from the host and the host never waits.
On a CPU the same functions run eagerly, in float32. Weights, moments and averages are float32; on
an accelerator the matrices are also kept in bfloat16, written by the update itself, and it is this
copy that is differentiated.

Gradients of several processes are summed before clipping, so every process makes the same update.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor

from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError
from maskwalk.training.data import Walks
from maskwalk.training.looks import Looks
from maskwalk.training.maskings import MASKINGS
from maskwalk.training.objective import Noise, loss
from maskwalk.training.schedule import averaging, learning_rate
from maskwalk.training.settings import Job, Settings

RING = 256  # losses the device keeps before the host has to read them


@dataclass
class Part:
    """One part of the models' weights (the matrices, or the rest) and what AdamW keeps of it."""

    weights: Float[Tensor, "models size"]
    first: Float[Tensor, "models size"]  # running mean of the gradient
    second: Float[Tensor, "models size"]  # and of its square
    average: Float[Tensor, "models size"]  # the exponential moving average that is shipped

    @classmethod
    def start(cls, initial: Float[Tensor, "models size"]) -> "Part":
        """Before the first step."""
        zero = torch.zeros_like(initial)
        return cls(initial.clone(), zero, zero.clone(), initial.clone())

    def tensors(self) -> dict[str, Tensor]:
        """By name, for checkpoints."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def update(
    settings: Settings,
    parts: list[Part],
    gradients: list[Tensor],
    copy: Tensor | None,
    step: Int[Tensor, ""],
) -> None:
    """Clips each model's gradient to its own norm, then AdamW and the average, in place."""
    squares = [g.to(torch.float32).square().sum(1, keepdim=True) for g in gradients]
    norm = torch.stack(squares).sum(0).sqrt()
    clip = (settings.clip / (norm + 1e-6)).clamp(max=1.0)
    rate, updates = learning_rate(settings, step), step + 1
    stay = averaging(settings, updates).to(torch.float32)
    n = updates.to(torch.float64)
    size = (rate / (1 - settings.beta1**n)).to(torch.float32)
    root = (1 - settings.beta2**n).sqrt().to(torch.float32)
    decay = (1 - rate * settings.weight_decay).to(torch.float32)
    for part, gradient in zip(parts, gradients):
        g = gradient.to(torch.float32) * clip
        part.first.lerp_(g, 1 - settings.beta1)
        part.second.mul_(settings.beta2).addcmul_(g, g, value=1 - settings.beta2)
        part.weights.mul_(decay).sub_(
            size * (part.first / (part.second.sqrt() / root + settings.eps))
        )
        part.average.lerp_(part.weights, 1 - stay)
    if copy is not None:
        copy.copy_(parts[0].weights)
    step.add_(1)


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Products of float32 on an accelerator's tensor cores, whose inputs keep 11 bits.

    Those of a step are a chain's messages, sums of positive terms: a training step bears that
    error, and three models with a chain take 5.0 ms instead of 8.2. Answers stay in full float32.
    """
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Stepper:
    """Trains the models of a run, `advance(n)` steps at a time."""

    def __init__(
        self,
        config: DDiTConfig,
        jobs: list[Job],
        settings: Settings,
        device: str | torch.device = "cpu",
        rank: int = 0,
        world: int = 1,
        compiled: bool | None = None,
        graph: bool | None = None,
    ) -> None:
        self.config, self.settings, self.world = config, settings, world
        self.device = torch.device(device)
        on_cuda = self.device.type == "cuda"
        self.layout = layout(config)
        if settings.batch % world:
            raise MaskwalkError(
                f"A batch of {settings.batch} cannot be shared evenly by {world} processes."
            )
        share, length = settings.batch // world, jobs[0].walks.shape[1]
        seeds, rates = [job.seed for job in jobs], [job.dropout for job in jobs]
        maskings = [MASKINGS.build(job.masking) for job in jobs]
        self.noise = Noise(
            config, seeds, rates, length, settings.batch, rank * share, share, self.device, maskings
        )
        self.walks = Walks([job.walks for job in jobs], self.noise.seeds, settings.batch)
        self.walks.shuffle(0)
        initial = self.layout.initial(seeds).to(self.device)
        self.parts = [Part.start(part) for part in self.layout.parts(initial)]
        self.step, self.done = torch.zeros((), dtype=torch.int64, device=self.device), 0
        self.ring = torch.zeros(RING, len(jobs), device=self.device)
        self.angles = config.angles(length, self.device)
        self.copy = self.parts[0].weights.to(torch.bfloat16) if on_cuda else None
        self._objective: Any = self.objective
        self._update: Any = update
        if on_cuda if compiled is None else compiled:
            # Said while compiling where they are off outside of a step.
            warnings.filterwarnings("ignore", "TensorFloat32 tensor cores", UserWarning)
            self._objective = torch.compile(self.objective, fullgraph=True, dynamic=False)
            self._update = torch.compile(update, fullgraph=True, dynamic=False)
        self._jobs = jobs
        self._seen: NetworkDenoiser | None = None
        self._look()
        self._graph: torch.cuda.CUDAGraph | None = None
        if (on_cuda and world == 1) if graph is None else graph:
            self._capture()

    def objective(self, matrices: Tensor, singles: Tensor) -> Tensor:
        """Every model's share of its loss at the current step."""
        weights = self.layout.grouped(matrices, singles)
        walks = self.walks.gather(self.step, self.noise.samples)
        return loss(self.config, weights, walks, self.angles, self.noise, self.step)

    def _one(self) -> None:
        matrices = self.parts[0].weights if self.copy is None else self.copy
        leaves = [t.detach().requires_grad_() for t in (matrices, self.parts[1].weights)]
        with tensor_cores():
            losses = self._objective(*leaves)
            gradients = list(torch.autograd.grad(losses.sum(), leaves))
        losses = losses.detach()
        if self.world > 1:
            gradients = [g.to(torch.float32) for g in gradients]
            for tensor in [*gradients, losses]:
                dist.all_reduce(tensor)
        self.ring.index_copy_(0, (self.step % RING)[None], losses[None])
        self._update(self.settings, self.parts, gradients, self.copy, self.step)

    def _capture(self) -> None:
        """Records one step as a CUDA graph; the rehearsals before it leave no trace."""
        mutable = [t for part in self.parts for t in part.tensors().values()]
        mutable += [self.step, self.ring] + ([] if self.copy is None else [self.copy])
        copies = [t.clone() for t in mutable]
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(3):
                self._one()
        torch.cuda.current_stream(self.device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._one()
        for tensor, before in zip(mutable, copies):
            tensor.copy_(before)

    def _look(self) -> None:
        """Models that learn in contexts of their own making: those of this step's weights."""
        for model, looks in self.noise.looks.items():
            if self.done % looks.masking.every:
                continue
            weights = self.averages()[model]
            if self._seen is None:
                self._seen = NetworkDenoiser(self.config, weights, device=self.device)
            self._seen.load(weights)
            job, look = self._jobs[model], self.done // looks.masking.every
            looks.refresh(self._seen, job.walks.to(self.device), job.seed, look)

    def _until_look(self) -> int:
        """How many steps from this one no model is looked at again."""
        periods = [looks.masking.every for looks in self.noise.looks.values()]
        return min((period - self.done % period for period in periods), default=RING)

    def advance(self, count: int) -> Float[Tensor, "count models"]:
        """Makes `count` steps; their losses, on the device (reading them waits for the steps)."""
        losses, left = [], count
        while left:
            now = min(
                left, self.walks.until(self.done), RING - self.done % RING, self._until_look()
            )
            for _ in range(now):
                if self._graph is None:
                    self._one()
                else:
                    self._graph.replay()
            begin = self.done % RING
            losses.append(self.ring[begin : begin + now].clone())
            self.done += now
            left -= now
            self.walks.shuffle(self.done)
            self._look()
        return torch.cat(losses)

    def averages(self) -> Float[Tensor, "models size"]:
        """The averaged weights of every model: what is evaluated and shipped."""
        return torch.cat([part.average for part in self.parts], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint must hold, besides how many steps are done."""
        groups: list[tuple[str, Part | Looks]] = [*zip(("matrices", "singles"), self.parts)]
        groups += [(f"looks.{model}", table) for model, table in self.noise.looks.items()]
        return {
            f"{name}.{key}": tensor
            for name, part in groups
            for key, tensor in part.tensors().items()
        }

    def load(self, tensors: dict[str, Tensor], done: int) -> None:
        """Continues from a checkpoint."""
        for name, mine in self.tensors().items():
            mine.copy_(tensors[name])
        if self.copy is not None:
            self.copy.copy_(self.parts[0].weights)
        self.done = done
        self.step.fill_(done)
        self.walks.shuffle(done, resume=True)


def arithmetic(config: DDiTConfig, batch: int, length: int) -> float:
    """Floating-point operations of one step of one model: three products per weight and token.

    Attention that looks back only has half the pairs.
    """
    d = config.hidden
    weights = config.blocks * 12 * d * d + config.vocab_size * d
    attention = config.blocks * (1 if config.causal else 2) * length * d
    return 3 * 2.0 * batch * length * (weights + attention)
