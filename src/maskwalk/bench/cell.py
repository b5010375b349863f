"""A cell: one combination of graph, task, sampler, denoiser and preset, and what running it gives.

Running a cell is a pure function of it (and, for a network, of the kind of device): the same record
in any order and with any number of workers.
"""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import torch

from maskwalk import __version__
from maskwalk.bench.records import Record
from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import preset
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.resolve import build_denoiser, denoiser_notes, fingerprint, settle
from maskwalk.errors import whole
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.worlds.walks.build import build_law
from maskwalk.worlds.walks.metrics import METRICS, Sample, measure
from maskwalk.worlds.walks.tasks import TASKS, Prompts

SCHEMA = 1
BATCH, ACCELERATOR_BATCH = 1024, 16_384  # sequences decoded at once; results do not depend on it
DEFAULT_METRICS = (
    "coherence",
    "transition_validity",
    "first_invalid",
    "tv1",
    "calls",
    "tokens_per_call",
)


@dataclass(frozen=True)
class Cell:
    """One combination: everything its record depends on, as canonical specs."""

    graph: str
    graph_seed: int
    walk: str
    length: int
    task: str
    sampler: str
    denoiser: str = "oracle"
    preset: str = "exact"
    count: int = 512
    per_prompt: int = 1
    seed: int = 0
    metrics: tuple[str, ...] = DEFAULT_METRICS

    @classmethod
    def checked(cls, **given: Any) -> "Cell":
        """A cell from user input: specs made canonical, numbers validated.

        A trained denoiser brings its graph, walk, length and graph seed.
        """
        given |= settle(given.get("denoiser", "oracle"), given)
        given["task"] = TASKS.canonical(given["task"])
        given["sampler"] = SAMPLERS.canonical(given["sampler"])
        SAMPLERS.build(given["sampler"])
        preset(given.get("preset", "exact"))
        whole("length", given["length"], 2, 65_535)
        for field, default in (("count", 512), ("per_prompt", 1)):
            whole(field, given.get(field, default), 1)
        for field in ("seed", "graph_seed"):
            whole(field, given.get(field, 0), 0, 2**63 - 1)
        for name in given.get("metrics", ()):
            METRICS[name]
        return cls(**given)

    @property
    def key(self) -> str:
        """A name for this combination, the same wherever it is computed."""
        about = {"schema": SCHEMA, "weights": fingerprint(self.denoiser), **asdict(self)}
        text = json.dumps(about, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=2)
def _denoiser(name: str, device: str, *law: Any) -> Denoiser:
    return build_denoiser(name, build_law(*law), device)


@lru_cache(maxsize=4)
def _prompts(task: str, count: int, seed: int, *law: Any) -> Prompts:
    return TASKS.build(task, law=build_law(*law), count=count, seed=seed)


def run_cell(
    cell: Cell, device: str = "cpu", trace: bool | int = 1, sampler: Sampler | None = None
) -> tuple[Record, Decoded]:
    """Decodes and measures one cell; the record, and what was decoded.

    `sampler` runs in place of the one the cell names: one that is in no table.
    """
    place = (cell.graph, cell.graph_seed, cell.walk, cell.length)
    law, denoiser = build_law(*place), _denoiser(cell.denoiser, device, *place)
    prompts = _prompts(cell.task, cell.count, cell.seed, *place)
    draw, ties = preset(cell.preset)
    start = prompts.tokens.repeat_interleave(cell.per_prompt, 0).to(device)
    start = torch.where(start == law.vocab_size, denoiser.mask_id, start)
    sampler = SAMPLERS.build(cell.sampler) if sampler is None else sampler
    batch = BATCH if start.device.type == "cpu" else ACCELERATOR_BATCH
    began = time.perf_counter()
    parts = [
        decode(
            sampler,
            denoiser,
            part,
            streams=Streams(cell.seed, torch.arange(first, first + len(part), device=device)),
            draw=draw,
            ties=ties,
            trace=trace if first == 0 else False,
        )
        for first, part in zip(range(0, len(start), batch), start.split(batch))
    ]
    decoded = _join(parts)
    seconds = time.perf_counter() - began
    sample = Sample(
        law=law,
        tokens=decoded.tokens,
        calls=decoded.calls,
        prompts=torch.arange(cell.count).repeat_interleave(cell.per_prompt),
        masked=(start == denoiser.mask_id).sum(1).cpu(),
        conditional=prompts.conditional,
        seed=cell.seed,
        separation=prompts.separation,
    )
    record: Record = {"schema": SCHEMA, "key": cell.key, "version": __version__}
    record |= asdict(cell) | {"draw": asdict(draw), "ties": ties}
    record["metrics"] = measure(sample, cell.metrics)
    record["seconds"] = round(seconds, 4)
    record["trace"] = _story(decoded, sample) if trace else None
    record["notes"] = list(denoiser_notes(denoiser))
    return record, decoded


def _join(parts: list[Decoded]) -> Decoded:
    tokens, calls, rounds = (
        torch.cat([getattr(p, name).cpu() for p in parts]) for name in ("tokens", "calls", "rounds")
    )
    return Decoded(tokens, calls, rounds, parts[0].trace)


def _story(decoded: Decoded, sample: Sample) -> Record | None:
    """The unmasking of the first sequence, for the report."""
    if decoded.trace is None:
        return None
    events = decoded.trace.events
    first = events["sequence"] == decoded.trace.ids[0]
    entropy: list[float | None] = [None] * decoded.tokens.shape[1]
    for position, nats in zip(
        events["position"][first].tolist(), events["entropy"][first].tolist()
    ):
        entropy[position] = round(nats, 4) if nats == nats else None
    return {
        "tokens": decoded.tokens[0].tolist(),
        "rounds": decoded.trace.reveal_rounds()[0].tolist(),
        "entropy": entropy,
        "valid": sample.valid[0].tolist(),
    }
