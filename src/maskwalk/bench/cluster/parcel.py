"""The user's own files that jobs need, packed by the driver and unpacked on every node.

    sent along      plug-ins (`--include`) with the modules beside them that they use; models,
                    texts, questions and graph files that are named by a path relative to where the
                    command was started
    must be there   what is named by an absolute path: the same content on every node

A parcel is unpacked once on a node, into a folder of the cache that is named by its content.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from maskwalk.bench.plan import Job
from maskwalk.denoisers.language.loading import HF
from maskwalk.denoisers.resolve import own_weights, split_precision
from maskwalk.errors import MaskwalkError
from maskwalk.resources import cache_directory
from maskwalk.specs.sources import files_beside, named_files

MOST = 2**28  # bytes that are sent along
ZOO = "MASKWALK_ZOO"


@dataclass(frozen=True)
class Parcel:
    """Files by the path under which workers find them, and what they have to have themselves."""

    files: dict[str, bytes] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()  # of the files, those to run
    there: dict[str, str] = field(default_factory=dict)  # absolute paths, and their hashes
    zoo: str | None = None  # MASKWALK_ZOO

    @cached_property
    def digest(self) -> str:
        """A name for the content."""
        code = sha256()
        for name, data in sorted(self.files.items()):
            code.update(f"{name}\0{len(data)}\0".encode() + data)
        return code.hexdigest()[:32]


def pack(jobs: Iterable[Job], plugins: Sequence[str] = ()) -> Parcel:
    """What the jobs name and the plug-ins hold, read now."""
    files: dict[str, bytes] = {}
    there: dict[str, str] = {}
    zoo = os.environ.get(ZOO)
    paths = {path for text in _texts(jobs) for path in _named(text)}
    for path in sorted(paths | ({zoo} if zoo else set())):
        if Path(path).is_absolute() or ".." in Path(path).parts:
            there[str(Path(path).absolute())] = _content(Path(path))
        else:
            files |= {name.as_posix(): name.read_bytes() for name in _files(Path(path))}
        _check_size(path, files)
    runs = []
    for number, path in enumerate(plugins):
        folder = Path(path).resolve().parent
        for file in files_beside(Path(path).resolve()):
            files[f".plugins/{number}/{file.relative_to(folder).as_posix()}"] = file.read_bytes()
        runs.append(f".plugins/{number}/{Path(path).name}")
    return Parcel(files, tuple(runs), there, zoo)


def _texts(jobs: Iterable[Job]) -> set[str]:
    """Every text in the arguments of the jobs, once."""
    texts: set[str] = set()
    for job in jobs:
        todo: list[Any] = [job.arguments]
        while todo:
            value = todo.pop()
            if isinstance(value, str):
                texts.add(value)
            elif isinstance(value, dict | list | tuple):
                todo += value.values() if isinstance(value, dict) else value
    return texts


def _named(text: str) -> Iterator[str]:
    """The files and the trained directory that a text names, or is."""
    yield from (path for path in named_files(text) if Path(path).is_file())
    folder = split_precision(text)[0]
    if _there(folder) and own_weights(text):
        yield folder
    file, _, function = text.rpartition(":")
    if text.startswith(HF) and _there(text.removeprefix(HF)):
        yield text.removeprefix(HF)  # a model in a folder
    elif file.endswith(".py") and function.isidentifier() and _there(file):
        yield file  # one that a function of the user's makes
    elif _there(text) and Path(text).is_file():
        yield text  # texts, or questions


def _there(path: str) -> bool:
    try:
        return bool(path) and Path(path).exists()
    except OSError:  # too long for a path
        return False


def _files(path: Path) -> list[Path]:
    """A file, or those of a directory; checkpoints and logs in its folders are not needed."""
    return [path] if path.is_file() else sorted(p for p in path.iterdir() if p.is_file())


def _content(path: Path) -> str:
    code = sha256()
    for file in _files(path):
        code.update(f"{file.name}\0".encode() + sha256(file.read_bytes()).digest())
    return code.hexdigest()


def _check_size(path: str, files: dict[str, bytes]) -> None:
    size = sum(map(len, files.values()))
    if size > MOST:
        raise MaskwalkError(
            f"With {path} there are {size / 2**20:,.0f} MB to send to every node, and at most "
            f"{MOST // 2**20} are sent. Put it at the same place on all nodes, and name it by its "
            "absolute path."
        )


def unpack(parcel: Parcel) -> list[str]:
    """Puts the files where jobs look for them; the plug-ins to run."""
    for path, content in parcel.there.items():
        if not Path(path).exists() or _content(Path(path)) != content:
            raise MaskwalkError(
                f"The node {os.uname().nodename} has no {path}, or another version of it. Put it "
                "there on every node; or name it by a relative path, and it is sent along."
            )
    if parcel.files:
        os.chdir(_unpacked(parcel))
    if parcel.zoo:
        os.environ[ZOO] = parcel.zoo
    for path in parcel.plugins:
        sys.path.insert(0, str(Path(path).absolute().parent))
    return list(parcel.plugins)


def _unpacked(parcel: Parcel) -> Path:
    """The folder of a parcel's files on this node, made whole or not at all."""
    folder = cache_directory() / "cluster" / parcel.digest
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        for name, data in parcel.files.items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_bytes(data)
        aside.rename(folder)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        if not folder.is_dir():  # another worker was quicker: that is as good
            raise
    return folder
