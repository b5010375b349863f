"""`maskwalk convert`: a pickled model of text to safetensors; what the pickle says is not run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from maskwalk.cli.common import err, out


def convert(
    source: Annotated[
        Path, typer.Argument(help="A .ckpt of MDLM, or a folder with pytorch_model.bin.")
    ],
    target: Annotated[Path, typer.Argument(help="A new folder, for hf:FOLDER.")],
    tokenizer: Annotated[
        Path | None, typer.Option(help="Its tokenizer's folder or vocabulary file, to copy.")
    ] = None,
    ema: Annotated[
        bool, typer.Option(help="Of a .ckpt: the moving average of the weights, or these.")
    ] = True,
    shells: Annotated[
        bool,
        typer.Option("--shells", help="Read objects of other classes as empty; run none of them."),
    ] = False,
) -> None:
    """Write the weights of a pickled model as safetensors, which hf: reads.

    Example: maskwalk convert last.ckpt runs/mdlm --shells --tokenizer path/to/gpt2

    Example: maskwalk convert path/to/bert runs/bert
    """
    from maskwalk.denoisers.language.convert import convert as write

    done = write(source, target, tokenizer=tokenizer, ema=ema, shells=shells)
    out.print(Text(f"{done.tensors} tensors in {done.directory / 'model.safetensors'}"))
    out.print(Text(f"maskwalk generate --denoiser hf:{done.directory}", style="dim"))
    for note in done.notes:
        err.print(Text(f"Note: {note}.", style="dim"))
