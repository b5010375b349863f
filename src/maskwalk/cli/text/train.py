"""`maskwalk text train`: a model of a prepared corpus, its test, and a first look at its texts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from maskwalk.cli import common
from maskwalk.cli.common import check_device, err, out, run_jobs, say_written
from maskwalk.cli.text.shared import TRIED
from maskwalk.errors import MaskwalkError


def train(
    data: Annotated[Path, typer.Argument(help="What `maskwalk text prepare` wrote.")],
    to: Annotated[
        Path,
        typer.Option("--out", parser=common.path, help="Directory for the model."),
    ],
    kind: Annotated[str, typer.Option(help="masked (diffusion) or causal.")] = "masked",
    size: Annotated[str, typer.Option(help="base (24 M parameters) or small (1.9 M).")] = "base",
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 3_500,
    batch: Annotated[int, typer.Option(help="Passages per step.")] = 256,
    length: Annotated[int, typer.Option(help="Tokens in a passage.")] = 256,
    dropout: Annotated[float, typer.Option(help="Dropout rate.")] = 0.1,
    masking: Annotated[
        str,
        typer.Option(
            help="In which contexts a masked model learns: uniform, 'coarse(share=0.5)', …"
        ),
    ] = "uniform",
    seed: Annotated[int, typer.Option(help="Seed of weights, order and noise.")] = 0,
    tested: Annotated[int, typer.Option(help="Test passages, of a masked model.")] = 512,
    scorer: Annotated[
        Path | None, typer.Option(help="A causal model: scores what a masked one writes.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Texts to write and score at the end.")] = 64,
    device: common.Device = "cpu",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint.")
    ] = False,
) -> None:
    """Train a model of text; then test it, let it write, and score what it wrote.

    Example: maskwalk text train data/books --kind causal --out runs/books/ar --device cuda

    \b
    Example: maskwalk text train data/books --kind masked --out runs/books/mdm \\
      --scorer runs/books/ar --device cuda
    """
    from maskwalk.denoisers.language.books import is_books
    from maskwalk.training.fit_text import HELD, Plan, fit_text
    from maskwalk.worlds.text.corpus import Corpus

    plan = Plan(kind, size, length, steps, batch, dropout, seed, tested, masking)
    corpus = Corpus.load(data)
    most = min(HELD, len(corpus.passages("test", length))) - 1  # one is kept as a reference
    if scorer is not None and (kind == "causal" or not is_books(scorer)):
        raise MaskwalkError("--scorer is a causal model of ours that scores a masked one's texts.")
    if not 0 <= samples <= most:
        raise MaskwalkError(
            f"--samples is 0 to no more than {most}, by the test passages there are."
        )
    if device == "cpu" and size == "base":
        err.print("On a CPU the base model takes days; --size small takes hours.", style="yellow")
    model = fit_text(corpus, plan, to, device=check_device(device), resume=resume)
    about = model.about
    rate, flops = about["tokens_per_second"], about["flops_per_second"]
    out.print(
        f"{about['parameters'] / 1e6:.1f} million parameters, {about['seconds']:.0f} s of steps: "
        f"{rate:,} tokens/s, {flops / 1e12:.3g} TFLOP/s"
    )
    what = "perplexity" if model.causal else "perplexity, at most"
    ppl, bpb = about["test_ppl"], about["test_bpb"]
    out.print(
        f"Test, {about['test_passages']:,} passages: {what} {_with_error(ppl, 2)}, "
        f"{_with_error(bpb, 4)} bits per byte"
    )
    if samples:
        _trial(to, model.causal, scorer, samples, length, device)
    say_written(to / "model.safetensors")
    out.print(f"Next: maskwalk generate --denoiser {to}", soft_wrap=True)


def _with_error(number: dict[str, Any], digits: int) -> str:
    from maskwalk.stats import half_width

    half = half_width(number["se"])
    error = "–" if half is None else f"{half:.{digits}f}"
    return f"{number['value']:.{digits}f} ± {error}"


def _trial(
    model: Path, causal: bool, scorer: Path | None, samples: int, length: int, device: str
) -> None:
    """A first look: the model writes with a few policies, and is scored on it."""
    from maskwalk.bench.records import load_records
    from maskwalk.bench.run import Run, engine
    from maskwalk.bench.text_experiment import AUTOREGRESSIVE, TextExperiment
    from maskwalk.report.terminal import terminal_table

    experiment = TextExperiment(
        name="trial",
        title=model.name,
        masked=None if causal else str(model),
        causal=str(model) if causal else None if scorer is None else str(scorer),
        presets=("exact",),
        samplers=(AUTOREGRESSIVE,) if causal else TRIED,
        length=length,
        count=samples,
        replayed=samples,
        references=1,  # nothing is judged here
    )
    to = model / "trial"
    run_jobs(Run(experiment.jobs(to), to / "records.jsonl", engine(1, device)), "writing")
    keys = [experiment.key(setting) for setting in experiment.settings]
    known = {record["key"]: record for record in load_records(to)}
    records = [known[key] for key in keys]
    out.print(terminal_table(records))
    for record in records:
        out.print(f"\n{record['sampler']}:", style="dim")
        out.print(record["texts"][0], markup=False)
