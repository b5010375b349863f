"""`maskwalk reproduce`: a paper's results, next to the published values and to the truth."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwalk.cli import common, engines
from maskwalk.cli.common import check_device, err, out, run_jobs, say_notes, say_written
from maskwalk.cli.text.shared import ModelOption, Texts, Tokenizer
from maskwalk.errors import MaskwalkError, unknown

if TYPE_CHECKING:
    from maskwalk.bench.run import Engine

Theirs = tuple[str | None, tuple[str, ...], str | None, int | None]  # model, options, texts, length


def reproduce(
    what: Annotated[str, typer.Argument(help="paper: its graph tables and figures.")],
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            parser=common.path,
            help="Directory for records and the report.",
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="A table or figure, such as table_endpoints; repeatable. figure_language: the "
            "experiment on text, which is not part of the rest."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few dozen sequences per cell: minutes on two CPU cores."),
    ] = False,
    train: Annotated[
        bool,
        typer.Option("--train", help="Train the seven models first, instead of the shipped ones."),
    ] = False,
    models: Annotated[
        Path | None,
        typer.Option(help="figure_language: DIR/mdm and DIR/ar instead of the shipped models."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="figure_language: the judge, as for `maskwalk text judge`; or none."),
    ] = None,
    denoiser: Annotated[
        str | None,
        typer.Option(
            help="figure_language: a masked model of text (hf:PATH, hf:NAME, FILE.py:function) "
            "instead of ours."
        ),
    ] = None,
    texts: Texts = None,
    length: Annotated[
        int | None, typer.Option(help="figure_language with --denoiser: tokens of a text.")
    ] = None,
    tokenizer: Tokenizer = None,
    rows: Annotated[
        int | None, typer.Option(help="Of --denoiser: sequences read together \\[1].")
    ] = None,
    model_option: ModelOption = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda (cuda if there is one).")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes (one a CPU core).")] = None,
    engine: engines.Name = engines.PROCESSES,
    address: engines.Address = None,
    gpus: engines.Gpus = None,
    timeout: common.Timeout = None,
) -> None:
    """Reproduce the paper: as it was printed, as the model does, as the sampler could.

    Ends with DIR/report.html and the comparison with the printed numbers.

    Killed? The same command goes on where it stopped.

    Example: maskwalk reproduce paper --quick --out runs/paper

    Example: maskwalk reproduce paper --only table_endpoints --out runs/endpoints --device cuda

    Example: maskwalk reproduce paper --only figure_language --quick --out runs/language

    Example: maskwalk reproduce paper --only figure_language --denoiser hf:kuleshov-group/mdlm-owt
    --tokenizer gpt2 --texts owt.jsonl --length 1024 --judge gpt2-large --out runs/owt
    """
    import torch

    from maskwalk.bench.records import latest, load_records
    from maskwalk.bench.run import Run
    from maskwalk.cli.compare import show
    from maskwalk.paper import reproduce
    from maskwalk.paper.compare import compare, pairs
    from maskwalk.paper.tables import attach
    from maskwalk.report import write_report

    if what != "paper":
        raise unknown("paper", what, ("paper",))
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    cores = (os.cpu_count() or 1) if device == "cpu" and only != [reproduce.LANGUAGE] else 1
    place = engines.engine_named(engine, workers, device, (), timeout, address, gpus, cores)
    if only == [reproduce.LANGUAGE]:
        if train or (workers and engine == engines.PROCESSES):
            raise MaskwalkError(
                "--train and --workers are for the graph results; models of text are trained by "
                "`maskwalk text train` and named by --models."
            )
        words = [*(model_option or ()), *([f"tokenizer={tokenizer}"] if tokenizer else ())]
        words += [] if rows is None else [f"rows={rows}"]
        theirs = (denoiser, tuple(words), None if texts is None else str(texts), length)
        language(to, quick, models, judge, device, place, theirs)
        return
    if models or judge or denoiser or texts or length:
        raise MaskwalkError(
            "--models, --judge, --denoiser, --texts and --length belong to --only figure_language."
        )
    if engine == engines.PROCESSES:
        _warn(device, quick)
    if train or reproduce.lacking():
        os.environ["MASKWALK_ZOO"] = str(reproduce.train(to, check_device(device)))
    experiments = reproduce.paper(only, quick)
    jobs = {experiment.name: experiment.jobs(to) for experiment in experiments}
    every = [job for some in jobs.values() for job in some]
    whole = {what: every} if engine == engines.RAY else jobs  # a cluster starts its workers once
    for name, some in whole.items():
        run_jobs(Run(some, to / "records.jsonl", place), name)
    keys = {job.key for job in every}
    records = [record for record in latest(load_records(to)) if record["key"] in keys]
    flags = [f"--only {name}" for name in only or ()] + ["--quick"] * quick + ["--train"] * train
    command = " ".join(["maskwalk reproduce paper", *flags, "--out DIR"])
    for path in write_report(attach(records), to, ("html", "csv", "md"), command):
        if path.suffix == ".html":
            say_written(path)
    if pairs(records):
        show(compare(records), "as_published")
        out.print(f"Next: maskwalk compare {to} --json", soft_wrap=True)


def _warn(device: str, quick: bool) -> None:
    if device == "cpu" and not quick:
        err.print(
            "The full run takes days on a CPU; with --quick it takes minutes.", style="yellow"
        )


def language(
    to: Path,
    quick: bool,
    models: Path | None,
    judge: str | None,
    device: str,
    place: "Engine",
    theirs: Theirs = (None, (), None, None),
) -> None:
    """The experiment on text: write, score, replay; let the judge read, here; report."""
    import torch

    from maskwalk.analysis.judge import load_judge
    from maskwalk.bench.run import Run
    from maskwalk.bench.subject import is_foreign
    from maskwalk.bench.text_experiment import TextExperiment
    from maskwalk.bench.texts import check_texts
    from maskwalk.bench.versions import load_newest
    from maskwalk.cli.text.shared import judged
    from maskwalk.denoisers.language.source import read_options
    from maskwalk.paper.reproduce import LANGUAGE
    from maskwalk.report import write_report
    from maskwalk.report.terminal import terminal_table
    from maskwalk.resources import shipped

    file = shipped("experiments") / "paper" / f"{LANGUAGE}.toml"
    name, options, texts, length = theirs
    if name is None and (options or texts or length):
        raise MaskwalkError("--texts, --length, --tokenizer and the like belong to --denoiser.")
    if name is not None and (models is not None or not is_foreign(name)):
        raise MaskwalkError(
            f"--denoiser is hf:PATH, hf:NAME or FILE.py:function, without --models; not {name!r}."
        )
    experiment = TextExperiment.load(file, quick, models, denoiser=name is not None)
    device = device if torch.cuda.is_available() else "cpu"  # a cluster may have others
    if name is not None:
        read_options(options)
        experiment = experiment.with_denoiser(name, options, texts, length)
        check_texts(experiment, device)
    _warn(device, quick)
    chosen = judge not in (None, "none")
    reader = load_judge(judge, device=device) if chosen else None  # first: it may not be there
    run_jobs(Run(experiment.jobs(to), to / "records.jsonl", place), "writing")
    if judge is None:
        try:
            reader = load_judge(device=device)
        except MaskwalkError as problem:
            err.print(f"Not judged: {problem}", style="yellow")
            err.print(f"Later, or elsewhere: maskwalk text judge {to}", soft_wrap=True)
    if reader is not None:
        judged(to, reader)
    records, aside = load_newest(to)
    out.print(terminal_table(records))
    flags = ["--quick"] * quick + ["--models MODELS"] * (models is not None)
    flags += ["--denoiser MODEL --texts FILE"] * (name is not None)
    command = " ".join([f"maskwalk reproduce paper --only {LANGUAGE}", *flags, "--out DIR"])
    say_notes(aside.lines())
    for path in write_report(records, to, ("html", "csv", "md"), command, aside=aside.total):
        if path.suffix == ".html":
            say_written(path)
