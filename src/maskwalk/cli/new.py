"""`maskwalk new`: files to start from."""

import importlib.util
import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli.common import out, say_written
from maskwalk.cli.skeleton import SAMPLER, TEST
from maskwalk.errors import MaskwalkError

new = typer.Typer(
    name="new",
    help="Write the files of something new.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@new.callback()
def root() -> None:
    """Write the files of something new, to be changed by you."""


@new.command()
def sampler(
    name: Annotated[str, typer.Argument(help="Lower case, such as my_policy.")],
    to: Annotated[Path, typer.Option("--out", help="Directory to write into.")] = Path(),
) -> None:
    """Write NAME.py, a policy that works, and test_NAME.py, which holds it to the contract.

    Example: maskwalk new sampler my_policy
    """
    files = {to / f"{name}.py": SAMPLER, to / f"test_{name}.py": TEST}
    check_name(name)
    for path in files:
        if path.exists():
            raise MaskwalkError(f"{path} is there already; choose another name or --out.")
    hides = importlib.util.find_spec(name) is not None
    if hides:
        raise MaskwalkError(f"{name}.py would hide the Python module {name}; choose another name.")
    from maskwalk.resources import write_file

    to.mkdir(parents=True, exist_ok=True)
    words = {"NAME": name, "CLASS": class_name(name), "TITLE": name.replace("_", " ").capitalize()}
    for path, text in files.items():
        for word, value in words.items():
            text = text.replace(f"<{word}>", value)
        write_file(path, text.encode())
        say_written(path)
    first = to / f"{name}.py"
    out.print(f"Next: maskwalk evaluate {first}:{class_name(name)}", soft_wrap=True)


def check_name(name: str) -> None:
    """Refuses what cannot be the name of a module and of a sampler."""
    from maskwalk.samplers import SAMPLERS

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise MaskwalkError(
            f"{name!r} cannot name a sampler: lower-case letters, digits and underscores, a letter "
            "first and no word of Python, such as my_policy."
        )
    if name in SAMPLERS:
        raise MaskwalkError(f"There is a sampler {name} already; `maskwalk list samplers`.")


def class_name(name: str) -> str:
    """`my_policy` as MyPolicy."""
    return "".join(part.capitalize() for part in name.split("_"))
