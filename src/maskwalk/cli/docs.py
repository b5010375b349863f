"""`maskwalk docs`: the documents that come with the package, in the terminal."""

import re
from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import complete
from maskwalk.cli.common import out
from maskwalk.errors import unknown

COMMENT = re.compile(r"<!--.*?-->\s?", re.DOTALL)  # ties of numbers, for `maskwalk verify`
FIRST = re.compile(r"^# (.+)$", re.MULTILINE)


def docs(
    page: Annotated[
        str, typer.Argument(help="A page, such as samplers.", autocompletion=complete.pages)
    ] = "",
    path: Annotated[bool, typer.Option("--path", help="Only say where the file is.")] = False,
) -> None:
    """Read a document; without a page, list them all.

    Example: maskwalk docs samplers
    """
    if not page:
        for name in complete.page_names():
            title = FIRST.search(read(name))
            out.print(
                f"{name:<24}{title.group(1) if title else ''}", no_wrap=True, overflow="ellipsis"
            )
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in complete.page_names():
        raise unknown("page", page, complete.page_names())
    if path:
        out.print(str(file(name)), soft_wrap=True)
        return
    from maskwalk.cli.markdown import Document

    out.print(Document(COMMENT.sub("", read(name))))


def file(name: str) -> Path:
    """Where a page is."""
    return complete.page_file(name)


def read(name: str) -> str:
    """The text of a page."""
    return file(name).read_text(encoding="utf-8")
