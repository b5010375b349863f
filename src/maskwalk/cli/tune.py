"""`maskwalk tune`: which sampler and setting for a model at a budget of calls."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from maskwalk.cli import common, engines
from maskwalk.cli.common import bring_in, out, run_jobs, say_notes, specs_in, stoppable, watched
from maskwalk.cli.text.shared import ModelOption, Texts, Tokenizer, options_of
from maskwalk.errors import MaskwalkError, seed_number, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from maskwalk.bench.plan import Job

Row = dict[str, Any]
LEGEND = (
    "± half of a 95 % interval. ≤: upper bound, the policy is stochastic. *: on the",
    "front, no setting with as few calls is better. †: its sequences are not the",
    "law's; never the best.",
)


def tune(
    denoiser: Annotated[
        str,
        typer.Option(
            help="A model of text (zoo:books_mdm, a directory of `text train`, hf:PATH, hf:NAME, "
            "FILE.py:function), or of a world: oracle, zoo:NAME, a trained directory."
        ),
    ],
    calls: Annotated[
        list[int] | None,
        typer.Option(help="The budget: calls per sequence; repeatable \\[32]."),
    ] = None,
    samplers: Annotated[
        str, typer.Option(help="Settings to try, separated by ';', instead of the usual ones.")
    ] = "",
    texts: Texts = None,
    length: Annotated[
        int | None,
        typer.Option(help="Tokens of a text \\[64, or as many as there are] or walk."),
    ] = None,
    count: Annotated[int, typer.Option(help="Held-out passages, or sequences of a world.")] = 32,
    written: Annotated[
        int, typer.Option(help="Texts to write with every setting.", rich_help_panel=common.TEXT)
    ] = 16,
    paths: Annotated[
        int, typer.Option(help="Paths of a stochastic policy.", rich_help_panel=common.TEXT)
    ] = 4,
    judge: Annotated[
        str | None,
        typer.Option(
            help="An autoregressive hf: model that reads the texts \\[the model itself].",
            rich_help_panel=common.TEXT,
        ),
    ] = None,
    world: common.World = None,
    task: common.Task = "unconditional",
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    seed: common.Seed = 0,
    tokenizer: Tokenizer = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Of an hf: model: sequences read together \\[1].", rich_help_panel=common.TEXT
        ),
    ] = None,
    model_option: ModelOption = None,
    device: common.Device = "cpu",
    workers: engines.Workers = None,
    engine: engines.Name = engines.PROCESSES,
    address: engines.Address = None,
    gpus: engines.Gpus = None,
    timeout: common.Timeout = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=common.path,
            help="Keep what is finished in DIR; resumable.",
        ),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Find the best sampler, and its setting, for a model at a budget of calls.

    Every rule gets the setting that spends the budget; parameters whose calls depend on the model
    are found on a few sequences. Then each is measured: the likelihood of held-out sequences
    forced through it, and the quality of what it writes. Ends with the specs to paste.

    Example: maskwalk tune --denoiser zoo:books_mdm --calls 16

    Example: maskwalk tune --denoiser hf:mdlm-owt --tokenizer gpt2 --texts owt.jsonl --calls 32

    Example: maskwalk tune --denoiser zoo:st_er_deg7 --calls 8 --count 256
    """
    from maskwalk.bench.run import Run
    from maskwalk.bench.tuning.result import summary
    from maskwalk.bench.tuning.search import FILE, Search, check_budgets, load_rows
    from maskwalk.decoding.draw import decoding_of, read_draw
    from maskwalk.decoding.presets import around, around_line
    from maskwalk.decoding.processes import alone
    from maskwalk.denoisers.language.source import is_text_model
    from maskwalk.samplers import SAMPLERS

    alone("tune")
    plugins = bring_in(include)
    seed = seed_number("seed", seed)
    place = engines.engine_named(engine, workers, device, plugins, timeout, address, gpus)
    device = device if engine == engines.PROCESSES else "cpu"  # of what is read here
    specs = [SAMPLERS.canonical(s) for s in specs_in(samplers)]
    drawn = read_draw(preset, draw, ties)
    if is_text_model(denoiser):
        if world is not None or task != "unconditional":
            raise MaskwalkError(f"{denoiser} is a model of text: it has no world and no task.")
        options = options_of(tokenizer, rows, model_option)
        how = {"draw": drawn[0], "ties": drawn[1], "seed": seed, "judge": judge}
        how |= {"texts": whole("written", written, 1), "paths": whole("paths", paths, 1, 10_000)}
        how |= {k: v for k, v in around(preset).items() if v}  # a canvas is filled to its end
        masked, job = _on_text(denoiser, options, texts, length, count, how, device)
    else:
        if texts or tokenizer or rows or model_option or judge:
            raise MaskwalkError(
                "--texts, --tokenizer, --rows, --model-option and --judge belong to a model of text"
                "."
            )
        masked, job = _in_world(denoiser, world, length, task, count, seed, preset, draw, ties)
    budgets = check_budgets(calls or [32], masked)
    with tempfile.TemporaryDirectory() as nowhere:
        path = (Path(nowhere) if to is None else to) / FILE
        search = Search(job, masked, path, place)
        if not specs:
            words = f"fitting parameters to {' and '.join(map(str, budgets))} calls"
            with stoppable(f"what is finished is in {path}"):
                found_so_far = watched(search.turning(budgets), words, search.steps(budgets))
                specs = list(dict.fromkeys(spec for some in found_so_far for spec in some))
            say_notes(search.notes)
        trials = search.trials(specs)
        run_jobs(Run(trials, path, place, load_rows))
        found = summary(search.rows(trials), budgets)
    rest = around_line(**around(preset)) if is_text_model(denoiser) else ""
    decodings = {s["sampler"]: decoding_of(s["sampler"], *drawn) + rest for s in found["settings"]}
    if as_json:
        settings = [s | {"decoding": decodings[s["sampler"]]} for s in found["settings"]]
        print(json.dumps(found | {"settings": settings}))
        return
    out.print(table(found))
    for one in found["best"]:
        others = f"; not told apart: {', '.join(one['level'])}" if one["level"] else ""
        line = f"Best with {one['calls']} calls by {one['by']}: {one['best']}{others}"
        out.print(Text(line))
    if found["best"]:
        line = decodings[found["best"][0]["best"]]
        out.print(f"Next: {line}", soft_wrap=True, markup=False, highlight=False)


def _on_text(
    denoiser: str,
    options: dict[str, Any],
    texts: Path | None,
    length: int | None,
    count: int,
    how: Row,
    device: str,
) -> "tuple[int, Callable[[str, int], Job]]":
    """How many tokens are masked, and the job of a setting."""
    from maskwalk.bench.subject import Subject
    from maskwalk.bench.text_diagnosis import USUAL, resolved
    from maskwalk.bench.tuning.trial import text_job

    file = None if texts is None else str(texts)
    subject = Subject(denoiser, options, file, length, count=whole("count", count, 1))
    subject, notes = resolved(subject, device, USUAL)
    say_notes([f"Note: {note}." for note in notes])
    model, passages = subject.load(device)
    if model.causal:
        raise MaskwalkError(
            f"{denoiser} is autoregressive: it writes left to right, one token per call; there is "
            "nothing to tune."
        )
    if how["judge"] is not None and model.tokenizer is None:
        raise MaskwalkError("A judge reads text, and this model has no tokenizer to write it with.")

    def job(spec: str, pilot: int) -> "Job":
        return text_job(subject, spec, how, pilot)

    return int((~passages.given[0]).sum()), job


def _in_world(
    denoiser: str,
    world: str | None,
    length: int | None,
    task: str,
    count: int,
    seed: int,
    preset: str,
    draw: str | None,
    ties: str | None,
) -> "tuple[int, Callable[[str, int], Job]]":
    from maskwalk.bench.cell import Cell
    from maskwalk.bench.tuning.trial import world_job
    from maskwalk.denoisers.resolve import resolve_world
    from maskwalk.worlds.metrics import METRICS, REPLAY
    from maskwalk.worlds.tasks import build_prompts
    from maskwalk.worlds.world import build_world

    known = resolve_world(denoiser, {"world": world, "length": length})
    metrics = dict.fromkeys((*METRICS.default(known), *METRICS.reading(REPLAY)))
    cell = Cell.checked(
        world=world,
        length=length,
        task=task,
        sampler="random",
        denoiser=denoiser,
        preset=preset,
        draw=draw,
        ties=ties,
        count=count,
        seed=seed,
        metrics=tuple(metrics),
    )
    place = build_world(cell.world)
    masked = (build_prompts(cell.task, place, 1, seed).tokens == place.vocab_size).sum()

    def job(spec: str, pilot: int) -> "Job":
        return world_job(cell, spec, pilot)

    return int(masked), job


def table(found: Row) -> Group:
    """The settings for a person, best likelihood first."""
    from maskwalk.bench.tuning.result import MEASURES, value
    from maskwalk.decoding.kinds import MARK, SHAPED

    def rank(row: Row) -> float:
        held_out = value(row, MEASURES[0])
        return float("inf") if held_out is None else -held_out

    rows = sorted(found["settings"], key=rank)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("setting", overflow="fold")
    units = [next((r[m]["unit"] for r in rows if r[m]), "–") for m in MEASURES]
    heads = ("calls", f"held out,\n{units[0]}", f"written,\n{units[1]}")  # leaves room for specs
    for name in heads:
        grid.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        mark = f" {MARK}" if row["kind"] == SHAPED else ""
        cells = [_shown(row, m, row["sampler"] in found["front"][m]) for m in MEASURES]
        grid.add_row(Text(row["sampler"] + mark), f"{row['calls']['value']:.4g}", *cells)
    return Group(grid, *(Text(line, style="dim") for line in LEGEND))


def _shown(row: Row, measure: str, leads: bool) -> str:
    from maskwalk.stats import half_width

    found = row[measure]
    if found is None:
        return "–"
    if found["value"] is None:
        return "∞"
    half = half_width(found["se"])
    error = "" if half is None else f" ± {half:.3f}"
    bound = "≤ " if found.get("bound") else ""
    return f"{bound}{found['value']:.3f}{error}{'*' if leads else ' '}"
