"""`maskwalk audit`: anybody's decoder under our contract."""

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, out, say_written, stoppable, watched
from maskwalk.errors import MaskwalkError, check_numbers, shown

if TYPE_CHECKING:
    from maskwalk.testing.result import Audit

COLOURS = {"passes": "green", "noted": "yellow", "finding": "bold red", "not applicable": "dim"}


def audit(
    decoder: Annotated[
        str,
        typer.Argument(help="FILE.py:function, or FILE.py:Class.method (the file is run)."),
    ],
    like: Annotated[
        str, typer.Option(help="Whose code it is written like: llada, dream, mdlm or function.")
    ] = "llada",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="name=value, passed to the decoder; repeatable."),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            help="What it says it ranks positions by: confidence, entropy, margin or random. "
            "Read from remasking= and alg= where it has them."
        ),
    ] = None,
    remasks: Annotated[
        bool, typer.Option("--remasks", help="It says it takes revealed tokens back.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="One check alone; repeatable.")
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="A small world whose law it has to meet; maskwalk list.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that one call of it may take.")] = 60.0,
    page: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=common.path,
            help="Write one self-contained HTML page here.",
        ),
    ] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Check a decoder that others wrote, on a model that is never wrong (10 s).

    The file is executed and its decoder called with OracleModel: a torch module
    with the face of a Hugging Face model and the exact conditionals of a small
    world behind it. What it takes is passed by name: steps, gen_length,
    block_length, temperature, mask_id, attention_mask, …

    llada: generate(model, prompt, steps=…, gen_length=…); logits at their place.

    dream: Class.diffusion_generate(inputs, max_new_tokens=…), mixed into the
    model, or a function of (model, inputs); logits one place to the left.

    mdlm: sample(model, batch_size, length, num_steps); model(x, sigma) gives
    log-probabilities.

    function: f(denoise, tokens, mask_id, steps, temperature); denoise(tokens)
    gives (batch, length, vocab) log-probabilities.

    Exit code 0: no findings. 1: findings. 2: bad input.

    Example: maskwalk audit generate.py:generate --like llada

    Example: maskwalk audit generate.py:generate --option remasking=random --json

    Example: maskwalk audit generation_utils.py:Mixin --like dream --option alg=entropy
    """
    from maskwalk.testing.audit import audit as audited
    from maskwalk.testing.laws import WORLD

    bring_in(include)
    with stoppable("an audit keeps nothing"):
        found = audited(
            decoder,
            like,
            world=WORLD if world is None else world,
            options=_options(option or []),
            ranks=ranks,
            remasks=remasks,
            only=only or None,
            timeout=timeout,
            watch=lambda names: watched(names, "checks", len(names)),
        )
    if page is not None:
        from maskwalk.report.audit import write_page

        write_page(found, page)
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        out.print(_shown(found))
        if page is not None:
            say_written(page)
    if not found.passed:
        raise typer.Exit(1)


def _options(words: list[str]) -> dict[str, Any]:
    """name=value pairs; a value that is no Python literal is text."""
    result: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise MaskwalkError(f"--option is name=value, such as alg=entropy, not {shown(word)}.")
        try:
            result[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            result[name] = value
        check_numbers(f"--option {name}", result[name])
    return result


def _shown(found: "Audit") -> Group:
    """The checks and the curve, in 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("check", no_wrap=True)
    table.add_column("", overflow="fold")
    for one in found.results:
        words = Text.assemble((one.status, COLOURS[one.status]), f": {one.says}")
        table.add_row(one.check, words)
    parts: list[Any] = [table]
    if found.curve:
        parts += [Text(""), _curve(found)]
    parts += [Text(""), Text(f"{found.summary}.", style="bold")]
    return Group(*parts)


def _curve(found: "Audit") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("steps", "passes", "coherence", "KL, nats", "TV", "sequences"):
        table.add_column(name, justify="right")
    for point in found.curve:
        half = 1.96 * point.coherence_se
        table.add_row(
            str(point.steps), f"{point.passes:g}", f"{point.coherence:.3f} ± {half:.3f}",
            f"{point.kl:.3f}", f"{point.tv:.3f}", f"{point.sequences:,}",
        )  # fmt: skip
    kl, tv = found.floor["kl"], found.floor["tv"]
    table.add_row("exact", "", "1.000", f"{kl:.3f}", f"{tv:.3f}", "", style="dim")
    return table
