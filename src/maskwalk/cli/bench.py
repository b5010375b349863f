"""`maskwalk bench`: an experiment file into records."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import common, complete, engines
from maskwalk.cli.common import bring_in, check_device, out, run_jobs


def bench(
    experiment: Annotated[
        Path,
        typer.Argument(
            help="A TOML file, or the name of a shipped one, such as quickstart.",
            autocompletion=complete.experiments,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option("--out", parser=common.path, help="Directory for records.jsonl."),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 32 prompts per cell, one sample of each.")
    ] = False,
    workers: engines.Workers = None,
    engine: engines.Name = engines.PROCESSES,
    address: engines.Address = None,
    gpus: engines.Gpus = None,
    timeout: common.Timeout = None,
    device: common.Device = "cpu",
    include: common.Include = None,
) -> None:
    """Run an experiment: worlds × tasks × samplers × denoisers, or texts; resumable at any moment.

    Killed, or out of disk? The same command goes on where it stopped. A cell that fails is skipped
    (skipped.jsonl says why), and the exit code is 2. Where a file of yours was edited since, the
    cells that depend on it are run again. Under torchrun all processes share the rows of each cell.

    Example: maskwalk bench quickstart --out runs/mine --workers 2

    Example: maskwalk bench paper/figure_language --quick --out runs/text

    Example: maskwalk bench atlas --out runs/atlas --engine ray --address auto
    """
    from maskwalk.bench.experiment import load_experiment
    from maskwalk.bench.records import latest, load_records
    from maskwalk.bench.run import Run, Unfinished
    from maskwalk.bench.shared import follow, leading
    from maskwalk.decoding.processes import rows_shared
    from maskwalk.errors import MaskwalkError, unknown
    from maskwalk.report.terminal import terminal_table
    from maskwalk.resources import at_hand

    plugins = bring_in(include)
    file = at_hand(experiment, "experiments", ".toml")
    if not file.exists() and not file.suffix:
        raise unknown("experiment", str(experiment), complete.experiment_names())
    jobs = load_experiment(file, quick).jobs(to)
    failed: Unfinished | None = None
    with rows_shared(check_device(device) if engine == engines.PROCESSES else "cpu") as group:
        if group.world > 1:
            if engine != engines.PROCESSES or workers is not None or timeout is not None:
                raise MaskwalkError("Under torchrun leave out --engine, --workers and --timeout.")
            if not group.first:
                follow(group, group.device)
                return
            place = leading(group, group.device)
        else:
            place = engines.engine_named(engine, workers, device, plugins, timeout, address, gpus)
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
