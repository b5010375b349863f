"""The jobs of a diagnosis: a row of losses for every sampler in one world, kept in a file.

Everything but the sampler is the same for all rows, so a process sets it up once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from maskwalk.analysis.losses import (
    Plans,
    best_plans,
    diagnose,
    exact_sequences,
    for_json,
    optimal,
)
from maskwalk.analysis.replay import check_replayable, truth_of
from maskwalk.bench.cell import Cell
from maskwalk.bench.plan import Job
from maskwalk.bench.record_shapes import checked_row
from maskwalk.bench.records import REMEDY, read_rows
from maskwalk.decoding.draw import DRAWS
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.resolve import build_denoiser, own_weights
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.tasks import build_prompts
from maskwalk.worlds.world import World, build_world

FILE = "diagnosis.jsonl"
PLACE = ("world", "task", "draw", "ties", "seed")
Row = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """What every sampler of a diagnosis meets: the same exact sequences."""

    world: World
    denoiser: Denoiser
    sequences: torch.Tensor
    given: torch.Tensor
    plans: Plans | None


def stage(cell: Cell, device: str) -> Stage:
    """The stage of a cell, whatever its sampler."""
    return _stage(replace(cell, sampler=""), device, cell.version)


@lru_cache(maxsize=1)
def _stage(cell: Cell, device: str, version: tuple[str | None, ...]) -> Stage:
    world = build_world(cell.world)
    denoiser = build_denoiser(cell.denoiser, world, device)
    oracle = truth_of(world, denoiser)
    prompts = build_prompts(cell.task, world, cell.count, cell.seed)
    sequences, given = (x.to(device) for x in exact_sequences(world, prompts, cell.seed, oracle))
    return Stage(world, denoiser, sequences, given, best_plans(world, sequences, given, oracle))


def jobs(
    cell: Cell, samplers: Sequence[str], orders: int, calls: Sequence[int], device: str
) -> list[Job]:
    """A job for every sampler, and for the best plans with so many calls.

    Refuses a world that knows no truth, and samplers that cannot be replayed, before anything runs.
    """
    world = build_world(cell.world)
    if world.log_prob(world.sample(1, cell.seed)) is None and truth_of(world) is None:
        raise MaskwalkError(
            f"Nobody knows how likely a sequence of {cell.world} is: there is no loss to split. "
            "For text, `maskwalk text replay` says what a policy makes of held-out passages."
        )
    draw = DRAWS.build(cell.draw)
    for spec in samplers:
        check_replayable(SAMPLERS.build(spec).in_world(world), draw)
    specs = list(samplers)
    if calls:
        at = stage(cell, device)
        best = optimal(at.denoiser, at.sequences, at.given, calls, at.plans, cell.seed)
        specs += [spec for spec, _ in best]
    return [_job(replace(cell, sampler=spec), orders) for spec in specs]


def _job(cell: Cell, orders: int) -> Job:
    key = hashlib.sha256(f"{cell.key}|{orders}".encode()).hexdigest()
    place = {name: getattr(cell, name) for name in PLACE}
    says = place | {"sampler": cell.sampler, "model": cell.denoiser}
    return Job(
        key,
        "losses",
        {"cell": asdict(cell), "orders": orders},
        {"label": cell.sampler},
        says=says,
        sources=cell.files | own_weights(cell.denoiser),
    )


def losses_row(cell: dict[str, Any], orders: int, device: str) -> Row:
    """The job: one sampler's losses, with what they were measured on."""
    known = Cell.from_json(cell)
    at = stage(known, device)
    row = diagnose(
        at.world,
        at.denoiser,
        SAMPLERS.build(known.sampler).in_world(at.world),
        at.sequences,
        at.given,
        seed=known.seed,
        draw=DRAWS.build(known.draw),
        ties=known.ties,
        orders=orders,
        plans=at.plans,
    )
    place = {key: cell[key] for key in PLACE}
    place |= {"sampler": known.sampler, "mode": known.mode, "model": known.denoiser}
    if known_files := known.files | own_weights(known.denoiser):
        place["sources"] = known_files
    return dict(for_json(row | place))  # `denoiser` of a row is the nats lost to it


def load_rows(path: Path) -> list[Row]:
    """The complete rows of a diagnosis (a directory, or its file); none where there is no file."""
    path = path / FILE if path.is_dir() else path
    if not path.exists():
        return []
    rows = read_rows(path, checked_row, "a row of `maskwalk diagnose`", REMEDY)
    return [upgrade_row(row) for row in rows]


def upgrade_row(row: Row) -> Row:
    """A row of an earlier version in today's words: a world for its graph, a mode for a preset."""
    if "world" in row or "graph" not in row:
        return {"key": "", **row}
    parts = zip(("graph", "law", "length", "seed"), ("graph", "walk", "length", "graph_seed"))
    world = ", ".join(f"{name}={row.get(old)}" for name, old in parts)
    more = {"world": f"walk({world})", "mode": row.get("preset")}
    gone = ("graph", "walk", "length", "graph_seed", "preset")
    return {"key": ""} | {k: v for k, v in row.items() if k not in gone} | more


__all__ = ["FILE", "Row", "jobs", "load_rows", "losses_row", "stage"]
