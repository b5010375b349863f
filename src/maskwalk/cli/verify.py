"""`maskwalk verify`: the numbers of documents against the records they come from."""

import io
import json
import shlex
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwalk.cli.common import AsJson, out
from maskwalk.errors import MaskwalkError

if TYPE_CHECKING:
    from maskwalk.report.verify.document import Verified

# Commands that print and write nothing; those that can print JSON do so for key=….
READ_ONLY = ("compare", "theory", "report --fronts", "text compare", "zoo", "list")


def verify(
    documents: Annotated[list[Path], typer.Argument(help="Markdown files.")],
    untied: Annotated[
        bool,
        typer.Option(
            "--untied", help="Also list numbers with ± or three digits that no comment ties."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute the numbers of documents from what their comments say they come from.

    A comment, invisible on the page, stands after a number and names its source:

        .422 ± .043 <!-- verify: results/atlas sampler=bisection(order=1)
        denoiser=zoo:st_er_deg7 task=unconditional metric=coherence -->

    A source is a folder of records, a JSON or Markdown file, FILE.py:NAME or a
    `maskwalk …` command. Several values (title=Tree,Directed), or parts divided
    by ';', tie as many numbers before the comment. Before a table, lines `row:`
    and `columns:` tie all of it; docs/verify.md has every form.

    Exits with 1 if a number differs, with 2 if a comment names nothing.

    Example: maskwalk verify README.md docs/*.md
    """
    from maskwalk.report.verify import Sources, verify_document

    for path in documents:
        if not path.is_file() and not Path("results").is_dir():
            raise MaskwalkError(
                f"There is no file {str(path)!r}. The documents of maskwalk itself are checked in "
                "a checkout of its repository: an installed package has them (`maskwalk docs`), "
                "but not all that their numbers come from."
            )
    sources = Sources(printed)
    results = []
    for path in documents:
        results.append(verify_document(path, sources))
        if not as_json:
            _tell(results[-1], untied)
    if as_json:
        print(json.dumps([asdict(r) | {"path": str(r.path)} for r in results]))
    if any(result.differing for result in results):
        raise typer.Exit(1)


def _tell(result: "Verified", untied: bool) -> None:
    """One line, and one for every number that differs."""
    from maskwalk.report.verify.document import lines_of

    count, wrong = len(result.ties), len(result.differing)
    right = count - wrong
    what = f"{count} number{'s' * (count != 1)} tied, {right} agree{'s' * (right == 1)}"
    loose = f", {len(result.untied)} not tied" if untied else ""
    out.print(f"{result.path}: {what}{loose}", markup=False, soft_wrap=True)
    for line in lines_of(result):
        out.print(f"  {line}", markup=False, soft_wrap=True)
    for at, number in result.untied if untied else ():
        out.print(f"  {result.path}:{at}: {number} is not tied", markup=False, soft_wrap=True)


def printed(command: str) -> str:
    """What a command of maskwalk prints; only of those that write nothing."""
    from maskwalk.cli.main import app

    words = shlex.split(command)[1:]
    if not any(set(allowed.split()) <= set(words) for allowed in READ_ONLY):
        raise MaskwalkError(
            f"`{command}` may write or run for long; a comment may name {', '.join(READ_ONLY)}."
        )
    text = io.StringIO()
    with redirect_stdout(text):
        code = typer.main.get_command(app).main(words, standalone_mode=False)
    if code:
        raise MaskwalkError(f"`{command}` ended with {code}.")
    return text.getvalue()
