"""`maskwalk reproduce`: a paper's results, next to the published values and to the truth."""

import os
from pathlib import Path
from typing import Annotated

import typer

from maskwalk.commands.common import check_device, err, out, progress, say_written
from maskwalk.errors import unknown


def reproduce(
    what: Annotated[str, typer.Argument(help="paper: all its graph tables and figures.")],
    to: Annotated[Path, typer.Option("--out", help="Directory for records and the report.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="A table or figure, such as table_endpoints; repeatable."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few dozen sequences a cell: minutes on two CPU cores."),
    ] = False,
    train: Annotated[
        bool,
        typer.Option("--train", help="Train the seven models first, instead of the shipped ones."),
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda (cuda if there is one).")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes (one a CPU core).")] = None,
) -> None:
    """Reproduce the paper: as it was printed, as the model does, as the sampler could.

    Ends with DIR/report.html and the comparison with the printed numbers.

    Killed? The same command goes on where it stopped.

    Example: maskwalk reproduce paper --quick --out runs/paper

    Example: maskwalk reproduce paper --only table_endpoints --out runs/endpoints --device cuda
    """
    import torch

    from maskwalk import reproduction
    from maskwalk.commands.compare import show
    from maskwalk.engine import Run
    from maskwalk.published import attach
    from maskwalk.published.comparison import compare, pairs
    from maskwalk.records import read_records
    from maskwalk.report import write_report

    if what != "paper":
        raise unknown("paper", what, ("paper",))
    device = check_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    workers = workers or (os.cpu_count() or 1 if device == "cpu" else 1)
    if device == "cpu" and not quick:
        err.print(
            "The full run takes days on a CPU; with --quick it takes minutes.", style="yellow"
        )
    if train or reproduction.lacking():
        os.environ["MASKWALK_ZOO"] = str(reproduction.train(to, device))
    runs = [Run(e, to, workers, device) for e in reproduction.paper(only, quick)]
    with progress() as shown:
        for run in runs:
            bar = shown.add_task(f"{run.experiment.name:<22}", total=run.total)
            for _ in run:
                shown.update(bar, completed=run.done)
            shown.update(bar, completed=run.total)
    keys = {cell.key for run in runs for cell in run.experiment.cells}
    records = [record for record in read_records(to) if record["key"] in keys]
    flags = [f"--only {name}" for name in only or ()] + ["--quick"] * quick + ["--train"] * train
    command = " ".join(["maskwalk reproduce paper", *flags, "--out DIR"])
    for path in write_report(attach(records), to, ("html", "csv", "md"), command):
        if path.suffix == ".html":
            say_written(path)
    if pairs(records):
        show(compare(records), "as_published")
        out.print(f"Next: maskwalk compare {to} --json", soft_wrap=True)
