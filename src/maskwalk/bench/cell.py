"""A cell: one combination of world, task, sampler, denoiser and draw, and what running it gives.

Running a cell is a pure function of it (and, for a network, of the kind of device): the same record
in any order and with any number of workers.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import exp
from typing import Any

import torch

from maskwalk import __version__
from maskwalk.analysis.losses import diagnose, exact_sequences
from maskwalk.analysis.replay import replayable
from maskwalk.bench.pictures import draw_pictures
from maskwalk.bench.records import SCHEMA, Record, TraceRecord
from maskwalk.decoding.decode import Decoded
from maskwalk.decoding.draw import DRAWS, Draw, mode_name, read_draw
from maskwalk.decoding.guard import Meter, believed_kind, is_foreign
from maskwalk.decoding.kinds import result_kind
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.processes import row_group
from maskwalk.decoding.shared import decode_rows
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.resolve import (
    WALK,
    build_denoiser,
    denoiser_notes,
    fingerprint,
    impossible_evidence,
    own_weights,
    resolve_world,
)
from maskwalk.errors import seed_number, whole
from maskwalk.specs.sources import code_of, sources
from maskwalk.worlds.metrics import METRICS, REPLAY, Sample, measure
from maskwalk.worlds.objects import is_object, object_code, object_notes
from maskwalk.worlds.sizes import CALLS, check_sequences
from maskwalk.worlds.tasks import TASKS, Prompts, build_prompts
from maskwalk.worlds.world import build_world

BATCH, ACCELERATOR_BATCH = 1024, 16_384  # sequences decoded at once; results do not depend on it
REPLAYED = 128  # exact sequences forced through the sampler at most
MOST_SEQUENCES = 10**9  # a cell; held-out sequences are numbered from there
MARGINALS = 2**17  # numbers per sequence of a full batch; a larger world has smaller batches


@dataclass(frozen=True)
class Cell:
    """One combination: everything its record depends on, as canonical specs."""

    world: str
    task: str
    sampler: str
    denoiser: str
    draw: str
    ties: str
    count: int
    per_prompt: int
    seed: int
    metrics: tuple[str, ...]

    @classmethod
    def checked(
        cls,
        *,
        task: str,
        sampler: str,
        denoiser: str = "oracle",
        preset: str = "exact",
        draw: str | None = None,
        ties: str | None = None,
        count: int = 512,
        per_prompt: int = 1,
        seed: int = 0,
        metrics: tuple[str, ...] | None = None,
        **place: Any,
    ) -> "Cell":
        """A cell from user input: specs made canonical, numbers validated.

        The world is `world`, or a world of walks by its parts (graph, walk, length, graph_seed); a
        trained denoiser brings its own. `draw` and `ties` change the preset. Without `metrics`, the
        world's own are measured.
        """
        unexpected = set(place) - {"world", *WALK}
        if unexpected:
            raise TypeError(f"unexpected arguments: {', '.join(sorted(unexpected))}")
        world = resolve_world(denoiser, place)
        drawn, broken = read_draw(preset, draw, ties)
        rule = SAMPLERS.build(sampler)
        if rule.needs_world:  # whether it can be is for the world to say
            rule.in_world(build_world(world))
        for name in metrics or ():
            METRICS.canonical(name)
        count = whole("count", count, 1, MOST_SEQUENCES)
        per_prompt = whole("per_prompt", per_prompt, 1, MOST_SEQUENCES)
        whole("count × per_prompt", count * per_prompt, 1, MOST_SEQUENCES)
        return cls(
            world=world,
            task=TASKS.canonical(task),
            sampler=SAMPLERS.canonical(sampler),
            denoiser=denoiser,
            draw=drawn,
            ties=broken,
            count=count,
            per_prompt=per_prompt,
            seed=seed_number("seed", seed),
            metrics=METRICS.default(world) if metrics is None else tuple(metrics),
        )

    @classmethod
    def from_json(cls, about: dict[str, Any]) -> "Cell":
        """What `asdict` wrote, after a journey through JSON."""
        return cls(**{**about, "metrics": tuple(about["metrics"])})

    @property
    def key(self) -> str:
        """A name for this combination and all it depends on, the same wherever it is computed."""
        return self.key_with(self.files)

    def key_with(self, files: dict[str, str]) -> str:
        """The key, where the result depends on these files of the user's."""
        about = {"schema": SCHEMA, "weights": fingerprint(self.denoiser), **asdict(self)}
        about |= {"sources": sorted(files.values())} if files else {}
        text = json.dumps(about, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def files(self) -> dict[str, str]:
        """The user's files that the result depends on, by name: their hashes."""
        drawn = (self.draw, self.ties, *self.metrics)
        named = sources(self.world, self.task, self.sampler, self.denoiser, *drawn)
        return named | object_code(self.world, self.denoiser)

    @property
    def version(self) -> tuple[str | None, ...]:
        """Changes with the user's files and with the weights."""
        return fingerprint(self.denoiser), *sorted(self.files.values())

    @property
    def mode(self) -> str:
        """How tokens are drawn, in a word: the preset, or the draw's spec."""
        return mode_name(self.draw, self.ties)


Version = tuple[str | None, ...]


@lru_cache(maxsize=2)
def _denoiser(name: str, device: str, world: str, version: Version) -> Denoiser:
    return build_denoiser(name, build_world(world), device)


@lru_cache(maxsize=4)
def _prompts(task: str, count: int, seed: int, world: str, version: Version) -> Prompts:
    return build_prompts(task, build_world(world), count, seed)


def run_cell(
    cell: Cell,
    device: str = "cpu",
    trace: bool | int = 1,
    sampler: Sampler | None = None,
    behind: Callable[[Denoiser], Denoiser] | None = None,
) -> tuple[Record, Decoded]:
    """Decodes and measures one cell; the record, and what was decoded.

    `sampler` runs in place of the one the cell names: one that is in no table. `behind`: what the
    denoiser is put behind while tokens are decoded.
    """
    version, files = cell.version, cell.files
    if sampler is not None:
        files = files | code_of(type(sampler))
    world, rows = build_world(cell.world), cell.count * cell.per_prompt
    check_sequences(rows, world.length)
    denoiser = denoiser_of(cell, device)
    sampler = (SAMPLERS.build(cell.sampler) if sampler is None else sampler).in_world(world)
    if hasattr(denoiser, "check_rows"):  # before the prompts, which may take long themselves
        denoiser.check_rows(rows, _least_calls(sampler, world.length))
    prompts = _prompts(cell.task, cell.count, cell.seed, cell.world, version)
    draw = DRAWS.build(cell.draw)
    start = prompts.tokens.repeat_interleave(cell.per_prompt, 0).to(device)
    start = torch.where(start == world.vocab_size, denoiser.mask_id, start)
    batch = BATCH if start.device.type == "cpu" else ACCELERATOR_BATCH
    batch = max(1, min(batch, batch * MARGINALS // (world.length * world.vocab_size)))
    asked_before = impossible_evidence(denoiser)
    meter = Meter() if is_foreign(sampler) and row_group() is None else None
    asked = denoiser if behind is None else behind(denoiser)
    began = time.perf_counter()
    decoded = decode_rows(
        sampler,
        asked if meter is None else meter.on(asked),
        start,
        seed=cell.seed,
        batch=batch,
        draw=draw,
        ties=cell.ties,
        trace=trace,
    )
    seconds = time.perf_counter() - began
    if meter is not None:
        meter.check(sampler, decoded, int(getattr(denoiser, "passes", 1)))
    sample = Sample(
        world=world,
        tokens=decoded.tokens,
        calls=decoded.calls,
        prompts=torch.arange(cell.count).repeat_interleave(cell.per_prompt),
        masked=(start == denoiser.mask_id).sum(1).cpu(),
        task=prompts,
        seed=cell.seed,
        readings=readings(cell, denoiser, sampler, device),
    )
    record: Record = {
        "schema": SCHEMA,
        "key": cell.key_with(files),
        "version": __version__,
        "world": cell.world,
        "task": cell.task,
        "sampler": cell.sampler,
        "denoiser": cell.denoiser,
        "mode": cell.mode,
        "kind": _kind(sampler, draw, decoded),
        "draw": cell.draw,
        "ties": cell.ties,
        "count": cell.count,
        "per_prompt": cell.per_prompt,
        "seed": cell.seed,
        "metrics": measure(sample, cell.metrics),
        "seconds": round(max(seconds, 0.0), 4),  # a clock may be set back
        "trace": _story(decoded, sample) if trace else None,
        "notes": [
            *denoiser_notes(denoiser),
            *object_notes(world=cell.world, denoiser=cell.denoiser),
        ],
    }
    impossible = impossible_evidence(denoiser)
    if impossible is not None and asked_before is not None:
        group, found = row_group(), impossible - asked_before
        record["impossible"] = found if group is None or trace is True else group.sum(found)
    if known := files | own_weights(cell.denoiser):
        record["sources"] = known
    described = METRICS.described(cell.metrics)
    if described:
        record["described"] = described
    return record, decoded


def _least_calls(sampler: Sampler, length: int) -> int:
    """How often it asks, as far as its settings say: in blocks of a size, for each of them."""
    block = getattr(sampler, "block", None)
    whole_blocks = isinstance(block, int) and block > 0
    return max(CALLS, length // block) if whole_blocks and block is not None else CALLS


def denoiser_of(cell: Cell, device: str) -> Denoiser:
    """The cell's denoiser: of the last ones by name the same, an object anew."""
    kept = _denoiser.__wrapped__ if is_object(cell.denoiser) else _denoiser
    return kept(cell.denoiser, device, cell.world, cell.version)


def exact_of(cell: Cell, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The sequences that a replay of the cell is on, and which of their tokens are given."""
    place = (cell.world, cell.task, min(cell.count, REPLAYED), cell.seed, device, cell.version)
    return _exact_sequences(*place)


@lru_cache(maxsize=4)
def _exact_sequences(
    world: str, task: str, count: int, seed: int, device: str, version: Version
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences to replay, and which of their tokens are given."""
    law = build_world(world)
    sequences, given = exact_sequences(law, _prompts(task, count, seed, world, version), seed)
    return sequences.to(device), given.to(device)


def readings(cell: Cell, denoiser: Denoiser, sampler: Sampler, device: str) -> dict[str, Any]:
    """What exact sequences forced through the sampler lose, where a metric asks for it."""
    draw, world = DRAWS.build(cell.draw), build_world(cell.world)
    names = {METRICS.name_of(key) for key in cell.metrics}
    if not names & set(METRICS.reading(REPLAY)) or not replayable(sampler, draw):
        return {}
    sequences, given = exact_of(cell, device)
    row = diagnose(
        world,
        denoiser,
        sampler,
        sequences,
        given,
        seed=cell.seed,
        draw=draw,
        ties=cell.ties,
    )
    return {REPLAY: row}


def _kind(sampler: Sampler, draw: Draw, decoded: Decoded) -> str:
    """exact, factorised or shaped: what the sampler says, its draws, and what it did."""
    one = bool(((decoded.widest <= 1) & (decoded.calls <= decoded.rounds)).all())
    return result_kind(believed_kind(sampler), draw.exact, one)


def cell_record(cell: dict[str, Any], traces: bool, device: str) -> Record:
    """The job of an experiment's cell (run.py)."""
    return run_cell(Cell.from_json(cell), device, trace=int(traces))[0]


def _story(decoded: Decoded, sample: Sample) -> TraceRecord | None:
    """The unmasking of the first sequence, for the report."""
    if decoded.trace is None:
        return None
    events = decoded.trace.events
    first = events["sequence"] == decoded.trace.ids[0]
    entropy: list[float | None] = [None] * decoded.tokens.shape[1]
    prob = entropy.copy()
    columns = (events[name][first] for name in ("position", "entropy", "log_prob"))
    for position, nats, log_prob in zip(*(column.tolist() for column in columns)):
        entropy[position] = round(nats, 4) if nats == nats else None
        prob[position] = round(exp(log_prob), 4) if log_prob == log_prob else None
    story: TraceRecord = {
        "tokens": decoded.tokens[0].tolist(),
        "rounds": decoded.trace.reveal_rounds()[0].tolist(),
        "entropy": entropy,
        "prob": prob,
        "valid": None if sample.valid is None else sample.valid[0].tolist(),
    }
    drawn = draw_pictures(sample.world, decoded.trace)
    if drawn:
        story["pictures"], story["picture_rounds"] = drawn
    return story
