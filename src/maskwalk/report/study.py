"""Records arranged for reading: modes × panels × samplers, and the estimates in each cell.

A panel is a graph (the experiment's title for it) and a task; a mode is a kind of denoiser and a
preset. Nothing is computed anew here: a cell is a record, and an estimate is what it holds.
"""

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from maskwalk.bench import labels
from maskwalk.bench.labels import Family, Sampler
from maskwalk.errors import MaskwalkError

Record = dict[str, Any]
SCHEMA = 1
NEEDED = ("task", "sampler", "denoiser", "preset", "metrics")
SAMPLED = ("denoiser", "draw", "ties", "seed", "count", "per_prompt")
ADDED = ("axis", "published")  # said of a cell by one experiment, true in any other


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error; `more` holds what else the record says about it."""

    value: float
    se: float | None
    n: int | None
    more: dict[str, Any]


@dataclass(frozen=True)
class Published:
    """The coherence a paper prints: `sd` over four groups, so its standard error is sd / √4.

    `away` is ours − theirs in combined standard errors; None where neither has an error.
    """

    value: float
    sd: float | None
    away: float | None


@dataclass(frozen=True)
class Panel:
    """A graph and a task: one figure, one column of a table."""

    title: str
    task: str
    detail: str


@dataclass(frozen=True)
class Study:
    """All the records of a report, addressed by (mode, panel, sampler)."""

    modes: list[str]
    panels: list[Panel]
    samplers: list[Sampler]
    families: list[Family]
    cells: dict[tuple[int, int, int], Record]
    superseded: int  # records replaced by a later one of the same cell

    @property
    def tried(self) -> list[int]:
        """The samplers that have records; a ledger may bring others."""
        return sorted({s for _, _, s in self.cells})

    @property
    def tasks(self) -> list[str]:
        """The task labels, in order of appearance."""
        return list(dict.fromkeys(panel.task for panel in self.panels))

    def of_task(self, task: str) -> list[int]:
        """The panels of one task."""
        return [i for i, panel in enumerate(self.panels) if panel.task == task]

    def estimate(self, mode: int, panel: int, sampler: int, metric: str) -> Estimate | None:
        """The estimate in a cell, or None where it was not run or does not apply."""
        record = self.cells.get((mode, panel, sampler))
        return None if record is None else estimate(record, metric)

    def has(self, metric: str, panel: int) -> bool:
        """Whether any mode and sampler has this metric in the panel."""
        return any(p == panel and estimate(r, metric) for (_, p, _), r in self.cells.items())

    def published(self, mode: int, panel: int, sampler: int) -> "Published | None":
        """What the paper prints for this cell, where its record says so."""
        return published(self.cells.get((mode, panel, sampler)) or {})


def finite(value: Any) -> float | None:
    """The number, or None for anything that is not a finite one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def estimate(record: Record, metric: str) -> Estimate | None:
    """One metric of a record; None where the record has null."""
    held = record["metrics"].get(metric)
    value = finite(held.get("value")) if isinstance(held, dict) else None
    if value is None:
        return None
    more = {
        k: v if isinstance(v, bool) else finite(v)
        for k, v in held.items()
        if k not in ("value", "se", "n", "by") and not isinstance(v, list)
    }
    n = finite(held.get("n"))
    return Estimate(value, finite(held.get("se")), None if n is None else int(n), more)


def published(record: Record) -> Published | None:
    """What a record's `published` holds: value and sd, and se or z where its writer knows them."""
    held = record.get("published")
    value = finite(held.get("value")) if isinstance(held, dict) else None
    ours = estimate(record, "coherence") if value is not None else None
    if value is None or not isinstance(held, dict):
        return None
    sd, away = finite(held.get("sd")), finite(held.get("z"))
    if away is None and ours is not None:
        se = finite(held.get("se"))
        theirs = se if se is not None else (sd or 0.0) / 2
        joint = math.hypot(spread(ours, record.get("per_prompt") or 1), theirs)
        away = (ours.value - value) / joint if joint else None
    return Published(value, sd, away)


def spread(estimate: Estimate, per_prompt: int = 1) -> float:
    """The standard error used in tests.

    A coherence of exactly 0 or 1 has a plug-in error of 0, which would make any difference certain;
    it gets the error of Agresti and Coull's shrunk proportion over the prompts instead.
    """
    if estimate.se:
        return estimate.se
    n = max((estimate.n or 1) / max(per_prompt, 1), 1.0)
    share = (estimate.value * n + 2) / (n + 4)
    return math.sqrt(max(share * (1 - share), 0.0) / (n + 4))


def arrange(records: list[Record], also: Sequence[str] = ()) -> Study:
    """The study of a list of records, in the order of the experiment's cells.

    `also` names samplers that have no record but appear in the report; with some, a study may have
    no records at all.
    """
    if not also:
        check_any(records)
    check(records, NEEDED)
    first = {name: i for i, name in enumerate(dict.fromkeys(r.get("experiment") for r in records))}
    ordered = sorted(  # stable, so that of two records of one cell the later stays the later
        records, key=lambda r: (first[r.get("experiment")], r.get("cell") or 0)
    )
    samplers = labels.samplers([*(record["sampler"] for record in ordered), *also])
    families = labels.families([sampler.family for sampler in samplers])
    panels, panel_of = _panels(ordered)
    modes, mode_of = _modes(ordered, panel_of)
    place = {sampler.spec: i for i, sampler in enumerate(samplers)}
    cells: dict[tuple[int, int, int], Record] = {}
    for i, record in enumerate(ordered):
        where = (mode_of[i], panel_of[i], place[record["sampler"]])
        cells[where] = _merged(cells.get(where, {}), record)
    return Study(modes, panels, samplers, families, cells, len(records) - len(cells))


def _merged(before: Record, record: Record) -> Record:
    """The later record, with what only the earlier one of the same cell says.

    Two experiments may ask one cell for different metrics: where they took the same samples, both
    hold.
    """
    kept = {key: before[key] for key in ADDED if key in before}
    same = all(before.get(key) == record.get(key) for key in SAMPLED)
    metrics = (before.get("metrics") or {}) if same else {}
    return kept | record | {"metrics": {**metrics, **record["metrics"]}}


def check_any(records: list[Record]) -> None:
    """A sentence where there are no records."""
    if not records:
        raise MaskwalkError("There are no records to report. Run `maskwalk bench` first.")


def check(records: list[Record], needed: Sequence[str]) -> None:
    """A sentence for a record of another schema, or without what a report needs."""
    for i, record in enumerate(records):
        if record.get("schema", SCHEMA) != SCHEMA:
            raise MaskwalkError(
                f"Record {i} has schema {record['schema']!r}; this version of maskwalk reads "
                f"schema {SCHEMA}. Run `maskwalk bench` again or install the version that wrote it."
            )
        lacking = [key for key in needed if not record.get(key)]
        if lacking:
            raise MaskwalkError(f"Record {i} lacks {', '.join(lacking)}; is it a maskwalk record?")


def _panels(records: list[Record]) -> tuple[list[Panel], list[int]]:
    keys = ("graph", "graph_seed", "walk", "length")
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        rows.setdefault(_row(record), {key: record.get(key) for key in keys})
    titles = dict(zip(rows, labels.tell_apart([_title(key) for key in rows], list(rows.values()))))
    panels: dict[Panel, int] = {}
    of = []
    for record in records:
        row = _row(record)
        shown = [rows[row]["graph"], rows[row]["walk"]]
        shown += [f"length {rows[row]['length']}", f"graph seed {rows[row]['graph_seed']}"]
        panel = Panel(
            titles[row], labels.task_label(record["task"]), " · ".join(str(x) for x in shown)
        )
        of.append(panels.setdefault(panel, len(panels)))
    return list(panels), of


def _row(record: Record) -> str:
    keys = ("title", "graph", "graph_seed", "walk", "length")
    return json.dumps([record.get(key) for key in keys])


def _title(row: str) -> str:
    title, graph, *_ = json.loads(row)
    return str(title or graph or "unnamed graph")


def _modes(records: list[Record], panel_of: list[int]) -> tuple[list[str], list[int]]:
    """Modes are told apart by kind of denoiser and preset, and by more only where they must be.

    A model trained for every graph has its own spec in every panel, yet it is one mode; two models
    in the same panel, or two seeds, are two.
    """
    base = [(labels.leading_name(r["denoiser"]), str(r["preset"])) for r in records]
    places = [(panel, r["sampler"]) for panel, r in zip(panel_of, records)]
    return split_modes(records, base, places, ("denoiser", "draw", "ties", "seed"))


def split_modes(
    records: list[Record],
    base: Sequence[tuple[str, ...]],
    places: Sequence[Hashable],
    names: Sequence[str],
) -> tuple[list[str], list[int]]:
    """The modes' labels and the mode of every record.

    `base` names a record's mode; where two records of one mode and place differ in one of the
    fields `names`, the mode is split by it.
    """
    fields = {name: [json.dumps(r.get(name)) for r in records] for name in names}
    keys: list[tuple[str, ...]] = [(*b,) for b in base]
    for values in fields.values():
        seen: dict[tuple[tuple[str, ...], Hashable], set[str]] = {}
        for i, place in enumerate(places):
            seen.setdefault((keys[i], place), set()).add(values[i])
        split = {key for (key, _), found in seen.items() if len(found) > 1}
        keys = [(*key, values[i]) if key in split else key for i, key in enumerate(keys)]
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    order = sorted(first, key=first.__getitem__)
    details = [{name: json.loads(fields[name][first[key]]) for name in fields} for key in order]
    plain = [" · ".join(map(labels.spoken, base[first[key]])) for key in order]
    number = {key: i for i, key in enumerate(order)}
    return labels.tell_apart(plain, details), [number[key] for key in keys]
