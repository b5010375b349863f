"""`maskwalk evaluate`: a verdict on a policy."""

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from maskwalk.cli import common, engines
from maskwalk.cli.common import (
    MACHINES,
    TEXT,
    bring_in,
    check_device,
    err,
    out,
    say_notes,
    say_written,
    stoppable,
)
from maskwalk.cli.text.shared import MODELS, ModelOption, Texts, Tokenizer, options_of
from maskwalk.errors import MaskwalkError, whole

if TYPE_CHECKING:
    from maskwalk.bench.run import Engine
    from maskwalk.bench.subject import Subject


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
            parser=common.path,
            help="Keep evaluation.json, verdict.html (a page), records and baselines in this "
            "directory; it may hold those of other policies.",
        ),
    ] = None,
    denoiser: Annotated[
        str | None,
        typer.Option(help=f"Instead of a suite: {MODELS}", rich_help_panel=TEXT),
    ] = None,
    texts: Texts = None,
    length: Annotated[
        int | None,
        typer.Option(
            help="Tokens of a passage \\[64, or as many as there are].", rich_help_panel=TEXT
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="Held-out passages.", rich_help_panel=TEXT)] = 32,
    written: Annotated[
        int, typer.Option(help="Texts that a setting writes.", rich_help_panel=TEXT)
    ] = 16,
    paths: Annotated[
        int, typer.Option(help="Paths of a stochastic policy.", rich_help_panel=TEXT)
    ] = 4,
    tokenizer: Tokenizer = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Of an hf: model: sequences read together \\[1].", rich_help_panel=TEXT),
    ] = None,
    model_option: ModelOption = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda.", rich_help_panel=TEXT)] = "cpu",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Go on although the contract is broken.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes for the baselines [2; of text 1], or workers of a cluster \\[all].",
            rich_help_panel=MACHINES,
        ),
    ] = None,
    engine: engines.Name = engines.PROCESSES,
    address: engines.Address = None,
    gpus: engines.Gpus = None,
    draw: Annotated[
        str,
        typer.Option(
            help="How the policy's tokens are drawn: a preset, or 'draw(floor=0.2)'. The "
            "baselines' draws stay exact; what cuts the marginals is measured against the law."
        ),
    ] = "exact",
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds that the contract of a setting, or one scene, may take.",
            rich_help_panel=MACHINES,
        ),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Say whether a policy beats the known samplers at the same number of calls (2 min).

    Policy and baselines get the same prompts and random streams. The file is executed.

    A class, or a name without brackets, runs at every setting of its sweep.

    Exit code 1: the contract is broken.

    Example: maskwalk evaluate my_policy.py:MyPolicy

    Example: maskwalk evaluate 'threshold(tau=0.7)' --json

    Example: maskwalk evaluate my_policy.py:MyPolicy --suite worlds

    Example: maskwalk evaluate guided_bisection --draw 'draw(floor=0.2)'

    Example: maskwalk evaluate my_policy.py:MyPolicy --denoiser hf:mdlm-owt --texts owt.jsonl
    """
    from maskwalk.bench.subject import Subject
    from maskwalk.bench.verdict.run import evaluate as verdict_on
    from maskwalk.decoding.draw import read_draw
    from maskwalk.decoding.processes import alone
    from maskwalk.report.verdict import write_verdicts
    from maskwalk.report.words import typed

    alone("evaluate")
    plugins = bring_in(include)
    options = options_of(tokenizer, rows, model_option)
    if denoiser is not None:
        file = None if texts is None else str(texts)
        subject = Subject(denoiser, options, file, length, count=whole("count", count, 1))
        drawn, broken = read_draw(draw)
        how = {"draw": drawn, "ties": broken, "seed": 0, "judge": None}
        how |= {"texts": whole("written", written, 1), "paths": whole("paths", paths, 1)}
        told = (workers, check_device(device), plugins, timeout, address, gpus)
        there = engines.engine_named(engine, *told)
        _on_text(policy, subject, how, anyway, to, device, timeout, as_json, there)
        return
    if texts or options:
        raise MaskwalkError(
            "--texts, --tokenizer, --rows and --model-option belong to a model of text: name it by "
            "--denoiser."
        )
    place = engines.cluster_named(engine, workers, plugins, timeout, address, gpus)
    if place is not None:  # its address is checked before the policy runs, which takes minutes
        place.connect()
    with stoppable("the baselines that are finished are kept"):
        evaluation = verdict_on(
            policy,
            suite,
            anyway=anyway,
            out=to,
            workers=2 if workers is None else workers,
            timeout=timeout,
            draw=draw,
            engine=place,
            command=typed(sys.argv[1:]),
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


def _on_text(
    policy: str,
    subject: "Subject",
    how: dict[str, Any],
    anyway: bool,
    to: Path | None,
    device: str,
    timeout: float | None,
    as_json: bool,
    place: "Engine",
) -> None:
    """The verdict with a model of text."""
    from maskwalk.bench.text_diagnosis import USUAL, resolved
    from maskwalk.bench.verdict.on_text import evaluate_on_text

    subject, notes = resolved(subject, device, USUAL)
    say_notes([f"Note: {note}." for note in notes])
    with (
        tempfile.TemporaryDirectory() as nowhere,
        stoppable("the baselines that are finished stay"),
    ):
        evaluation = evaluate_on_text(
            policy,
            subject,
            how,
            anyway=anyway,
            out=Path(nowhere) if to is None else to,
            device=device,
            timeout=timeout,
            engine=place,
            told=lambda what: err.print(what, style="dim", soft_wrap=True),
        )
    if as_json:
        print(json.dumps(evaluation.as_dict()))
    else:
        out.print(Text("\n".join(evaluation.lines())), soft_wrap=True)
    if not evaluation.kept:
        raise typer.Exit(1)
