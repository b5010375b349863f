"""`maskwalk text score` and `text sums`: questions with one right answer, against calls."""

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from maskwalk.cli import common, engines
from maskwalk.cli.common import bring_in, out, run_jobs, say_written
from maskwalk.cli.text.shared import ModelOption, Rows, Tokenizer, options_of
from maskwalk.errors import seed_number, whole

TRIED = ("confidence(block=1)", "confidence(block=2)", "confidence(block=4)", "bisection")


def score(
    questions: Annotated[
        Path, typer.Argument(help='JSONL: {"prompt": "…", "answer": "…"} a line, or a "template".')
    ],
    denoiser: Annotated[
        str,
        typer.Option(
            help="A model of text (zoo:books_mdm, hf:…, FILE.py:function), or of sums "
            "(zoo:addition; oracle with --world addition)."
        ),
    ],
    sampler: Annotated[list[str] | None, typer.Option(help="A sampler; repeatable.")] = None,
    world: common.World = None,
    new: Annotated[
        int | None, typer.Option(help="Tokens to write after a prompt \\[32; of sums what fits].")
    ] = None,
    count: Annotated[int | None, typer.Option(help="Only the first so many questions.")] = None,
    compare: Annotated[str, typer.Option(help="text, or number (046 is 46).")] = "text",
    pattern: Annotated[
        str | None, typer.Option(help="A regular expression; the answer is its last match.")
    ] = None,
    until: Annotated[
        list[str] | None, typer.Option(help="The answer ends here; repeatable \\[a new line].")
    ] = None,
    chat: Annotated[bool, typer.Option(help="Wrap prompts in the chat template.")] = False,
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    seed: common.Seed = 0,
    tokenizer: Tokenizer = None,
    rows: Rows = None,
    model_option: ModelOption = None,
    device: common.Device = "cpu",
    workers: engines.Workers = None,
    engine: engines.Name = engines.PROCESSES,
    address: engines.Address = None,
    gpus: engines.Gpus = None,
    timeout: common.Timeout = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=common.path,
            help="Keep the records in DIR; `maskwalk report DIR` draws them.",
        ),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Ask a model questions that have one right answer: accuracy against calls, sampler by sampler.

    Example: maskwalk text sums sums.jsonl, then maskwalk text score sums.jsonl
    --denoiser zoo:addition --compare number --out runs/sums, then maskwalk report runs/sums

    Example: maskwalk text score gsm8k.jsonl --denoiser hf:LLaDA-8B-Instruct --chat --new 256
    --compare number --pattern '-?[0-9]+' --preset llada
    """
    from maskwalk.bench.records import latest, load_records
    from maskwalk.bench.run import Run
    from maskwalk.bench.scoring import READING, Exam, exam_jobs
    from maskwalk.decoding.draw import preset_sampler, read_draw
    from maskwalk.decoding.presets import around
    from maskwalk.decoding.processes import alone
    from maskwalk.samplers import SAMPLERS
    from maskwalk.stats import half_width, settled_se
    from maskwalk.worlds.metrics import METRICS
    from maskwalk.worlds.text.questions import read_questions

    alone("text score")
    plugins = bring_in(include)
    every = read_questions(questions)
    drawn, broken = read_draw(preset, draw, ties)
    exam = Exam(
        denoiser,
        str(questions),
        len(every) if count is None else min(len(every), whole("count", count, 1)),
        options_of(tokenizer, rows, model_option),
        world,
        None if new is None else whole("new", new, 1),
        chat,
        drawn,
        broken,
        **around(preset),
        seed=seed_number("seed", seed),
        compare=compare,
        pattern=pattern,
        until=("\n",) if until is None else tuple(until),
    )
    assert exam.marking  # its words are checked before anything is loaded
    place = engines.engine_named(engine, workers, device, plugins, timeout, address, gpus)
    causal = exam.load(device if engine == engines.PROCESSES else "cpu").causal
    usual = (preset_sampler(preset, ""),) if preset_sampler(preset, "") else TRIED
    specs = sampler or (("left_to_right",) if causal else usual)
    jobs = exam_jobs(exam, list(dict.fromkeys(map(SAMPLERS.canonical, specs))))
    with tempfile.TemporaryDirectory() as nowhere:
        folder = Path(nowhere) if to is None else to
        run_jobs(Run(jobs, folder / "records.jsonl", place))
        known = {record["key"]: record for record in latest(load_records(folder))}
    records = [known[job.key] for job in jobs]
    if as_json:
        print(json.dumps(records))
        return
    cost, key = METRICS.cost, METRICS.reading(READING)[0]
    table = common.plain_table("sampler", cost.title, METRICS.describe(key).title)
    for record in records:
        numbers: dict[str, Any] = dict(record["metrics"])
        value, spent = numbers[key], numbers[cost.key]
        half = half_width(settled_se(value["value"], value["se"], value["n"]))
        calls = f"{spent['value']:.4g}"
        table.add_row(record["sampler"], calls, f"{value['value']:.3f} ± {half:.3f}")
    out.print(table)
    out.print(f"{exam.count} questions; ± half of a 95 % interval.")
    if to is not None:
        say_written(to / "records.jsonl")
        out.print(f"Next: maskwalk report {to}", soft_wrap=True)


def sums(
    to: Annotated[Path, typer.Argument(help="The JSONL file to write.")],
    digits: Annotated[int, typer.Option(help="Digits of each operand.")] = 8,
    count: Annotated[int, typer.Option(help="Questions.")] = 256,
    seed: common.Seed = 0,
) -> None:
    """Write questions about sums: held-out ones of the addition world, as prompts and answers.

    Example: maskwalk text sums sums.jsonl --digits 8 --count 256
    """
    from maskwalk.denoisers.digits import sums as make
    from maskwalk.resources import write_file

    rows = make(whole("digits", digits, 1, 1000), whole("count", count, 1, 10**6), seed)
    write_file(to, "".join(f"{json.dumps(row)}\n" for row in rows).encode())
    say_written(to)
