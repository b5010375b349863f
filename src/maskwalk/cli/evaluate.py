"""`maskwalk evaluate`: a verdict on a policy."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, out, say_written, stoppable


def evaluate(
    policy: Annotated[
        str, typer.Argument(help="FILE.py:Class (the file is run), or a spec: 'entropy(block=2)'.")
    ],
    suite: Annotated[
        str,
        typer.Option(help="quick (walks, two minutes), worlds (ten others) or full (walks)."),
    ] = "quick",
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Keep evaluation.json, verdict.html (a page), records and baselines in this "
            "directory; it may hold those of other policies.",
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Go on although the contract is broken.")
    ] = False,
    workers: Annotated[
        int, typer.Option(help="Processes for the baselines; the numbers do not depend on it.")
    ] = 2,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that the contract of a setting, or one scene, may take."),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Say whether a policy beats what there is, at the same number of calls.

    Policy and baselines get the same prompts and random streams. The file is executed.

    A class, or a name without brackets, runs at every setting of its sweep.

    Exit code 1: the contract is broken.

    Example: maskwalk evaluate my_policy.py:MyPolicy

    Example: maskwalk evaluate 'threshold(tau=0.7)' --json

    Example: maskwalk evaluate my_policy.py:MyPolicy --suite worlds
    """
    from maskwalk.bench.verdict.run import evaluate as verdict_on
    from maskwalk.report.verdict import write_verdicts

    bring_in(include)
    with stoppable("the baselines that are finished are kept"):
        evaluation = verdict_on(
            policy, suite, anyway=anyway, out=to, workers=workers, timeout=timeout
        )
    page = None if to is None else write_verdicts(to)
    if as_json:
        print(json.dumps(evaluation.as_dict()))
    else:
        out.print(Text(str(evaluation)), soft_wrap=True)
        if to is not None:
            say_written(to / "evaluation.json")
            if page is not None:
                say_written(page)
            if evaluation.comparisons:
                out.print(f"Next: maskwalk report {to}", soft_wrap=True)
    if not evaluation.kept:
        raise typer.Exit(1)
