"""`maskwalk text replay`: the likelihood of held-out text under policies of a model."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwalk.cli import common
from maskwalk.cli.common import check_device, out, progress
from maskwalk.cli.text.shared import TRIED
from maskwalk.errors import MaskwalkError

if TYPE_CHECKING:
    from torch import Tensor

    from maskwalk.analysis.paths import Paths


def replay(
    model: Annotated[
        str, typer.Argument(help="A model of ours: zoo:NAME, or what `text train` wrote.")
    ] = "zoo:books_mdm",
    sampler: Annotated[
        list[str] | None, typer.Option(help="A policy that chooses before it draws; repeatable.")
    ] = None,
    paths: Annotated[
        int, typer.Option(help="Paths of a stochastic policy, for every passage.")
    ] = 8,
    count: Annotated[int, typer.Option(help="Held-out passages.")] = 32,
    skip: Annotated[int, typer.Option(help="Passages to leave out before them.")] = 0,
    length: Annotated[int | None, typer.Option(help="Tokens of each \\[all].")] = None,
    draw: common.DrawSpec = None,
    seed: Annotated[int, typer.Option(help="Seed of a policy's randomness.")] = 0,
    device: common.Device = "cpu",
    as_json: common.AsJson = False,
) -> None:
    """The likelihood of held-out text under policies, over more and more of their paths.

    Text is forced through a policy; that gives its likelihood if the order is fixed, and an upper
    bound on its bits if the policy is stochastic, which falls with the paths it is averaged over.
    A truncated draw (--draw) may give a text probability zero: its bits are then infinite.
    Every policy is compared with the first one, passage by passage, over as many paths of both;
    * marks a difference whose 95 % interval leaves zero out.

    Example: maskwalk text replay --sampler 'bisection(order=4)' --sampler 'random(block=10)'
    """
    import json
    from functools import partial

    from maskwalk.analysis.paths import along_paths
    from maskwalk.analysis.replay import check_replayable
    from maskwalk.bench.texts import batch_on
    from maskwalk.decoding.draw import DRAWS, read_draw
    from maskwalk.denoisers.language.books import load_books
    from maskwalk.samplers import SAMPLERS
    from maskwalk.worlds.text.passages import token_bytes

    rules = {SAMPLERS.canonical(spec): SAMPLERS.build(spec) for spec in sampler or TRIED}
    shape = DRAWS.build(read_draw("exact", draw)[0])
    for rule in rules.values():
        check_replayable(rule, shape)
    book_model = load_books(model, device=check_device(device))
    assert book_model.held_out is not None  # load_books reads them
    most, whole_length = book_model.held_out.shape
    if count < 1 or skip < 0 or skip + count > most:
        raise MaskwalkError(
            f"{model} has {most} held-out passages: --count is 1 to that, less what --skip says."
        )
    length = whole_length if length is None else length
    if not 1 <= length <= whole_length:
        raise MaskwalkError(f"--length is 1 to {whole_length}, the length of its passages.")
    passages = book_model.held_out[skip : skip + count, :length]
    sizes = token_bytes(book_model.tokenizer)[passages].sum(1)
    table = common.plain_table("policy", "calls", "paths", "bits a byte", "minus the first")
    rows: list[dict[str, Any]] = []
    first: Paths | None = None
    with progress() as bars:
        for spec, rule in rules.items():
            bar = bars.add_task(spec, total=count * paths)
            done = along_paths(
                rule,
                book_model,
                passages,
                paths,
                seed=seed,
                batch=batch_on(device),
                draw=shape,
                told=partial(bars.advance, bar),
            )
            bars.update(bar, total=done.nats.numel())
            new = [{"sampler": spec, **row} for row in _rows(done, first, sizes)]
            first = first or done
            rows += new
            for row in new:
                table.add_row(*_shown(row))
    if as_json:
        print(json.dumps(rows))
        return
    out.print(table)
    out.print(f"{count} passages of {passages.shape[1]} tokens; ± half of a 95 % interval.")


def _rows(done: "Paths", first: "Paths | None", sizes: "Tensor") -> list[dict[str, Any]]:
    """A policy's bits a byte over more and more paths, beside those of the first policy."""
    from maskwalk.analysis.paths import minus
    from maskwalk.worlds.text.metrics import bits_per_byte

    rows = []
    for k in done.counts():
        row: dict[str, Any] = {"calls": float(done.calls.mean()), "paths": k, "bound": done.random}
        row |= bits_per_byte(done.over(k), sizes).as_dict()
        if first is not None:
            row["minus_first"] = bits_per_byte(minus(done, first, k), sizes).as_dict()
        rows.append(row)
    return rows


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    """A row for a person; the policy and its calls only once."""
    from maskwalk.stats import half_width

    calls = f"{row['calls']:.1f}".removesuffix(".0")
    begin = (row["sampler"], calls) if row["paths"] == 1 else ("", "")
    at_most = "≤ " if row["bound"] else ""
    bits = f"{at_most}{row['value']:.4f} ± {_half(row['se'])}"
    less = row.get("minus_first")
    if less is None:
        return (*begin, str(row["paths"]), bits, "")
    half = half_width(less["se"])
    clear = half is not None and abs(less["value"]) > half
    difference = f"{less['value']:+.4f} ± {_half(less['se'])}{'*' * clear}"
    return (*begin, str(row["paths"]), bits, difference)


def _half(se: float | None) -> str:
    from maskwalk.stats import half_width

    half = half_width(se)
    return "–" if half is None else f"{half:.4f}"
