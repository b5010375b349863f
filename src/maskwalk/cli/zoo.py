"""`maskwalk zoo`: the shipped models."""

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from maskwalk.cli import complete
from maskwalk.cli.common import AsJson, out
from maskwalk.errors import unknown

Name = Annotated[
    str | None,
    typer.Argument(help="A model: prints its card.", autocompletion=complete.models),
]
Cards = Annotated[bool, typer.Option("--cards", help="Every model's card, as Markdown.")]


def zoo(name: Name = None, cards: Cards = False, as_json: AsJson = False) -> None:
    """The shipped models: what each was trained on, and how near it came to the floor.

    Use one anywhere a denoiser is named, and it brings its world:

    maskwalk sample --denoiser zoo:st_er_deg7, or --denoiser zoo:sudoku

    The models of books are for text: maskwalk generate --denoiser zoo:books_mdm

    With a name: the card of that model. maskwalk zoo st_er_deg7
    """
    from maskwalk.resources import zoo_manifest

    models = zoo_manifest()
    if name is not None:
        name = name.removeprefix("zoo:")
        if name not in models:
            raise unknown("model of the zoo", name, models)
        models = {name: models[name]}
    if as_json:
        print(json.dumps(models))
        return
    if name is not None or cards:
        from maskwalk.denoisers.cards import card, page

        shown = page(models) if cards else card(name or "", models[name or ""])
        if out.is_terminal:
            from maskwalk.cli.markdown import Document

            out.print(Document(shown))
        else:
            print(shown, end="")
        return
    if not models:
        out.print("The zoo is empty here; maskwalk train makes a model of your own.")
        return
    table = Table(show_edge=False, pad_edge=False)
    for name in ("model", "world"):
        table.add_column(name, overflow="fold")
    for name in ("bound", "floor"):
        table.add_column(name, justify="right")
    for name, about in models.items():
        if "tokenizer" in about:
            bpb = about["test_bpb"]["value"]
            what = "causal" if about["config"]["causal"] else "masked diffusion"
            place = f"books, {what}\n{bpb:.3f} bits per byte of held-out books"
        elif "graph" in about:
            place = f"{about['graph']}\n{about['walk']}"
        else:
            place = about["world"]
        table.add_row(f"zoo:{name}", place, *(_shown(about, key) for key in ("bound", "floor")))
    out.print(table)
    out.print(
        "Bound: held-out nats per token (evidence bound; of a causal model exact). Floor: a "
        "perfect denoiser's. maskwalk zoo NAME prints a model's card."
    )


def _shown(about: dict[str, Any], key: str) -> str:
    return f"{about[key]:.3f}" if key in about else ""
