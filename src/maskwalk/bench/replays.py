"""KL per token of settings whose records hold none: exact sequences replayed, nothing decoded.

`evaluate` replays the policy it is on, not the baselines it knows, and the atlas's run replayed
nothing. A leaderboard compares the KL of all: what is missing is measured as the metric `replay_kl`
of the same cell would be, and kept in DIR/replays.jsonl, a row for every cell.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import torch

from maskwalk.analysis.replay import replayable
from maskwalk.bench.cell import Cell, denoiser_of, exact_of, readings
from maskwalk.bench.labels import read
from maskwalk.bench.law_cells import only_law
from maskwalk.bench.plan import Job
from maskwalk.bench.record_shapes import ESTIMATE, NAME
from maskwalk.bench.records import REMEDY, Record, read_rows
from maskwalk.decoding.draw import DRAWS
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.denoisers.resolve import own_weights
from maskwalk.errors import MaskwalkError
from maskwalk.reading import anything, maybe, or_packed, table
from maskwalk.worlds.metrics import METRICS, Sample, measure
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.world import WORLDS, build_world

FILE = "replays.jsonl"
KL = "replay_kl"
PLACE = ("world", "task", "sampler", "denoiser", "draw", "ties", "count", "seed")
ROW = table(
    {"key": NAME, KL: maybe(ESTIMATE)} | dict.fromkeys(PLACE, anything), needs=("key", KL, *PLACE)
)
TABLES: dict[str, Any] = {"world": WORLDS, "task": TASKS, "sampler": SAMPLERS, "draw": DRAWS}
Row = dict[str, Any]


def replay_jobs(records: Sequence[Record], calls: float) -> list[Job]:
    """A job for every setting within so many calls whose record holds no KL, and that has one."""
    cells = [cell for record in records if (cell := _cell(record, calls)) is not None]
    # One world after the other, so that a process builds each once.
    order = sorted(cells, key=lambda cell: (cell.denoiser, cell.world, cell.task))
    return [_job(cell) for cell in dict.fromkeys(order)]


def _cell(record: Record, calls: float) -> Cell | None:
    cost = record["metrics"].get(METRICS.cost.key)
    if only_law(record) or KL in record["metrics"] or not cost or cost["value"] > calls + 1e-9:
        return None
    if read(record["sampler"]).name not in SAMPLERS:
        return None  # of somebody's file, which is not at hand
    place: dict[str, Any] = {name: record[name] for name in PLACE}  # type: ignore[literal-required]
    try:
        cell = Cell.checked(**place, metrics=(KL,))
        world = build_world(cell.world)
        sampler = SAMPLERS.build(cell.sampler).in_world(world)
        known = world.oracle() is not None and replayable(sampler, DRAWS.build(cell.draw))
    except MaskwalkError:
        return None  # not on this machine, or not any more
    return cell if known else None


def _job(cell: Cell) -> Job:
    return Job(
        cell.key,
        "replay",
        {"cell": asdict(cell)},
        says={name: getattr(cell, name) for name in PLACE},
        sources=cell.files | own_weights(cell.denoiser),
    )


def replay_row(cell: dict[str, Any], device: str) -> Row:
    """The job: the KL per token of one setting; null where exact sequences can never be drawn."""
    known = Cell.from_json(cell)
    world = build_world(known.world)
    sampler = SAMPLERS.build(known.sampler).in_world(world)
    sequences, given = exact_of(known, device)
    denoiser = denoiser_of(known, device)
    sample = Sample(
        world=world,
        tokens=sequences.cpu(),
        calls=None,
        prompts=torch.arange(len(sequences)),
        masked=(~given).sum(1).cpu(),
        seed=known.seed,
        readings=readings(known, denoiser, sampler, device),
    )
    files = known.files | own_weights(known.denoiser)
    place = {name: getattr(known, name) for name in PLACE}
    return place | measure(sample, (KL,)) | ({"sources": files} if files else {})


def load_replays(path: Path) -> list[Row]:
    """The rows of a folder or file, packed or not; none where there is no file."""
    path = or_packed(path / FILE if path.is_dir() else path)
    if not path.exists():
        return []
    return list(read_rows(path, ROW, "a row of `maskwalk leaderboard`", REMEDY))


def with_rows(records: Sequence[Record], rows: Sequence[Row]) -> list[Record]:
    """The same records; those without a KL have that of the row of their cell, where one has it."""
    by_place = {_place(row): row[KL] for row in rows}  # the last counts
    made = []
    for record in records:
        nats = None if KL in record["metrics"] else by_place.get(_place(record))
        if nats is not None:
            record = cast(Record, {**record, "metrics": {**record["metrics"], KL: nats}})
        made.append(record)
    return made


def _place(row: Any) -> tuple[str, ...]:
    return tuple(_spelled(name, str(row.get(name))) for name in PLACE)


@lru_cache(maxsize=2**16)
def _spelled(name: str, text: str) -> str:
    """A spec as this version spells it; what it does not know stays as it is."""
    try:
        return TABLES[name].canonical(text) if name in TABLES else text
    except MaskwalkError:
        return text


__all__ = ["FILE", "load_replays", "replay_jobs", "replay_row", "with_rows"]
