"""`maskwalk diagnose`: where samplers lose in one world, for people and for machines."""

import json
from math import log
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from maskwalk.cli import common, engines
from maskwalk.cli.common import bring_in, check_device, err, out, run_jobs, say_notes, specs_in
from maskwalk.cli.text.shared import TRIED, ModelOption, Texts, Tokenizer, options_of
from maskwalk.errors import MaskwalkError

Row = dict[str, Any]
LEGEND = (
    "KL: nats lost per sequence, ± half of a 95 % interval (≤: an upper bound, its",
    "order is random; --orders tightens it). Its two parts:",
    "  depend.: tokens drawn together did not see each other; the sampler's part",
    "  denois.: the probabilities were wrong; the denoiser's part",
    "worst: the round that loses most, and how much. regret: depend. beyond that of",
    "the best fixed plan with as many calls. ~: unreliable, too few sequences count.",
)
TEXT_LEGEND = (
    "± half of a 95 % interval. ≤: upper bound, the sampler is stochastic (--orders",
    "tightens it). depend.: nats per passage that the positions of a round lose under",
    "the model by not seeing each other. worst: the round that loses most.",
)


def diagnose(
    world: common.World = None,
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    graph_seed: common.GraphSeed = None,
    denoiser: Annotated[
        str,
        typer.Option(
            help="oracle, zoo:NAME (brings its world), a trained directory; of text also hf:PATH, "
            "hf:NAME, FILE.py:function."
        ),
    ] = "oracle",
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
    texts: Texts = None,
    tokenizer: Tokenizer = None,
    rows_together: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Of an hf: model: sequences read together \\[1].",
            rich_help_panel=common.TEXT,
        ),
    ] = None,
    model_option: ModelOption = None,
    seed: common.Seed = 0,
    device: common.Device = "cpu",
    workers: engines.Workers = None,
    engine: engines.Name = engines.PROCESSES,
    address: engines.Address = None,
    gpus: engines.Gpus = None,
    timeout: common.Timeout = None,
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=common.path,
            help="Keep the rows in DIR/diagnosis.jsonl; resumable.",
        ),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Say where samplers lose: nats of dependence and of denoiser error, round by round.

    Exact sequences are forced through each sampler; nothing is sampled from it. On text held-out
    passages are, and the model's own conditionals stand for the law: what the positions of a round
    lose by not seeing each other.

    Example: maskwalk diagnose --samplers 'bisection(order=1);entropy(block=2)' --task endpoints

    Example: maskwalk diagnose --denoiser zoo:st_er_deg7 --json

    Example: maskwalk diagnose --denoiser hf:bert-base-uncased --texts mine.txt --length 64

    Example: maskwalk diagnose --denoiser zoo:two_b1 --out runs/why, then maskwalk report runs/why
    """
    import tempfile

    from maskwalk.analysis.losses import PAPER
    from maskwalk.bench.cell import Cell
    from maskwalk.bench.diagnosis import FILE, jobs, load_rows
    from maskwalk.bench.run import Run, Unfinished
    from maskwalk.bench.subject import Subject
    from maskwalk.bench.text_diagnosis import resolved, text_jobs
    from maskwalk.decoding.draw import decoding_in, read_draw
    from maskwalk.decoding.policy import SAMPLERS
    from maskwalk.decoding.processes import alone
    from maskwalk.denoisers.language.source import is_text_model
    from maskwalk.errors import whole

    alone("diagnose")
    plugins = bring_in(include)
    specs = specs_in(samplers)
    orders = whole("orders", orders, 1)
    where = engines.engine_named(engine, workers, device, plugins, timeout, address, gpus)
    on_text = is_text_model(denoiser)
    if on_text:
        walks = (world, graph, walk, graph_seed, *(optimal or ()))
        if task != "unconditional" or any(value is not None for value in walks):
            raise MaskwalkError(
                f"{denoiser} is a model of text: it has no world, graph, task or best plans; leave "
                "those options out."
            )
        subject = Subject(
            denoiser,
            options_of(tokenizer, rows_together, model_option),
            None if texts is None else str(texts),
            length,
            count=whole("count", count, 1),
        )
        subject, notes = resolved(subject, check_device(device))
        say_notes([f"Note: {note}." for note in notes])
        names = [SAMPLERS.canonical(spec) for spec in specs or TRIED]
        work = text_jobs(subject, names, *read_draw(preset, draw, ties), orders, seed)
    else:
        if texts or tokenizer or rows_together or model_option:
            raise MaskwalkError(
                "--texts, --tokenizer, --rows and --model-option belong to a model of text."
            )
        specs = specs or list(PAPER)
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
        here = check_device(device) if optimal else device  # the best plans are found here
        work = jobs(cell, names, orders, optimal or (), here)
    failed: Unfinished | None = None
    with tempfile.TemporaryDirectory() as nowhere:
        file = (Path(nowhere) if out_dir is None else out_dir) / FILE
        try:
            run_jobs(Run(work, file, where, load_rows))
        except Unfinished as problem:
            failed = problem
        known = {row["key"]: row for row in load_rows(file)}
    rows = [known[job.key] for job in work if job.key in known]
    decodings = [decoding_in(row) for row in rows]
    if as_json:
        print(json.dumps([row | {"decoding": line} for row, line in zip(rows, decodings)]))
    elif rows:
        out.print(text_table(rows) if on_text else table(rows))
        out.print("As options, to be pasted behind a command:", style="dim")
        for line in dict.fromkeys(decodings):
            out.print(line, soft_wrap=True, markup=False, highlight=False)
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
    lines = [Text(said) for row in rows if (said := cut_off(row, labels[row["sampler"]]))]
    return Group(grid, *lines, *(Text(line, style="dim") for line in LEGEND))


def cut_off(row: Row, name: str) -> str | None:
    """What an infinite KL is made of: a sentence, where the row knows."""
    if not row["kl_infinite"] or row.get("kl_rest") is None:
        return None
    bound = "at most " if row["kl_kind"] == "upper" else ""
    return (
        f"{name}: {row['lost']:.1%} of the exact sequences can never be drawn; KL of the rest "
        f"{bound}{number(row['kl_rest'], row.get('kl_rest_se'))} nats."
    )


def text_table(rows: list[Row]) -> Group:
    """The rows of a model of text: what held-out text costs, and what blocks lose."""
    from maskwalk.bench.labels import samplers
    from maskwalk.worlds.metrics import METRICS

    cost = METRICS.cost
    labels = {s.spec: s.label for s in samplers([row["sampler"] for row in rows])}
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("sampler", max_width=28, no_wrap=True, overflow="ellipsis")
    unit = rows[0]["unit"]
    for name in (cost.title, "nats per token", f"bits per {unit}", "depend.", "worst"):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        bound, scored = "≤" if row["kl_kind"] == "upper" else "", row["tokens"]
        nats, se = row["nll"], row["nll_se"]
        each = None if nats is None else nats / scored
        cells = (
            labels[row["sampler"]],
            f"{row[cost.key]:.4g}",
            "∞" if each is None else bound + number(each, None if se is None else se / scored, 3),
            "∞" if nats is None else bound + number(nats / log(2) / row["bytes"], None, 3),
            number(row["dependence"], row["dependence_se"]),
            worst(row),
        )
        grid.add_row(*(Text(cell) for cell in cells))
    return Group(grid, *(Text(line, style="dim") for line in TEXT_LEGEND))


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
    if part["denoiser"] is None and row["kl_infinite"]:  # null in a file
        return f"{row['worst_round'] + 1}: ∞"
    loss = part["dependence"] + (part["denoiser"] or 0.0)
    return f"{row['worst_round'] + 1}: {number(loss)}" if loss > 5e-3 else "–"
