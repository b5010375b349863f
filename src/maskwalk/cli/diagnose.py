"""`maskwalk diagnose`: the ledger of samplers on one law, for people and for machines."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, err, out, progress

Row = dict[str, Any]
FILE = "diagnosis.jsonl"
PLACE = ("task", "preset", "graph", "graph_seed", "walk", "length", "seed")
LEGEND = (
    "Nats a walk ± standard error. ≤: upper bound, the sampler used random numbers",
    "(--orders tightens it). ~: unreliable, under 50 effective walks. depend. and",
    "denois.: the two parts of the loss. worst: the round that loses most. regret:",
    "dependence above the best fixed plan of sets with as many calls.",
)


def diagnose(
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    denoiser: common.Denoiser = "oracle",
    samplers: Annotated[
        str, typer.Option(help="Specs separated by ';'. Default: the paper's 24.")
    ] = "",
    task: common.Task = "unconditional",
    preset: common.Preset = "exact",
    count: Annotated[int, typer.Option(help="Exact walks to replay.")] = 64,
    orders: Annotated[int, typer.Option(help="Replays of each; more tighten a random KL.")] = 1,
    optimal: Annotated[
        list[int] | None,
        typer.Option(help="Also the best block sizes and sets for this many calls; repeatable."),
    ] = None,
    graph_seed: common.GraphSeed = None,
    seed: common.Seed = 0,
    device: common.Device = "cpu",
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Keep the ledger in DIR/diagnosis.jsonl; resumable."),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Say where samplers lose: nats of dependence and of denoiser error, round by round.

    Exact walks are forced through each sampler; nothing is sampled from it.

    Example: maskwalk diagnose --samplers 'bisection(order=1);entropy(block=2)' --task endpoints

    Example: maskwalk diagnose --denoiser zoo:st_er_deg7 --json

    Example: maskwalk diagnose --denoiser zoo:two_b1 --out runs/why, then maskwalk report runs/why
    """
    from dataclasses import asdict, replace

    from maskwalk.analysis.losses import PAPER, best_plans, exact_walks, for_json
    from maskwalk.analysis.losses import diagnose as one
    from maskwalk.analysis.losses import optimal as best_of
    from maskwalk.analysis.replay import check_replayable, truth_of
    from maskwalk.bench.cell import Cell
    from maskwalk.decoding.draw import preset as preset_of
    from maskwalk.denoisers.resolve import build_denoiser
    from maskwalk.samplers import SAMPLERS
    from maskwalk.worlds.walks.build import build_law
    from maskwalk.worlds.walks.tasks import TASKS

    bring_in(include)
    about = {"graph": graph, "graph_seed": graph_seed, "walk": walk, "length": length}
    about |= {"task": task, "denoiser": denoiser, "preset": preset, "count": count, "seed": seed}
    specs = [s.strip() for s in samplers.split(";") if s.strip()] or list(PAPER)
    cells = [Cell.checked(sampler=spec, **about) for spec in specs]
    draw, ties = preset_of(preset)
    jobs = [(cell.sampler, SAMPLERS.build(cell.sampler)) for cell in cells]
    for _, sampler in jobs:
        check_replayable(sampler, draw)
    cell = cells[0]
    law = build_law(cell.graph, cell.graph_seed, cell.walk, cell.length)
    model = build_denoiser(denoiser, law, check_device(device))
    oracle = truth_of(law, model)
    prompts = TASKS.build(cell.task, law=law, count=count, seed=seed)
    walks, given = (x.to(device) for x in exact_walks(law, prompts, seed, oracle))
    plans = best_plans(law, walks, given, oracle)
    if optimal:
        jobs += best_of(model, walks, given, optimal, plans, seed)
    settings: Row = {"seed": seed, "draw": draw, "ties": ties, "orders": orders, "plans": plans}
    place = {k: v for k, v in asdict(cell).items() if k in PLACE}
    rows = []
    with ledger(out_dir) as (known, keep), progress_on(len(jobs)) as step:
        for spec, sampler in jobs:
            step(spec)
            name = hashlib.sha256(f"{replace(cell, sampler=spec).key}|{orders}".encode())
            row = known.get(name.hexdigest())
            if row is None:
                row = one(law, model, sampler, walks, given, **settings)
                row = {"key": name.hexdigest(), **row, "sampler": spec, "model": denoiser, **place}
                keep(for_json(row))
            rows.append(row)
    if as_json:
        print(json.dumps(for_json(rows)))
    else:
        out.print(table(rows))
    if out_dir is not None:
        note = f"Wrote {out_dir / FILE}; `maskwalk report {out_dir}` draws it."
        (err if as_json else out).print(note, soft_wrap=True, markup=False)


@contextmanager
def ledger(directory: Path | None) -> Iterator[tuple[dict[str, Row], Any]]:
    """The rows a directory has already, by key, and how to append one; nothing is kept without."""
    if directory is None:
        yield {}, lambda row: None
        return
    from maskwalk.bench.records import RecordFile
    from maskwalk.report import read_ledger

    with RecordFile(directory / FILE) as file:  # takes away what a killed run left unfinished
        yield {row["key"]: row for row in read_ledger(directory) if "key" in row}, file.append


@contextmanager
def progress_on(total: int) -> Iterator[Any]:
    """A bar on stderr; call it with the name of each piece of work as it begins."""
    with progress() as shown:
        bar = shown.add_task("starting", total=total, completed=-1)

        def step(name: str) -> None:
            shown.update(bar, description=f"{name:<32.32}", advance=1)

        yield step
        shown.update(bar, advance=1)


def table(rows: list[Row]) -> Group:
    """The ledger for a person, in 80 columns."""
    from maskwalk.bench.labels import samplers

    labels = {s.spec: s.label for s in samplers([row["sampler"] for row in rows])}
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("sampler", max_width=28, no_wrap=True, overflow="ellipsis")
    for name in ("calls", "coherence", "KL", "depend.", "denois.", "worst", "regret"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sure = "" if row["reliable"] in (True, None) else "~"
        bound = "≤" if row["kl_kind"] == "upper" else ""
        cells = (
            labels[row["sampler"]],
            f"{row['calls']:.4g}",
            sure + number(row["coherence"], row["coherence_se"], 3),
            kl_shown(row, bound),
            number(row["dependence"]),
            number(row["denoiser"]),
            worst(row),
            number(row["regret"]),
        )
        shown.add_row(*(Text(cell) for cell in cells))
    return Group(shown, *(Text(line, style="dim") for line in LEGEND))


def kl_shown(row: Row, bound: str) -> str:
    """The KL with its error; a row read back from a file has null where it was infinite."""
    if row["kl_infinite"]:
        return f"{bound}∞"
    return "–" if row["kl"] is None else bound + number(row["kl"], row["kl_se"])


def number(value: float | None, se: float | None = None, digits: int = 2) -> str:
    """A value with its error; – where it is not known."""
    if value is None or value != value:
        return "–"
    if value == float("inf"):
        return "∞"
    error = "" if se is None or se != se else f" ±{se:.{digits}f}".replace("±0.", "±.")
    return f"{value:.{digits}f}{error}".replace("-0.00", "0.00")


def worst(row: Row) -> str:
    """The round that loses most, counted from 1, and what it loses."""
    if row["worst_round"] is None:
        return "–"
    part = row["rounds"][row["worst_round"]]
    loss = part["dependence"] + part["denoiser"]
    return f"{row['worst_round'] + 1}: {number(loss)}" if loss > 5e-3 else "–"
