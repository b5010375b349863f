"""`maskwalk new`: files to start from, with a test that passes."""

import importlib.util
import keyword
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from maskwalk.cli import common
from maskwalk.cli.common import add_command, out, say_written
from maskwalk.errors import MaskwalkError, unknown

# kind: what its file holds, and an example of a name
KINDS = {
    "sampler": ("a policy that works", "my_policy"),
    "graph": ("a graph family", "my_graph"),
    "task": ("what is given of a sequence", "my_task"),
    "denoiser": ("what answers about masked positions", "my_denoiser"),
    "metric": ("a number of decoded sequences", "my_metric"),
    "world": ("a law of sequences with its exact oracle", "my_world"),
}


class Kinds(typer.core.TyperGroup):
    """Names the kinds where another is asked for."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a kind, or a sentence."""
        if args and args[0] not in KINDS and not args[0].startswith("-"):
            raise unknown("kind of thing", args[0], KINDS)
        return super().resolve_command(ctx, args)


new = typer.Typer(
    name="new",
    cls=Kinds,
    help="Write the files of something new.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@new.callback()
def root() -> None:
    """Write the files of something new, to be changed by you; docs/extend.md."""


def command(kind: str) -> Callable[[str, Path], None]:
    """The command that writes one kind of thing."""
    what, example = KINDS[kind]

    def write(
        name: Annotated[str, typer.Argument(help=f"Lower case, such as {example}.")],
        to: Annotated[
            Path,
            typer.Option("--out", parser=common.path, help="Directory to write into."),
        ] = Path(),
    ) -> None:
        write_files(kind, name, to)

    write.__doc__ = (
        f"Write NAME.py, {what}, and test_NAME.py, which passes.\n\n"
        f"Example: maskwalk new {kind} {example}"
    )
    return write


for kind in KINDS:
    add_command(new, command(kind), kind)


def write_files(kind: str, name: str, to: Path) -> None:
    """NAME.py and test_NAME.py of a kind; nothing is overwritten."""
    from maskwalk.resources import write_file

    skeleton = import_module(f"maskwalk.cli.skeletons.{kind}")
    files = {to / f"{name}.py": skeleton.FILE, to / f"test_{name}.py": skeleton.TEST}
    check_name(kind, name)
    for path in files:
        if path.exists():
            raise MaskwalkError(f"{path} is there already; choose another name or --out.")
    hides = importlib.util.find_spec(name) is not None
    if hides:
        raise MaskwalkError(f"{name}.py would hide the Python module {name}; choose another name.")
    to.mkdir(parents=True, exist_ok=True)
    words = {
        "NAME": name,
        "CLASS": class_name(name),
        "TITLE": name.replace("_", " ").capitalize(),
        "WORDS": name.replace("_", " "),
        "PATH": str(to / f"{name}.py"),
    }
    for path, text in files.items():
        write_file(path, filled(text, words).encode())
        say_written(path)
    first = "" if importlib.util.find_spec("pytest") else "pip install pytest, then "
    out.print(f"Test: {first}pytest {to / f'test_{name}.py'}", soft_wrap=True)
    out.print(f"Next: {filled(skeleton.NEXT, words)}", soft_wrap=True)


def filled(text: str, words: dict[str, str]) -> str:
    """The text with <NAME> and its like replaced."""
    for word, value in words.items():
        text = text.replace(f"<{word}>", value)
    return text


def check_name(kind: str, name: str) -> None:
    """Refuses what cannot be the name of a module and of a member of the kind's table."""
    from maskwalk.cli.catalogue import all_tables

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise MaskwalkError(
            f"{name!r} cannot name a {kind}: lower-case letters, digits and underscores, a letter "
            f"first and no word of Python, such as {KINDS[kind][1]}."
        )
    if name in all_tables()[f"{kind}s"]:
        raise MaskwalkError(f"There is a {kind} {name} already; `maskwalk list {kind}s`.")


def class_name(name: str) -> str:
    """`my_policy` as MyPolicy."""
    return "".join(part.capitalize() for part in name.split("_"))
