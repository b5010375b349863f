"""`maskwalk bench`: an experiment file into records."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, out, run_jobs


def bench(
    experiment: Annotated[Path, typer.Argument(help="A TOML file; see experiments/.")],
    to: Annotated[Path, typer.Option("--out", help="Directory for records.jsonl.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 32 prompts a cell, one sample of each.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes; the numbers do not depend on it.")] = 1,
    timeout: common.Timeout = None,
    device: common.Device = "cpu",
    include: common.Include = None,
) -> None:
    """Run an experiment: worlds × tasks × samplers × denoisers, or texts; resumable at any moment.

    Killed, or out of disk? The same command goes on where it stopped. A cell that fails is skipped
    (skipped.jsonl says why), and the exit code is 2. Where a file of yours was edited since, the
    cells that depend on it are run again. Under torchrun all processes share the rows of each cell.

    Example: maskwalk bench experiments/quickstart.toml --out runs/mine --workers 2

    Example: maskwalk bench experiments/paper/figure_language.toml --quick --out runs/text
    """
    from maskwalk.bench.experiment import load_experiment
    from maskwalk.bench.records import latest, load_records
    from maskwalk.bench.run import Run, Unfinished, engine
    from maskwalk.bench.shared import follow, leading
    from maskwalk.decoding.processes import rows_shared
    from maskwalk.errors import MaskwalkError, whole
    from maskwalk.report.terminal import terminal_table

    plugins = bring_in(include)
    jobs = load_experiment(experiment, quick).jobs(to)
    workers = whole("workers", workers, 1)
    failed: Unfinished | None = None
    with rows_shared(check_device(device)) as group:
        if group.world > 1 and (workers > 1 or timeout is not None):
            raise MaskwalkError("Under torchrun leave out --workers and --timeout.")
        if not group.first:
            follow(group, group.device)
            return
        place = engine(workers, group.device, plugins, timeout)
        if group.world > 1:
            place = leading(group, group.device)
        try:
            run_jobs(Run(jobs, to / "records.jsonl", place))
        except Unfinished as problem:
            failed = problem
    keys = {job.key for job in jobs}
    finished = [r for r in latest(load_records(to)) if r["key"] in keys]
    if finished:
        out.print(terminal_table(finished))
    if failed is not None:
        raise failed
    out.print(f"Records: {to / 'records.jsonl'}\nNext: maskwalk report {to}", soft_wrap=True)
