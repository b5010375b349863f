"""`maskwalk text consistency`: is a model one law, whatever the order?"""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, out, progress
from maskwalk.cli.text.shared import (
    MODELS,
    ModelOption,
    Rows,
    Texts,
    Tokenizer,
    model_and_passages,
    options_of,
)
from maskwalk.errors import MaskwalkError, real, seed_number, whole

if TYPE_CHECKING:
    from maskwalk.analysis.consistency import Orders
    from maskwalk.denoisers.language import LanguageModel
    from maskwalk.worlds.text.held_out import Passages


def consistency(
    model: Annotated[str, typer.Argument(help=MODELS)] = "zoo:books_mdm",
    orders: Annotated[int, typer.Option(help="Random orders of every passage and block.")] = 8,
    block: Annotated[
        list[int] | None, typer.Option(help="Tokens of a block; repeatable \\[2, 4, 8].")
    ] = None,
    whole_passages: Annotated[
        bool,
        typer.Option("--whole/--no-whole", help="Whole passages, too: a call for every token."),
    ] = True,
    revealed: Annotated[float, typer.Option(help="Share of the other tokens a block sees.")] = 0.5,
    texts: Texts = None,
    count: Annotated[int, typer.Option(help="Held-out passages.")] = 32,
    skip: Annotated[int, typer.Option(help="Passages to leave out before them.")] = 0,
    length: Annotated[int, typer.Option(help="Tokens of each.")] = 64,
    seed: Annotated[int, typer.Option(help="Seed of orders and blocks.")] = 0,
    tokenizer: Tokenizer = None,
    rows: Rows = None,
    model_option: ModelOption = None,
    device: common.Device = "cpu",
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Whether a model's law is the same in every order: the spread of log p over orders.

    Held-out passages are taken apart one token at a time in random orders, and blocks of them with
    a part of the rest revealed. A consistent law has no spread. Beside it: what a block loses if
    its tokens are drawn together.

    Example: maskwalk text consistency zoo:books_mdm --orders 8 --length 64

    Example: maskwalk text consistency hf:bert-base-uncased --texts mine.txt --length 32
    """
    from maskwalk.analysis.consistency import LAYOUTS, Orders, block_orders
    from maskwalk.analysis.paths import along_paths, batch_for, minus
    from maskwalk.bench.subject import short
    from maskwalk.bench.texts import batch_on
    from maskwalk.decoding.processes import alone
    from maskwalk.samplers import SAMPLERS

    alone("text consistency")
    bring_in(include)
    whole("orders", orders, 2, 10_000), whole("count", count, 1), whole("skip", skip, 0)
    real("revealed", revealed, 0.0, 1.0), seed_number("seed", seed)
    options = options_of(tokenizer, rows, model_option)
    subject, every = model_and_passages(model, options, texts, length, device)
    if subject.causal:
        raise MaskwalkError(f"{model} is autoregressive: it knows one order only.")
    passages = every.part(skip, count)
    scored = int((~passages.given[0]).sum())
    sizes = [whole("block", size, 2, scored) for size in block or (2, 4, 8) if size <= scored]
    if block and len(sizes) < len(block):
        raise MaskwalkError(f"A block has 2 to {scored} tokens here.")
    if not (sizes or whole_passages):
        raise MaskwalkError("There is nothing to measure: name a --block, or leave out --no-whole.")
    batch = batch_for(subject, passages.tokens.shape[1], batch_on(device))
    with progress() as bars:
        bar = bars.add_task("orders", total=_work(count, orders, scored, sizes, whole_passages))
        how: dict[str, Any] = {"seed": seed, "batch": batch, "known": passages.given}
        found: dict[str, Any] = {}
        if whole_passages:
            how["told"] = lambda more: bars.advance(bar, more * scored)
            one = SAMPLERS.build("random(block=1)")
            paths = along_paths(one, subject, passages.tokens, orders, **how)
            plain = along_paths(SAMPLERS.build("left_to_right"), subject, passages.tokens, 1, **how)
            found["whole"] = Orders.of_paths(paths).as_dict() | {"tokens": scored}
            found["left_to_right"] = {"minus_random": _estimate(minus(plain, paths, 1))}
        how["told"] = lambda more: bars.advance(bar, more)
        found["blocks"] = []
        for layout in LAYOUTS:
            for size in sizes:
                found["blocks"].append(
                    _block(block_orders, subject, passages, size, orders, layout, revealed, how)
                    | {"layout": layout, "block": size, "revealed": revealed}
                )
    about = {
        "model": short(model),
        "passages": count,
        "length": passages.tokens.shape[1],
        "seed": seed,
    }
    if as_json:
        print(json.dumps(about | found))
        return
    _show(found, count, passages.tokens.shape[1])


def _work(count: int, orders: int, scored: int, sizes: list[int], whole_passages: bool) -> int:
    """How many sequences the model reads in all."""
    blocks = 2 * sum(count * (1 + orders * size) for size in sizes)
    return blocks + (count * (orders + 1) * scored if whole_passages else 0)


def _estimate(values: Any) -> dict[str, Any]:
    from maskwalk.stats import plain_mean

    return plain_mean(values).as_dict()


def _block(
    block_orders: Any,
    subject: "LanguageModel",
    passages: "Passages",
    size: int,
    orders: int,
    layout: str,
    revealed: float,
    how: dict[str, Any],
) -> dict[str, Any]:
    done: Orders = block_orders(
        subject.denoiser,
        passages.tokens,
        passages.given,
        size,
        orders,
        layout=layout,
        revealed=revealed,
        seed=how["seed"],
        batch=how["batch"],
        device=subject.device,
        told=how["told"],
    )
    return done.as_dict()


def _show(found: dict[str, Any], count: int, length: int) -> None:
    table = common.plain_table("what", "nats", "sd over orders", "drawn together loses")
    passage = found.get("whole")
    if passage is not None:
        name = f"whole passage, {passage['tokens']} tokens"
        table.add_row(name, _with(passage["nats"]), _with(passage["sd"]), "")
    for row in found["blocks"]:
        name = f"{row['block']} {row['layout']}"
        table.add_row(name, _with(row["nats"]), _with(row["sd"]), _with(row["dependence"]))
    out.print(table)
    if passage is not None:
        plain = found["left_to_right"]["minus_random"]
        out.print(f"Left to right less a random order: {_with(plain, '+')} nats per passage.")
    some = (passage or found["blocks"][0])["orders"]
    out.print(
        f"{count} passages of {length} tokens, {some} orders each; ± half of a 95 % interval. A "
        "consistent law has no spread over orders."
    )


def _with(number: dict[str, Any], sign: str = "") -> str:
    from maskwalk.stats import half_width

    half = half_width(number["se"])
    error = "–" if half is None else f"{half:.3f}"
    return f"{number['value']:{sign}.3f} ± {error}"
