"""Experiments: worlds × tasks × samplers × denoisers × draws, a cell for each combination.

An experiment is a TOML file (see experiments/ and docs/experiments.md); one of `kind = "text"` is
read by text_experiment.py. A world is given as `world = "walk(…)"`, or by the parts of a world of
walks.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from maskwalk import resources
from maskwalk.bench.cell import Cell
from maskwalk.bench.experiment_shapes import check_cells, check_experiment
from maskwalk.bench.law_cells import law_cells, sizes
from maskwalk.bench.plan import Job
from maskwalk.bench.text_experiment import TextExperiment
from maskwalk.decoding.policy import SAMPLERS
from maskwalk.denoisers.resolve import WALK, own_weights, resolve_world
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.resources import read_toml
from maskwalk.samplers.table import expand
from maskwalk.specs import parse
from maskwalk.worlds.walks.world import walk_parts


@dataclass(frozen=True)
class Entry:
    """A cell of an experiment, and how its report calls it."""

    cell: Cell
    title: str  # of the world
    axis: dict[str, Any] | None = None  # where it stands on the x axis of a line figure
    column: str | None = None  # of the paper's tables: what it is to be compared with
    quick: bool = True  # whether it is also part of a quick run


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

    def jobs(self, out: Path) -> list[Job]:
        """A job for every cell; two experiments may share cells, and a cell is run once."""
        commit = resources.commit()
        jobs = []
        for number, entry in enumerate(self.entries):
            about = {"experiment": self.name, "cell": number, "title": entry.title}
            more = {"axis": entry.axis, "column": entry.column}
            about |= {"commit": commit, **{key: value for key, value in more.items() if value}}
            jobs.append(_job(entry.cell, self.traces, about))
        return jobs

    @classmethod
    def load(cls, path: str | Path) -> "Experiment":
        """Reads an experiment file; every spec and number is checked before anything runs."""
        text = read_toml(path)
        check_experiment(text, "cells", path)
        entries = tuple(_entries(text, str(path)))
        if not entries:
            raise MaskwalkError(
                f"{path} describes no cells: it needs [[graphs]] or [[worlds]], tasks and samplers."
            )
        if "law" in text:
            entries += tuple(_law_entries(entries, text["law"], str(path)))
        return cls(str(text.get("name", Path(path).stem)), entries, text.get("traces", True))

    def reduced(self, count: int, per_prompt: int) -> "Experiment":
        """A quick run: at most so many prompts and samples of each.

        Worlds that say `quick = false` are left out, and so are samplers that are not among the
        `quick_samplers`, where a file names some.
        """

        def less(cell: Cell) -> Cell:
            fewer = min(cell.count, count), min(cell.per_prompt, per_prompt)
            return replace(cell, count=fewer[0], per_prompt=fewer[1])

        entries = (replace(e, cell=less(e.cell)) for e in self.entries if e.quick)
        return replace(self, entries=tuple(entries))


def _job(cell: Cell, traces: bool, about: dict[str, Any]) -> Job:
    """A job whose result must be of this cell."""
    says = {key: value for key, value in asdict(cell).items() if key != "metrics"}
    files = cell.files | own_weights(cell.denoiser)
    arguments = {"cell": asdict(cell), "traces": traces}
    return Job(cell.key, "cell", arguments, about, says=says, metrics=cell.metrics, sources=files)


def load_experiment(path: str | Path, quick: bool = False) -> "Experiment | TextExperiment":
    """The experiment in a file, of whatever kind; `quick` has a few dozen sequences per cell."""
    kind = read_toml(path).get("kind", "cells")
    if kind == "text":
        return TextExperiment.load(path, quick)
    if kind != "cells":
        raise unknown(f"kind of experiment in {path}:", str(kind), ("cells", "text"))
    experiment = Experiment.load(path)
    return experiment.reduced(QUICK, 1) if quick else experiment


# What a reader wants side by side: what published code prints of a model, what the model does, and
# what the sampler could do with perfect conditionals.
MODES = {
    "as_published": ("zoo", "as_published"),
    "exact": ("zoo", "exact"),
    "oracle": ("oracle", "exact"),
}
QUICK = 32  # prompts of a quick run
SHARED = (
    "length",
    "count",
    "per_prompt",
    "seed",
    "metrics",
    "tasks",
    "samplers",
    "quick_samplers",
    "denoisers",
    "presets",
    "modes",
    "axis",
)
DEFAULTS = {"denoisers": ["oracle"], "presets": ["exact"], "tasks": ["unconditional()"]}
PER_WORLD = ("title", "zoo", "world", "graph", "graph_seed", "walk", "column", "quick", *SHARED)


def _entries(text: dict[str, Any], path: str) -> Iterator[Entry]:
    """The product of everything named, world by world; a world's own settings win."""
    top = ("name", "kind", "traces", "law", "graphs", "worlds")
    _known(text, (*top, *SHARED), f"setting in {path}:")
    rows = [*text.get("graphs", ()), *text.get("worlds", ())]
    check_cells(sum(_size(DEFAULTS | text | row) for row in rows), path)
    for row in rows:
        _known(row, PER_WORLD, f"setting of a world in {path}:")
        shared = {k: v for k, v in text.items() if k in SHARED}
        if "world" in row:
            shared.pop("length", None)  # of walks; a world by its spec says its own
        every = DEFAULTS | shared | row
        model = f"zoo:{every['zoo']}" if "zoo" in every else None
        place = {key: every[key] for key in ("world", *WALK) if key in every}
        if model is not None or "world" in every:
            place = {"world": resolve_world(model or "oracle", place)}
        for need in ("graph", "walk") if "world" not in place else ():
            if need not in place:
                raise MaskwalkError(f"A graph in {path} has no {need} (nor a zoo model).")
        if "samplers" not in every:
            raise MaskwalkError(f"A graph in {path} has no samplers.")
        fixed = {k: every[k] for k in ("count", "per_prompt", "seed") if k in every} | place
        if "metrics" in every:
            fixed["metrics"] = tuple(every["metrics"])
        samplers = [one for text in every["samplers"] for one in _expanded(text)]
        quickly = {
            SAMPLERS.canonical(one)
            for text in every.get("quick_samplers", ())
            for one in expand(text)
        }
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
            title = str(every.get("title", every.get("zoo", _name(cell.world))))
            axis = _axis(every.get("axis"), cell.sampler)
            quick = every.get("quick", True) and (not quickly or cell.sampler in quickly)
            yield Entry(cell, title, axis, every.get("column"), quick)


def _law_entries(entries: tuple[Entry, ...], given: Any, path: str) -> Iterator[Entry]:
    """Further cells that measure the shaped results against the law; not in a quick run."""
    cells = [entry.cell for entry in entries]
    for number, cell in law_cells(cells, *sizes(given, path)):
        yield Entry(cell, entries[number].title, quick=False)


@lru_cache(maxsize=1024)
def _expanded(text: str) -> tuple[str, ...]:
    return tuple(expand(text))


def _size(given: dict[str, Any]) -> int:
    """How many cells a world has, before any is made."""
    modes = len(given.get("modes", ())) or len(given["denoisers"]) * len(given["presets"])
    samplers = sum(len(_expanded(text)) for text in given.get("samplers", ()))
    return len(given["tasks"]) * modes * samplers


def _name(world: str) -> str:
    """What to call a world without a title: a world of walks by its graph."""
    parts = walk_parts(world)
    return world if parts is None else str(parts["graph"])


def _modes(given: dict[str, Any]) -> list[tuple[str, str]]:
    """(denoiser, preset): the modes named, or else every pair of the two lists."""
    if "modes" not in given:
        return list(product(given["denoisers"], given["presets"]))
    for name in given["modes"]:
        if name not in MODES:
            raise unknown("mode", name, MODES)
    return [MODES[name] for name in given["modes"]]


def _axis(given: Any, sampler: str) -> dict[str, Any] | None:
    """{name, value, marks}: the value given, or the sampler's own parameter, if it has that one."""
    if given is None:
        return None
    value = given.get("value", parse(sampler).kwargs.get(str(given.get("parameter"))))
    if value is None:
        return None
    return {k: given[k] for k in ("name", "marks") if k in given} | {"value": value}


def _known(given: dict[str, Any], known: tuple[str, ...], what: str) -> None:
    for key in given:
        if key not in known:
            raise unknown(what, key, known)
