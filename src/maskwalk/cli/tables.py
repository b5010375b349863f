"""All the tables of things a spec can name, and the flat summary of a record."""

from typing import Any

from maskwalk.bench.records import Record
from maskwalk.denoisers.resolve import DENOISERS
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Registry
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS
from maskwalk.worlds.walks.metrics import METRICS
from maskwalk.worlds.walks.tasks import TASKS

TABLES: dict[str, Registry[Any]] = {
    "graphs": GRAPHS,
    "walks": WALKS,
    "tasks": TASKS,
    "samplers": SAMPLERS,
    "denoisers": DENOISERS,
    "metrics": METRICS,
}

SETTINGS = (
    *("graph", "graph_seed", "walk", "length", "task", "sampler"),
    *("denoiser", "preset", "count", "per_prompt", "seed"),
)


def summary(record: Record) -> dict[str, Any]:
    """What `maskwalk sample --json` prints: the specs and the headline numbers, flat."""
    metrics = record["metrics"]
    tv = metrics["tv1"] or {}
    return {
        **{name: record[name] for name in SETTINGS},
        "coherence": metrics["coherence"]["value"],
        "coherence_se": metrics["coherence"]["se"],
        "tv1": tv.get("value"),
        "tv1_floor": tv.get("floor"),
        "calls_mean": metrics["calls"]["value"],
        "calls_max": metrics["calls"]["max"],
        "seconds": record["seconds"],
        "version": record["version"],
        "notes": record["notes"],
    }
