"""Experiments: graphs × tasks × samplers × denoisers × presets, a record for each combination.

An experiment is a TOML file (see experiments/); each combination is a `Cell`, and running a cell is
a pure function of it (and, for a network, of the kind of device): the same record in any order and
with any number of workers.
"""

import hashlib
import json
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import torch

from maskwalk import __version__
from maskwalk.canvas import Sampler
from maskwalk.decoding import Decoded, decode
from maskwalk.denoisers.protocol import Denoiser
from maskwalk.denoisers.table import build_denoiser, denoiser_notes, fingerprint, settle
from maskwalk.draws import Streams, preset
from maskwalk.errors import MaskwalkError, unknown, whole
from maskwalk.graphs import GRAPHS
from maskwalk.metrics import METRICS, Sample, measure
from maskwalk.records import Record
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.table import expand
from maskwalk.specs import parse
from maskwalk.tasks import TASKS, Prompts
from maskwalk.walks import WALKS, WalkLaw

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


@lru_cache(maxsize=4)
def build_law(graph: str, graph_seed: int, walk: str, length: int) -> WalkLaw:
    """The walk law of a cell (kept: the cells of one graph come after each other)."""
    return WALKS.build(walk, graph=GRAPHS.build(graph, seed=graph_seed), length=length)


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
        decoded=decoded,
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


@dataclass(frozen=True)
class Entry:
    """A cell of an experiment, and how its report calls it."""

    cell: Cell
    title: str  # of the graph
    axis: dict[str, Any] | None = None  # where it stands on the x axis of a line figure
    column: str | None = None  # of the paper's tables: what it is to be compared with


@dataclass(frozen=True)
class Experiment:
    """A named list of cells."""

    name: str
    entries: tuple[Entry, ...]
    traces: bool = True  # whether records tell the story of their first sequence

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells, in the order of the file."""
        return tuple(entry.cell for entry in self.entries)

    @classmethod
    def load(cls, path: str | Path) -> "Experiment":
        """Reads an experiment file; every spec and number is checked before anything runs."""
        try:
            with Path(path).open("rb") as file:
                text = tomllib.load(file)
        except OSError as problem:
            raise MaskwalkError(f"Cannot read {path}: {problem.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise MaskwalkError(f"{path} is not a TOML file: {problem}.") from None
        entries = tuple(_entries(text, str(path)))
        if not entries:
            raise MaskwalkError(
                f"{path} describes no cells: it needs [[graphs]], tasks and samplers."
            )
        return cls(str(text.get("name", Path(path).stem)), entries, text.get("traces", True))

    def reduced(self, count: int, per_prompt: int) -> "Experiment":
        """The same with at most so many prompts and samples of each."""
        cells = (
            replace(c, count=min(c.count, count), per_prompt=min(c.per_prompt, per_prompt))
            for c in self.cells
        )
        entries = (replace(entry, cell=cell) for entry, cell in zip(self.entries, cells))
        return replace(self, entries=tuple(entries))


# What a reader wants side by side: what published code prints of a model, what the model does, and
# what the sampler could do with perfect conditionals.
MODES = {
    "as_published": ("zoo", "as_published"),
    "exact": ("zoo", "exact"),
    "oracle": ("oracle", "exact"),
}
SHARED = (
    "length",
    "count",
    "per_prompt",
    "seed",
    "metrics",
    "tasks",
    "samplers",
    "denoisers",
    "presets",
    "modes",
    "axis",
)
DEFAULTS = {"denoisers": ["oracle"], "presets": ["exact"], "tasks": ["unconditional()"]}
PER_GRAPH = ("title", "zoo", "graph", "graph_seed", "walk", "column", *SHARED)


def _entries(text: dict[str, Any], path: str) -> Iterator[Entry]:
    """The product of everything named, graph by graph; a graph's own settings win."""
    _known(text, ("name", "traces", "graphs", *SHARED), f"setting in {path}:")
    if not all(isinstance(row, dict) for row in _list(text, "graphs", path)):
        raise MaskwalkError(f"In {path} each graph must be a table, [[graphs]].")
    for row in text.get("graphs", []):
        _known(row, PER_GRAPH, f"setting of a graph in {path}:")
        every = DEFAULTS | {k: v for k, v in text.items() if k in SHARED} | row
        model = f"zoo:{every['zoo']}" if "zoo" in every else None
        place = settle(model, every) if model else every
        for need in ("graph", "walk"):
            if need not in place:
                raise MaskwalkError(f"A graph in {path} has no {need} (nor a zoo model).")
        if "samplers" not in every:
            raise MaskwalkError(f"A graph in {path} has no samplers.")
        for name in ("tasks", "denoisers", "presets", "samplers", "metrics", "modes"):
            _list(every, name, path)
        fixed = {k: every[k] for k in ("count", "per_prompt", "seed") if k in every}
        fixed |= {k: place[k] for k in ("graph", "graph_seed", "walk", "length") if k in place}
        if "metrics" in every:
            fixed["metrics"] = tuple(every["metrics"])
        samplers = [one for text in every["samplers"] for one in expand(text)]
        for task, (denoiser, drawn), sampler in product(every["tasks"], _modes(every), samplers):
            own = task if isinstance(task, dict) else {"task": task}
            _known(own, ("task", "count", "per_prompt"), f"setting of a task in {path}:")
            if denoiser == "zoo":
                if model is None:
                    raise MaskwalkError(
                        f'A graph in {path} has denoiser "zoo" but no zoo = "NAME".'
                    )
                denoiser = model
            choice = {"sampler": sampler, "denoiser": denoiser, "preset": drawn}
            cell = Cell.checked(**{**fixed, **own, **choice})
            title = str(every.get("title", every.get("zoo", cell.graph)))
            axis = _axis(every.get("axis"), cell.sampler, path)
            yield Entry(cell, title, axis, every.get("column"))


def _modes(given: dict[str, Any]) -> list[tuple[str, str]]:
    """(denoiser, preset): the modes named, or else every pair of the two lists."""
    if "modes" not in given:
        return list(product(given["denoisers"], given["presets"]))
    for name in given["modes"]:
        if name not in MODES:
            raise unknown("mode", name, MODES)
    return [MODES[name] for name in given["modes"]]


def _axis(given: Any, sampler: str, path: str) -> dict[str, Any] | None:
    """{name, value, marks}: the value given, or the sampler's own parameter, if it has that one."""
    if given is None:
        return None
    known = ("name", "value", "parameter", "marks")
    if not isinstance(given, dict) or "name" not in given:
        raise MaskwalkError(f"axis in {path} must be a table with a name, not {given!r}.")
    _known(given, known, f"setting of an axis in {path}:")
    value = given.get("value", parse(sampler).kwargs.get(str(given.get("parameter"))))
    if value is None:
        return None
    return {k: given[k] for k in ("name", "marks") if k in given} | {"value": value}


def _list(given: dict[str, Any], name: str, path: str) -> list[Any]:
    """A setting that must be a list, if it is there."""
    value = given.get(name, [])
    if not isinstance(value, list):
        raise MaskwalkError(f"{name} in {path} must be a list, not {value!r}.")
    return value


def _known(given: dict[str, Any], known: tuple[str, ...], what: str) -> None:
    for key in given:
        if key not in known:
            raise unknown(what, key, known)
