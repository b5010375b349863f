"""Makes a study of records: their panels, modes, samplers, and the record of each cell."""

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from maskwalk.bench import labels
from maskwalk.bench.labels import Family, Sampler
from maskwalk.bench.law_cells import only_law
from maskwalk.bench.records import HELD_OUT, SCHEMA, Record
from maskwalk.errors import MaskwalkError
from maskwalk.report.estimates import estimate
from maskwalk.report.study import Panel, Place, Study
from maskwalk.worlds.metrics import METRICS, Metric

NEEDED = ("world", "task", "sampler", "mode", "metrics")
SAMPLED = ("denoiser", "draw", "ties", "seed", "count", "per_prompt")
DRAWN = ("mode", "draw", "ties", "seed")  # what a reference shares with the cells beside it
WRITTEN = ("experiment", "key")
ADDED = ("axis", "published")  # said of a cell by one experiment, true in any other
TEXT, AUTOREGRESSIVE = "text", "left_to_right"
Names = list[tuple[str, str]]  # (AR model or "", sampler) of every record


def arrange(records: Sequence[Record], also: Sequence[str] = ()) -> Study:
    """The study of a list of records, in the order of the experiments' cells.

    `also` names samplers that have no record but appear in the report; with some, a study may have
    no records at all.
    """
    if not records and not also:
        raise MaskwalkError("There are no records to report. Run `maskwalk bench` first.")
    check(records)
    law = [record for record in records if only_law(record)]
    if len(law) < len(records):  # they say how far others are from the law; alone, they are shown
        records = [record for record in records if not only_law(record)]
    first = {name: i for i, name in enumerate(dict.fromkeys(r.get("experiment") for r in records))}
    ordered = sorted(  # stable, so that of two records of one cell the later stays the later
        records, key=lambda r: (first[r.get("experiment")], r.get("cell") or 0)
    )
    panels, panel_of = _panels(ordered)
    names = _names(ordered, panel_of)
    samplers, families, causal = _samplers(names, also)
    modes, modes_of = _modes(ordered, panel_of, names)
    number = {(model, spec): i for i, (model, spec) in enumerate(samplers)}
    cells: dict[Place, Record] = {}
    references: dict[tuple[int, int], Record] = {}
    for i, record in enumerate(ordered):
        for mode in modes_of[i]:
            if is_reference(record):
                references[mode, panel_of[i]] = record
            else:
                place = (mode, panel_of[i], number[names[i]])
                cells[place] = _merged(cells.get(place), record)
    used = {r.get("key", id(r)) for r in (*cells.values(), *references.values())}
    given_keys = {r.get("key", id(r)) for r in records}
    return Study(
        modes,
        panels,
        list(samplers.values()),
        families,
        cells,
        references,
        causal,
        _metrics(ordered),
        len(given_keys) - len(used),
        law,
    )


def check(records: Sequence[Record]) -> None:
    """A sentence for a record of another schema, or without what a report needs."""
    for i, record in enumerate(records):
        if record.get("schema", SCHEMA) != SCHEMA:
            raise MaskwalkError(
                f"Record {i} has schema {record['schema']!r}; a report needs schema {SCHEMA}, "
                "which `maskwalk.bench.records.load_records` gives of every version it can read."
            )
        lacking = [key for key in NEEDED if not record.get(key)]
        if lacking:
            raise MaskwalkError(f"Record {i} lacks {', '.join(lacking)}; is it a maskwalk record?")


def is_reference(record: Record) -> bool:
    """Whether nobody decoded it: it is what samplers are measured by."""
    return labels.read(str(record["sampler"])).name == HELD_OUT


def _merged(before: Record | None, record: Record) -> Record:
    """The later record, with what only the earlier one of the same cell says.

    Two experiments may ask one cell for different metrics: where they took the same samples, both
    hold. Of a record that one experiment wrote again, as a judge does, the last counts.
    """
    if before is None or all(before.get(key) == record.get(key) for key in WRITTEN):
        return record
    old, new = cast(dict[str, Any], before), cast(dict[str, Any], record)
    same = all(old.get(key) == new.get(key) for key in SAMPLED)
    metrics = (old["metrics"] if same else {}) | new["metrics"]
    added = {key: old[key] for key in ADDED if key in old}
    return cast(Record, added | new | {"metrics": metrics})


def _metrics(records: Iterable[Record]) -> list[Metric]:
    """The metrics that some record has a number of, in the order of the table of metrics."""
    described: dict[str, Metric] = {METRICS.cost.key: METRICS.cost}
    metrics: dict[str, Metric] = {}
    for record in records:
        for key, numbers in record["metrics"].items():
            if key in metrics or not isinstance(numbers, dict) or numbers.get("by"):
                continue
            metric = described.setdefault(key, METRICS.describe(key, record.get("described")))
            if estimate(record, metric):
                metrics[key] = metric
    order = {key: i for i, key in enumerate(METRICS)}
    return sorted(metrics.values(), key=lambda m: order.get(m.key, len(order)))


# ---------------------------------------------------------------- panels


def _panels(records: Sequence[Record]) -> tuple[list[Panel], list[int]]:
    worlds = dict.fromkeys((str(r.get("title") or ""), str(r["world"])) for r in records)
    details = [dict(labels.read(world).kwargs) for _, world in worlds]
    plain = [title or _world_name(world) for title, world in worlds]
    titles = dict(zip(worlds, labels.tell_apart(plain, details)))
    panels: dict[Panel, int] = {}
    panel_of = []
    for record in records:
        world = (str(record.get("title") or ""), str(record["world"]))
        panel = Panel(titles[world], labels.task_label(str(record["task"])), world[1])
        panel_of.append(panels.setdefault(panel, len(panels)))
    return list(panels), panel_of


def _world_name(world: str) -> str:
    """A world without a title: the graph of walks, and any other as it is spelled."""
    return str(labels.read(world).kwargs.get("graph", world))


# ---------------------------------------------------------------- samplers


def _names(records: Sequence[Record], panel_of: Sequence[int]) -> Names:
    """The sampler of every record, with its model where that is an AR model.

    An AR model of text knows one order: it runs from left to right, and nothing else runs on it.
    """
    runs: dict[tuple[int, str], set[str]] = {}
    for record, panel in zip(records, panel_of):
        family = labels.read(str(record["sampler"])).name
        runs.setdefault((panel, str(record.get("denoiser") or "")), set()).add(family)
    names = []
    for record, panel in zip(records, panel_of):
        model = str(record.get("denoiser") or "")
        alone = runs[panel, model] == {AUTOREGRESSIVE} and _of_text(record)
        names.append((model if alone else "", str(record["sampler"])))
    return names


def _of_text(record: Record) -> bool:
    return labels.read(str(record["world"])).name == TEXT


def _samplers(
    names: Names, also: Sequence[str]
) -> tuple[dict[tuple[str, str], Sampler], list[Family], frozenset[int]]:
    """Samplers with their labels, AR models first; the families; which samplers are AR models."""
    decoded = [name for name in names if labels.read(name[1]).name != HELD_OUT]
    decoded += [("", spec) for spec in also]
    labelled = {s.spec: s for s in labels.samplers([spec for _, spec in decoded])}
    order = {spec: i for i, spec in enumerate(labelled)}
    keys = sorted(dict.fromkeys(decoded), key=lambda name: (not name[0], order[name[1]]))
    models = {model for model, _ in keys if model}
    samplers = {}
    for model, spec in keys:
        one = labelled[spec]
        if model:
            label = "AR" if len(models) == 1 else f"AR · model {model}"
            one = replace(one, label=label, short=label, line=f"{model} {one.line}")
        samplers[model, spec] = one
    families = labels.families([one.family for one in samplers.values()])
    plain = {samplers[key].family for key in keys if not key[0]}
    families = [f if f.name in plain else replace(f, label="AR") for f in families]
    return samplers, families, frozenset(i for i, (model, _) in enumerate(keys) if model)


# ---------------------------------------------------------------- modes


def _modes(
    records: Sequence[Record], panel_of: Sequence[int], names: Names
) -> tuple[list[str], list[list[int]]]:
    """The modes' labels, and the modes of every record.

    References and AR models stand beside the cells that were drawn the same way, in every mode.
    """
    apart = [i for i, r in enumerate(records) if is_reference(r) or names[i][0]]
    others = [i for i in range(len(records)) if i not in set(apart)] or apart
    kinds = {labels.leading_name(str(records[i].get("denoiser") or "")) for i in others}
    nameless = len(kinds) == 1 and all(_of_text(records[i]) for i in others)
    base = [_mode_name(records[i], nameless) for i in others]
    places = [(panel_of[i], names[i][1]) for i in others]
    some = [records[i] for i in others]
    modes, mode_of = split_modes(some, base, places, ("denoiser", "draw", "ties", "seed"))
    modes_of: list[list[int]] = [[] for _ in records]
    for i, mode in zip(others, mode_of):
        modes_of[i] = [mode]
    for i in apart if others is not apart else ():
        beside = _beside(records, panel_of, modes_of, others, i)
        if not beside:
            modes.append(" · ".join(_mode_name(records[i], nameless=True)))
            beside = [len(modes) - 1]
        modes_of[i] = beside
    return modes, modes_of


def _beside(
    records: Sequence[Record],
    panel_of: Sequence[int],
    modes_of: Sequence[list[int]],
    others: Sequence[int],
    i: int,
) -> list[int]:
    """The modes of the same panel that were drawn as record i was; of the same name at least."""
    mates = [j for j in others if panel_of[j] == panel_of[i]]
    for keys in (DRAWN, DRAWN[:1]):
        same = [j for j in mates if all(records[j].get(k) == records[i].get(k) for k in keys)]
        if same:
            return sorted({mode for j in same for mode in modes_of[j]})
    return []


def _mode_name(record: Record, nameless: bool) -> tuple[str, ...]:
    """The kind of denoiser and the draws in words; the draws alone where all are of one kind."""
    kind = labels.leading_name(str(record.get("denoiser") or ""))
    words = mode_words(str(record["mode"]))
    return (words,) if nameless or not kind else (labels.spoken(kind), words)


def mode_words(mode: str) -> str:
    """ "as published", or "top-p 0.9" of draw(top_p=0.9)."""
    spec, _, ties = mode.partition(", ties ")
    draw = labels.read(spec)
    if not draw.kwargs:
        return labels.spoken(mode)
    words = [f"{key.replace('_', '-')} {value}" for key, value in draw.kwargs.items()]
    return ", ".join([*words, *([f"ties {ties}"] if ties else [])])


def split_modes(
    records: Sequence[Record],
    base: Sequence[tuple[str, ...]],
    places: Sequence[Hashable],
    names: Sequence[str],
) -> tuple[list[str], list[int]]:
    """The modes' labels and the mode of every record.

    `base` names a record's mode; where two records of one mode and place differ in one of the
    fields `names`, the mode is split by it: a model for every world is one mode, two models in the
    same panel, or two seeds, are two.
    """
    fields = {name: [json.dumps(r.get(name)) for r in records] for name in names}
    keys: list[tuple[str, ...]] = [(*b,) for b in base]
    for values in fields.values():
        seen: dict[tuple[tuple[str, ...], Hashable], set[str]] = {}
        for i, place in enumerate(places):
            seen.setdefault((keys[i], place), set()).add(values[i])
        split = {key for (key, _), different in seen.items() if len(different) > 1}
        keys = [(*key, values[i]) if key in split else key for i, key in enumerate(keys)]
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    order = sorted(first, key=first.__getitem__)
    details = [{name: json.loads(fields[name][first[key]]) for name in fields} for key in order]
    plain = _owners([base[first[key]] for key in order], details)
    number = {key: i for i, key in enumerate(order)}
    return labels.tell_apart(plain, details), [number[key] for key in keys]


def _owners(base: Sequence[tuple[str, ...]], details: Sequence[dict[str, Any]]) -> list[str]:
    """Labels of modes: of two denoisers of one kind the denoiser is named, not its kind."""
    out = []
    for name, detail in zip(base, details):
        owners = {d["denoiser"] for other, d in zip(base, details) if other == name}
        named = (str(detail["denoiser"]), *name[1:]) if len(name) > 1 < len(owners) else name
        out.append(" · ".join(named))
    return out
