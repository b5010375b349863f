"""`maskwalk bench`: an experiment file into records."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, out, progress

QUICK = 32  # prompts


def bench(
    experiment: Annotated[Path, typer.Argument(help="A TOML file; see experiments/.")],
    to: Annotated[Path, typer.Option("--out", help="Directory for records.jsonl.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 32 prompts a cell, one sample of each.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes; the numbers do not depend on it.")] = 1,
    device: common.Device = "cpu",
    include: common.Include = None,
) -> None:
    """Run an experiment: graphs × tasks × samplers × denoisers, resumable at any moment.

    Killed, or out of disk? The same command goes on where it stopped.

    Example: maskwalk bench experiments/quickstart.toml --out runs/mine --workers 2
    """
    from maskwalk.bench.experiment import Experiment
    from maskwalk.bench.records import read_records
    from maskwalk.bench.run import Run
    from maskwalk.report.terminal import terminal_table

    includes = bring_in(include)
    loaded = Experiment.load(experiment)
    loaded = loaded.reduced(QUICK, 1) if quick else loaded
    run = Run(loaded, to, workers, check_device(device), includes)
    with progress() as shown:
        bar = shown.add_task("starting", total=run.total)
        for record in run:
            shown.update(bar, completed=run.done, description=f"{record['sampler']:<32.32}")
        shown.update(bar, completed=run.done, description="done")
    keys = {cell.key for cell in run.experiment.cells}
    out.print(terminal_table([r for r in read_records(to) if r["key"] in keys]))
    out.print(f"Records: {to / 'records.jsonl'}\nNext: maskwalk report {to}", soft_wrap=True)
