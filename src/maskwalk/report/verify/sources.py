"""Where a number may come from: records, a JSON or Markdown file, a Python file, a command.

A Python file is run: it has a function `verify(name, *words)` that gives a table as Markdown. A
command is one of maskwalk's that only print.
"""

import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from maskwalk.bench.records import Record, latest, load_records
from maskwalk.errors import MaskwalkError, own_file, unknown, user_code
from maskwalk.report.estimates import finite
from maskwalk.report.verify.printed import Truth, numbers
from maskwalk.report.verify.records import fits, record_truth
from maskwalk.report.verify.tables import look_up
from maskwalk.resources import read_file
from maskwalk.stats import NORMAL

Run = Callable[[str], str]
COMMAND = "maskwalk "


class Sources:
    """What comments may name, each read or run once."""

    def __init__(self, run: Run) -> None:
        self.text = cache(lambda *parts: self._text(*parts))
        self._run = run

    def truth(self, source: str, words: tuple[str, ...], asked: dict[str, str], at: Path) -> Truth:
        """The number that a source has for name=value pairs, for a document at a path."""
        scale = float(asked.get("scale", "1"))
        asked = {name: value for name, value in asked.items() if name not in ("scale", "bound")}
        found = self._truth(source, words, asked, at)
        half = None if found.half is None else found.half * scale
        return Truth(found.value * scale, half, found.bound)

    def _truth(self, source: str, words: tuple[str, ...], asked: dict[str, str], at: Path) -> Truth:
        path = place(source, at) if not self.prints(source) else None
        if path is not None and path.is_dir():
            return record_truth(_records(path, _stamp(path)), asked)
        text = self.text(source, words, at)
        if "key" in asked:
            return json_truth(text, asked["key"], source)
        if "row" in asked:
            return look_up(text, asked)
        raise MaskwalkError(
            f"{source} needs key=… (of JSON), row=… and column=… (of a table), or words in quotes."
        )

    def _text(self, source: str, words: tuple[str, ...], at: Path) -> str:
        """What a source prints or holds."""
        if source.startswith(COMMAND):
            return self._run(" ".join(_absolute(word, at) for word in source.split(" ")))
        if ".py:" in source:
            file, _, name = source.partition(":")
            module, given = _module(place(file, at), file), [_absolute(w, at) for w in words]
            with user_code(f"in verify({name!r})"):
                return str(module.verify(name, *given))
        text = read_text(place(source, at))
        return f"[{','.join(text.splitlines())}]" if source.endswith(".jsonl") else text

    @staticmethod
    def prints(source: str) -> bool:
        """Whether it is run, not read."""
        return source.startswith(COMMAND) or ".py:" in source


def _stamp(path: Path) -> tuple[int, ...]:
    """When the records were last written."""
    return tuple(file.stat().st_mtime_ns for file in sorted(path.glob("records.jsonl*")))


@cache
def _records(path: Path, stamp: tuple[int, ...]) -> list[Record]:
    return latest(load_records(path))


def place(name: str, document: Path) -> Path:
    """The file of that name, from the document's folder upwards, or from where the command runs."""
    for folder in (*document.resolve().parents, Path.cwd()):
        if name and (folder / name).exists():
            return folder / name
    raise MaskwalkError(f"There is no file or folder {name!r} from {document.parent} upwards.")


def read_text(path: Path) -> str:
    """A file's text, or a sentence."""
    try:
        return read_file(path).decode("utf-8")
    except UnicodeDecodeError:
        raise MaskwalkError(f"{path} is no text in UTF-8.") from None


def _absolute(word: str, at: Path) -> str:
    """A word, made an absolute path if it names a file."""
    try:
        return str(place(word, at)) if "/" in word else word
    except MaskwalkError:
        return word


@cache
def _module(path: Path, named: str) -> Any:
    """A Python file with a function `verify`; what it raises is told with its own lines."""
    spec = importlib.util.spec_from_file_location(f"maskwalk_verify_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    own_file(path, named)
    with user_code("when it was read"):
        spec.loader.exec_module(module)
    if not hasattr(module, "verify"):
        raise MaskwalkError(f"{path} has no function verify(name, *words) that gives a table.")
    return module


def json_truth(text: str, key: str, source: str) -> Truth:
    """The number at a path of keys: models/st_er_p0/bound, rows/[task=endpoints&seed=0]/kl.

    NAME_se beside it is its standard error; NAME_kind "upper" says that it is an upper bound.
    """
    try:
        here: Any = json.loads(text)
    except ValueError:
        raise MaskwalkError(f"{source} is no JSON, so it has no key {key!r}.") from None
    above: Any = {}
    for part in re.findall(r"\[[^\]]*\]|[^/\[\]]+", key):
        above, here = here, _step(here, part, source)
    name = key.rpartition("/")[2]
    value, half = _read(here, above, name)
    if value is None:
        raise MaskwalkError(f"{key!r} of {source} is no number but {str(here)[:40]!r}.")
    bound = isinstance(above, Mapping) and above.get(f"{name}_kind") == "upper"
    return Truth(value, half, bound)


def _step(here: Any, part: str, source: str) -> Any:
    if part.startswith("[") and isinstance(here, list):
        wanted = dict(pair.split("=", 1) for pair in part.strip("[]").split("&"))
        for item in here:
            if all(fits(k, str(item.get(k)), v) for k, v in wanted.items()):
                return item
        raise MaskwalkError(f"{source} has no item with {part} there.")
    if isinstance(here, list) and part.isdigit() and int(part) < len(here):
        return here[int(part)]
    if not isinstance(here, Mapping) or part not in here:
        raise unknown(f"key in {source}", part, here if isinstance(here, Mapping) else [])
    return here[part]


def _read(here: Any, above: Any, name: str) -> tuple[float | None, float | None]:
    """A number and half of its interval: `se` beside it, or `NAME_se`; the first in a text."""
    if isinstance(here, Mapping):
        return finite(here.get("value")), _halved(here.get("se"))
    if isinstance(here, str):
        first = [number.value for number in numbers(here)]
        return (first[0] if first else None), None
    return finite(here), _halved(above.get(f"{name}_se") if isinstance(above, Mapping) else None)


def _halved(se: Any) -> float | None:
    error = finite(se)
    return None if error is None else NORMAL * error
