"""`maskwalk diagnose`: where samplers lose in one world, for people and for machines."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, err, out, run_jobs

Row = dict[str, Any]
LEGEND = (
    "Nats per sequence ± half of a 95 % interval. ≤: upper bound, the sampler is",
    "stochastic (--orders tightens it). ~: unreliable, under 50 effective",
    "sequences. depend. and denois.: the two parts of the loss. worst: the round",
    "that loses most. regret: dependence above the best fixed plan of sets with as",
    "many calls.",
)


def diagnose(
    world: common.World = None,
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    graph_seed: common.GraphSeed = None,
    denoiser: common.Denoiser = "oracle",
    samplers: Annotated[
        str, typer.Option(help="Specs separated by ';'. Default: the paper's 24.")
    ] = "",
    task: common.Task = "unconditional",
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    count: Annotated[int, typer.Option(help="Exact sequences to replay.")] = 64,
    orders: Annotated[int, typer.Option(help="Replays of each; more tighten a random KL.")] = 1,
    optimal: Annotated[
        list[int] | None,
        typer.Option(help="Also the best block sizes and sets for this many calls; repeatable."),
    ] = None,
    seed: common.Seed = 0,
    device: common.Device = "cpu",
    workers: Annotated[int, typer.Option(help="Processes; the numbers do not depend on it.")] = 1,
    timeout: common.Timeout = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Keep the rows in DIR/diagnosis.jsonl; resumable."),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Say where samplers lose: nats of dependence and of denoiser error, round by round.

    Exact sequences are forced through each sampler; nothing is sampled from it.

    Example: maskwalk diagnose --samplers 'bisection(order=1);entropy(block=2)' --task endpoints

    Example: maskwalk diagnose --denoiser zoo:st_er_deg7 --json

    Example: maskwalk diagnose --denoiser zoo:two_b1 --out runs/why, then maskwalk report runs/why
    """
    import tempfile

    from maskwalk.analysis.losses import PAPER
    from maskwalk.bench.cell import Cell
    from maskwalk.bench.diagnosis import FILE, jobs, load_rows
    from maskwalk.bench.run import Run, Unfinished, engine
    from maskwalk.decoding.policy import SAMPLERS
    from maskwalk.errors import whole

    plugins = bring_in(include)
    specs = [s.strip() for s in samplers.split(";") if s.strip()] or list(PAPER)
    cell = Cell.checked(
        world=world,
        graph=graph,
        graph_seed=graph_seed,
        walk=walk,
        length=length,
        task=task,
        sampler=specs[0],
        denoiser=denoiser,
        preset=preset,
        draw=draw,
        ties=ties,
        count=count,
        seed=seed,
    )
    names = [SAMPLERS.canonical(spec) for spec in specs]
    work = jobs(cell, names, whole("orders", orders, 1), optimal or (), check_device(device))
    where = engine(whole("workers", workers, 1), device, plugins, timeout)
    failed: Unfinished | None = None
    with tempfile.TemporaryDirectory() as nowhere:
        file = (Path(nowhere) if out_dir is None else out_dir) / FILE
        try:
            run_jobs(Run(work, file, where, load_rows))
        except Unfinished as problem:
            failed = problem
        known = {row["key"]: row for row in load_rows(file)}
    rows = [known[job.key] for job in work if job.key in known]
    if as_json:
        print(json.dumps(rows))
    elif rows:
        out.print(table(rows))
    if failed is not None:
        raise failed
    if out_dir is not None:
        note = f"Wrote {out_dir / FILE}; `maskwalk report {out_dir}` draws it."
        (err if as_json else out).print(note, soft_wrap=True, markup=False)


def table(rows: list[Row]) -> Group:
    """The rows for a person, in 80 columns."""
    from maskwalk.bench.labels import samplers
    from maskwalk.report.losses import settled_row
    from maskwalk.worlds.metrics import METRICS

    cost, quality = METRICS.cost, METRICS.describe("coherence")
    labels = {s.spec: s.label for s in samplers([row["sampler"] for row in rows])}
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("sampler", max_width=28, no_wrap=True, overflow="ellipsis")
    for name in (cost.title, quality.title, "KL", "depend.", "denois.", "worst", "regret"):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sure = "" if row["reliable"] in (True, None) else "~"
        bound = "≤" if row["kl_kind"] == "upper" else ""
        cells = (
            labels[row["sampler"]],
            f"{row[cost.key]:.4g}",
            sure + number(row[quality.key], settled_row(row, quality), quality.digits),
            kl_shown(row, bound),
            number(row["dependence"]),
            number(row["denoiser"]),
            worst(row),
            number(row["regret"]),
        )
        grid.add_row(*(Text(cell) for cell in cells))
    return Group(grid, *(Text(line, style="dim") for line in LEGEND))


def kl_shown(row: Row, bound: str) -> str:
    """The KL with its error; a row read back from a file has null where it was infinite."""
    if row["kl_infinite"]:
        return f"{bound}∞"
    return "–" if row["kl"] is None else bound + number(row["kl"], row["kl_se"])


def number(value: float | None, se: float | None = None, digits: int = 2) -> str:
    """A value ± half of its 95 % interval; – where it is not known."""
    from maskwalk.report.estimates import half_text
    from maskwalk.stats import half_width

    if value is None or value != value:
        return "–"
    if value == float("inf"):
        return "∞"
    half = None if se is None or se != se else half_width(se)
    text = "" if half is None else half_text(half, digits)
    error = f" ±{text}".replace("±0.", "±.") if text else ""
    return f"{value:.{digits}f}{error}".replace("-0.00", "0.00")


def worst(row: Row) -> str:
    """The round that loses most, counted from 1, and what it loses."""
    if row["worst_round"] is None:
        return "–"
    part = row["rounds"][row["worst_round"]]
    loss = part["dependence"] + part["denoiser"]
    return f"{row['worst_round'] + 1}: {number(loss)}" if loss > 5e-3 else "–"
