"""Sequences of a report played again, where its records hold no story or one without chances.

Long runs keep no traces, and older traces no probabilities. The settings of a record say all that
its tokens depend on, so one sequence of a setting can be decoded again when the page is written:
of a few families, in one panel of a mode, with denoisers that are at hand, for a bounded time.
"""

import time
from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import Any

from maskwalk.bench.cell import Cell
from maskwalk.bench.labels import leading_name, read
from maskwalk.bench.records import Record
from maskwalk.bench.reels import record_reel
from maskwalk.bench.time_limit import TimeUp, time_limit
from maskwalk.errors import MaskwalkError
from maskwalk.report.player.casts import TEXT, stages, varied
from maskwalk.report.player.reels import reel_data
from maskwalk.report.study import Study
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.world import WORLDS, build_world

SECONDS = 20.0  # of the processor, at most; a few where denoisers are oracles
PATIENCE = 4  # seconds to wait for one of the processor, on a busy machine
MOST_CALLS = 64  # of a sequence that is played again
MOST_MARGINALS = 100_000  # numbers that a denoiser answers for one sequence
PICTURED = ("walk", "sudoku", "latin", "addition")  # worlds that the player draws
ORACLE, ZOO = "oracle", "zoo"


@dataclass
class Replays:
    """Casts that carry their reels, and the samplers that took too long."""

    casts: list[dict[str, Any]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


def replays(study: Study, seconds: float = SECONDS) -> Replays:
    """One sequence of up to six families, in the panel of a mode that shows most.

    A trained model takes seconds to load, so it is only for the mode that the page opens in.
    """
    told, ends = Replays(), time.process_time() + seconds
    panels, slow = _panels(study), _slow(study)
    for mode in sorted({mode for mode, _ in panels}):
        mine = [place for place in panels if place[0] == mode and (mode == 0 or place not in slow)]
        if mine and time.process_time() < ends:
            best = min(mine, key=lambda place: (*_worth(study, place, panels[place]), place))
            _play(study, best, panels[best], ends, told)
    return told


def _panels(study: Study) -> dict[tuple[int, int], list[int]]:
    """The samplers that can be played again, by mode and panel; none where traces say it all."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    full = set()
    for (mode, panel, sampler), record in study.cells.items():
        if (trace := record.get("trace")) and "prob" in trace:
            full.add(mode)
        elif _at_hand(record) and _calls(study, (mode, panel, sampler)) <= MOST_CALLS:
            found[mode, panel].append(sampler)
    return {place: some for place, some in found.items() if place[0] not in full}


def _at_hand(record: Record) -> bool:
    """Whether it needs nobody's files or weights but those of the package."""
    names = (read(str(record["sampler"])).name, read(str(record["world"])).name)
    known = names[0] in SAMPLERS and names[1] in WORLDS and names[1] != TEXT
    model = leading_name(str(record.get("denoiser") or ""))
    return known and model in (ORACLE, ZOO) and not record.get("sources")


def _slow(study: Study) -> set[tuple[int, int]]:
    """The panels with a denoiser that is no oracle, by mode."""
    cells = study.cells.items()
    return {(mode, panel) for (mode, panel, _), r in cells if r.get("denoiser") != ORACLE}


def _calls(study: Study, place: tuple[int, int, int]) -> float:
    cost = study.estimate(*place, study.cost)
    return cost.value if cost else float("inf")


def _worth(study: Study, place: tuple[int, int], samplers: list[int]) -> tuple[int, float]:
    """Least first: a world with a picture, a task, no tree, and rules that differ in quality."""
    record = study.cells[(*place, samplers[0])]
    world, task = read(str(record["world"])), read(str(record["task"])).name
    tree = read(str(world.kwargs.get("graph", ""))).kwargs.get("p") == 0.0
    chosen = _cast(study, place, samplers)
    found = [study.estimate(*place, s, study.quality) for s in chosen] if study.quality else []
    values = [one.value for one in found if one]
    flaws = 4 * (world.name not in PICTURED) + 2 * (task == "unconditional") + tree
    return flaws, min(values, default=0.0) - max(values, default=0.0)


def _cast(study: Study, place: tuple[int, int], samplers: list[int]) -> list[int]:
    calls = {s: {"rounds": [_calls(study, (*place, s))]} for s in samplers}
    return varied(study, samplers, calls)


def _play(
    study: Study, place: tuple[int, int], samplers: list[int], ends: float, told: Replays
) -> None:
    """Adds the cast of a panel; a sampler that fails here is left out."""
    played, late = {}, []
    for s in _cast(study, place, samplers):
        cell = _cell(study.cells[(*place, s)])
        left = ends - time.process_time()
        try:
            with time_limit(max(PATIENCE * left, 0.001), study.label(s)):
                if _small(cell):
                    played[s] = record_reel(cell)
        except MaskwalkError as problem:
            if isinstance(problem.__context__, TimeUp):
                late.append(study.label(s))
    if played:
        told.late += late
        world = str(study.cells[(*place, min(played))]["world"])
        walks = [list(reel.tokens) for reel in played.values()]
        data = [_lighter(one) for one in reel_data(list(played.values()))]
        cast = {"m": place[0], "p": place[1], "s": list(played), "reels": data}
        told.casts.append(cast | {"stages": stages(world, walks)})


def _cell(record: Record) -> Cell:
    """The first sequence of a record, by its own seed."""
    about: dict[str, Any] = {one.name: record.get(one.name) for one in fields(Cell)}
    return Cell(**about | {"count": 1, "per_prompt": 1, "metrics": ()})


def _small(cell: Cell) -> bool:
    world = build_world(cell.world)
    return world.length * world.vocab_size <= MOST_MARGINALS


def _lighter(reel: dict[str, Any]) -> dict[str, Any]:
    """With the likeliest token alone; the page names the sampler itself."""
    kept = {key: reel[key] for key in ("given", "steps", "calls", "valid")}
    return kept | {"ahead": [[guess[:4] for guess in round_] for round_ in reel["ahead"]]}
