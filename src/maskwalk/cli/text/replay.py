"""`maskwalk text replay`: the likelihood of held-out text under policies of a model."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, out, progress
from maskwalk.cli.text.shared import (
    MODELS,
    TRIED,
    ModelOption,
    Rows,
    Texts,
    Tokenizer,
    model_and_passages,
    options_of,
)
from maskwalk.errors import whole

if TYPE_CHECKING:
    from torch import Tensor

    from maskwalk.analysis.paths import Paths

MOST_PATHS = 10_000  # a path is a decoding of every passage


def replay(
    model: Annotated[str, typer.Argument(help=MODELS)] = "zoo:books_mdm",
    sampler: Annotated[
        list[str] | None, typer.Option(help="A policy that chooses before it draws; repeatable.")
    ] = None,
    paths: Annotated[
        int, typer.Option(help="Paths of a stochastic policy, for every passage.")
    ] = 8,
    texts: Texts = None,
    count: Annotated[int, typer.Option(help="Held-out passages.")] = 32,
    skip: Annotated[int, typer.Option(help="Passages to leave out before them.")] = 0,
    length: Annotated[
        int | None, typer.Option(help="Tokens of each \\[all; of --texts 256 at most].")
    ] = None,
    draw: common.DrawSpec = None,
    seed: Annotated[int, typer.Option(help="Seed of a policy's randomness.")] = 0,
    tokenizer: Tokenizer = None,
    rows: Rows = None,
    model_option: ModelOption = None,
    device: common.Device = "cpu",
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """The likelihood of held-out text under policies, over more and more of their paths.

    Text is forced through a policy; that gives its likelihood if the order is fixed, and an upper
    bound on its bits if the policy is stochastic, which falls with the paths it is averaged over.
    A truncated draw (--draw) may give a text probability zero: its bits are then infinite.
    Every policy is compared with the first one, passage by passage, over as many paths of both;
    * marks a difference whose 95 % interval leaves zero out. What a model wants around a text is
    given; a model without a tokenizer is measured in bits per token.

    Example: maskwalk text replay --sampler 'bisection(order=4)' --sampler 'random(block=10)'

    Example: maskwalk text replay hf:bert-base-uncased --texts mine.txt --length 64

    Example: maskwalk text replay hf:mdlm-owt --tokenizer gpt2 --texts owt.jsonl --length 1024

    Example: maskwalk text replay my_model.py:load --texts tokens.npy
    """
    import json
    from functools import partial

    from maskwalk.analysis.paths import along_paths, batch_for
    from maskwalk.analysis.replay import check_replayable
    from maskwalk.bench.texts import batch_on
    from maskwalk.decoding.draw import DRAWS, read_draw
    from maskwalk.decoding.processes import alone
    from maskwalk.samplers import SAMPLERS

    alone("text replay")
    bring_in(include)
    shape = DRAWS.build(read_draw("exact", draw)[0])
    given = [(SAMPLERS.canonical(spec), SAMPLERS.build(spec)) for spec in sampler or ()]
    for _, rule in given:
        check_replayable(rule, shape)
    whole("count", count, 1), whole("skip", skip, 0), whole("paths", paths, 1, MOST_PATHS)
    options = options_of(tokenizer, rows, model_option)
    text_model, every = model_and_passages(model, options, texts, length, device)
    passages = every.part(skip, count)
    tried = ("left_to_right",) if text_model.causal else TRIED
    rules = dict(given) or {SAMPLERS.canonical(spec): SAMPLERS.build(spec) for spec in tried}
    row_list: list[dict[str, Any]] = []
    first: Paths | None = None
    with progress() as bars:
        for spec, rule in rules.items():
            bar = bars.add_task(spec, total=count * paths)
            done = along_paths(
                rule,
                text_model,
                passages.tokens,
                paths,
                seed=seed,
                batch=batch_for(text_model, passages.tokens.shape[1], batch_on(device)),
                draw=shape,
                known=passages.given,
                told=partial(bars.advance, bar),
            )
            bars.update(bar, total=done.nats.numel())
            new = [{"sampler": spec, **row} for row in _rows(done, first, passages.sizes)]
            first = first or done
            row_list += new
    if as_json:
        print(json.dumps(row_list))
        return
    lossy = any(row["lost"] for row in row_list)
    heads = ("policy", "calls", "paths", f"bits per {passages.unit}", "minus the first")
    table = common.plain_table(*heads[:3], *(["lost"] if lossy else []), *heads[3:])
    for row in row_list:
        table.add_row(*_shown(row, lossy))
    out.print(table)
    out.print(f"{count} passages of {passages.tokens.shape[1]} tokens; ± half of a 95 % interval.")
    if lossy:
        out.print(
            "lost: passages that the truncated draw cannot produce along so many paths; bits are "
            "of the rest."
        )


def _rows(done: "Paths", first: "Paths | None", sizes: "Tensor") -> list[dict[str, Any]]:
    """bits per byte (or token) over more and more paths, beside those of the first policy.

    `lost`: the share of passages that so many paths cannot produce; the numbers are of those that
    every group of as many can.
    """
    from maskwalk.analysis.paths import minus
    from maskwalk.worlds.text.metrics import bits_per_byte

    rows = []
    for k in done.counts():
        row: dict[str, Any] = {"calls": float(done.calls.mean()), "paths": k, "bound": done.random}
        nats = done.over(k)
        kept = nats.isfinite()
        row["lost"] = done.lost(k)
        if bool(kept.any()):
            row |= bits_per_byte(nats[kept], sizes[kept]).as_dict()
        if first is not None:
            less = minus(done, first, k)
            both = less.isfinite()
            if bool(both.any()):
                row["minus_first"] = bits_per_byte(less[both], sizes[both]).as_dict()
        rows.append(row)
    return rows


def _shown(row: dict[str, Any], lossy: bool) -> tuple[str, ...]:
    """A row for a person; the policy and its calls only once."""
    from maskwalk.stats import half_width

    calls = f"{row['calls']:.1f}".removesuffix(".0")
    begin = (row["sampler"], calls) if row["paths"] == 1 else ("", "")
    at_most = "≤ " if row["bound"] else ""
    bits = f"{at_most}{row['value']:.4f} ± {_half(row['se'])}" if "value" in row else "–"
    told = (*begin, str(row["paths"]), *([f"{row['lost']:.1%}"] if lossy else []), bits)
    less = row.get("minus_first")
    if less is None:
        return (*told, "")
    half = half_width(less["se"])
    clear = half is not None and abs(less["value"]) > half
    difference = f"{less['value']:+.4f} ± {_half(less['se'])}{'*' * clear}"
    return (*told, difference)


def _half(se: float | None) -> str:
    from maskwalk.stats import half_width

    half = half_width(se)
    return "–" if half is None else f"{half:.4f}"
