"""Cells that measure shaped results against the law: `law = { prompts = 64, per_prompt = 8 }`.

For every world, task, denoiser and draw of an experiment that has a shaped result, its shaped
settings and one-at-a-time decoding run once more, with several samples of each prompt, and only
their distance to the law is measured. The records stand beside the others; reports take from them
how far a shaped result is from the law (`kinds.Departures`) and do not draw them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from maskwalk.bench.cell import Cell
from maskwalk.bench.kinds import REFERENCE
from maskwalk.bench.records import Record
from maskwalk.decoding.draw import DRAWS
from maskwalk.decoding.guard import believed_kind
from maskwalk.decoding.kinds import SHAPED
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.errors import MaskwalkError, unknown, whole
from maskwalk.worlds.metrics import LAW, METRICS

METRIC = "rank_tv"
EXACT_DRAWS = ("draw()", "uniform")


def sizes(given: Any, path: str) -> tuple[int, int]:
    """Prompts and samples of each, from the setting in a file."""
    if not isinstance(given, dict):
        raise MaskwalkError(f"law in {path} must be a table, {{ prompts = 64, per_prompt = 8 }}.")
    for key in given:
        if key not in ("prompts", "per_prompt"):
            raise unknown(f"setting of law in {path}:", key, ("prompts", "per_prompt"))
    prompts = whole(f"prompts of law in {path}", given.get("prompts", 64), 2)
    return prompts, whole(f"per_prompt of law in {path}", given.get("per_prompt", 8), 2)


def law_cells(cells: Iterable[Cell], prompts: int, per_prompt: int) -> Iterator[tuple[int, Cell]]:
    """The law's cells, each with the number of the cell it belongs to; every one once."""
    done: set[Cell] = set()
    for number, cell in enumerate(cells):
        if not _shaped(cell):
            continue
        draw, ties = EXACT_DRAWS
        reference = replace(cell, sampler=f"{REFERENCE}()", draw=DRAWS.canonical(draw), ties=ties)
        for one in (reference, cell):
            law = replace(one, count=prompts, per_prompt=per_prompt, metrics=(METRIC,))
            if law not in done:
                done.add(law)
                yield number, law


def _shaped(cell: Cell) -> bool:
    exact_draws = DRAWS.build(cell.draw).exact
    return not exact_draws or believed_kind(SAMPLERS.build(cell.sampler)) == SHAPED


def only_law(record: Record) -> bool:
    """Whether a record only says how far a setting is from the law."""
    keys = list(record["metrics"])
    return bool(keys) and all(METRICS.describe(key).role == LAW for key in keys)
