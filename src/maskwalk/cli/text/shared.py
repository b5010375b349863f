"""What the commands of text share: a model and its passages, long work with its bars, policies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwalk.cli.common import TEXT, check_device, err, progress

if TYPE_CHECKING:
    from maskwalk.analysis.judge import Judge
    from maskwalk.denoisers.language import LanguageModel
    from maskwalk.worlds.text.held_out import Passages

MODELS = "zoo:books_mdm, a directory of `text train`, hf:PATH, hf:NAME, or FILE.py:function."
Texts = Annotated[
    Path | None,
    typer.Option(
        help="Texts the model has not seen: .txt (an empty line between documents), .jsonl "
        "(one text per line) or .npy (tokens); models of books bring theirs.",
        rich_help_panel=TEXT,
    ),
]
Tokenizer = Annotated[
    str | None, typer.Option(help="Of an hf: model that brings none.", rich_help_panel=TEXT)
]
Rows = Annotated[
    int | None,
    typer.Option(help="Sequences read together \\[1; ours 8, on cuda 256].", rich_help_panel=TEXT),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        help="key=value, of an hf: model: kind, mask, shifted, end_of_text, precision, device_map, "
        "check, trust_remote_code; repeatable.",
        rich_help_panel=TEXT,
    ),
]

TRIED = (
    "random(block=8)",
    "entropy(block=8)",
    "bisection(order=4)",
    "guided_bisection(order=4, score='entropy')",
)


def options_of(tokenizer: str | None, rows: int | None, others: list[str] | None) -> dict[str, Any]:
    """What was said of a model, as `denoisers.language.source` takes it."""
    from maskwalk.denoisers.language.source import read_options
    from maskwalk.errors import whole

    told = read_options(others or [])
    told |= {} if tokenizer is None else {"tokenizer": tokenizer}
    return told | ({} if rows is None else {"rows": whole("rows", rows, 1, 65_536)})


def model_and_passages(
    name: str, options: dict[str, Any], texts: Path | None, length: int | None, device: str
) -> "tuple[LanguageModel, Passages]":
    """The model a user names, and its passages; what is odd about either is said."""
    from maskwalk.denoisers.language.source import text_model
    from maskwalk.worlds.text.held_out import passages_for

    model = text_model(name, device=check_device(device), options=options)
    passages = passages_for(model, texts, length)
    for note in (*model.notes, *passages.notes):
        err.print(f"Note: {note}.", style="dim", soft_wrap=True)
    return model, passages


def judged(run: Path, judge: "Judge", only_read: bool = False) -> int:
    """Reads everything in `run` and judges it, with a bar for each; returns how many texts."""
    from maskwalk.bench.judging import Judging

    work = Judging(run, judge)
    total = work.total
    with progress() as bars:
        texts = bars.add_task(f"{judge.name}, texts", total=total)
        work.told = lambda more: bars.advance(texts, more)
        if only_read:
            for _ in work.read():
                pass
        else:
            settings = bars.add_task("MAUVE, settings", total=len(work.todo))
            for _ in work:
                bars.advance(settings)
    return total
