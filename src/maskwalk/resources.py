"""What is around the code: data folders, the zoo's manifest, the cache, files, optional packages.

An installed package holds its data (`zoo`, `experiments`) inside itself; a checkout has it beside
`src`.
"""

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from maskwalk.errors import MaskwalkError

PACKAGE = Path(__file__).parent
ZOO = "maskwalk-zoo/1"


def shipped(name: str) -> Path:
    """The folder of that name, inside the package or beside its source."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent.parent / name


def commit() -> str | None:
    """The commit of the checkout this package runs from, if it is one."""
    command = ["git", "-C", str(PACKAGE), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None


def cache_directory() -> Path:
    """$MASKWALK_CACHE, or maskwalk in the user's cache directory."""
    if own := os.environ.get("MASKWALK_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "maskwalk"


def write_file(path: Path, data: bytes) -> None:
    """Writes aside, flushes, renames: a reader sees the old file or the new one, never a part."""
    aside = path.with_name(f".{path.name}.partial")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def read_file(path: Path) -> bytes:
    """The bytes of a file, or a sentence."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise MaskwalkError(f"Cannot read {path}: {problem.strerror}.") from None


def read_json(path: Path, form: str, what: str, needs: tuple[str, ...] = ()) -> dict[str, Any]:
    """A JSON object whose `format` is the one expected and that has these keys, or a sentence."""
    data = read_file(path)
    try:
        value = json.loads(data)
    except ValueError:
        raise MaskwalkError(f"{path} is not JSON; it may be cut short.") from None
    if not isinstance(value, dict) or value.get("format") != form:
        found = value.get("format") if isinstance(value, dict) else None
        raise MaskwalkError(f"{path} is not {what}: its format is {found!r}, not {form!r}.")
    for key in needs:
        if key not in value:
            raise MaskwalkError(f"{path} is not {what}: it has no {key!r}; it may be damaged.")
    return value


def read_toml(path: str | Path) -> dict[str, Any]:
    """What an experiment file says, or a sentence."""
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except OSError as problem:
        raise MaskwalkError(f"Cannot read {path}: {problem.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise MaskwalkError(f"{path} is not a TOML file: {problem}.") from None


def zoo_directory() -> Path:
    """Where the shipped models are: MASKWALK_ZOO, inside the package, or beside its source."""
    if "MASKWALK_ZOO" in os.environ:
        return Path(os.environ["MASKWALK_ZOO"])
    return shipped("zoo")


def zoo_manifest(directory: Path | None = None) -> dict[str, dict[str, Any]]:
    """What the zoo holds: name -> graph, walk, settings, scores, file and hash."""
    file = (zoo_directory() if directory is None else directory) / "manifest.json"
    return dict(_manifest(file, file.stat().st_mtime_ns)) if file.exists() else {}


@lru_cache(maxsize=4)
def _manifest(file: Path, changed: int) -> dict[str, dict[str, Any]]:
    """The manifest as it was when it last changed; an experiment asks for it at every cell."""
    models: dict[str, dict[str, Any]] = read_json(file, ZOO, "a zoo manifest", ("models",))[
        "models"
    ]
    return models


def need(module: str = "transformers") -> Any:
    """A module of an optional extra, or a sentence that says what to install."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise MaskwalkError(
            f"Other people's language models need the package {module.split('.')[0]} "
            f"({problem}); install it with: pip install 'maskwalk[language]'."
        ) from None


@contextmanager
def quiet() -> Iterator[Any]:
    """`transformers` without progress bars and reports: what matters becomes a note or an error."""
    transformers = need()
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def processes() -> int:
    """How many processes of a run share this machine; the parent says so in MASKWALK_PROCESSES."""
    told = os.environ.get("MASKWALK_PROCESSES", "1")
    return max(1, int(told)) if told.isdigit() else 1


def available_memory() -> int:
    """Bytes this process may still take: what is free, or what a limit leaves, by processes.

    MASKWALK_MEMORY (gigabytes) says otherwise, for machines where none of it can be read.
    """
    own = os.environ.get("MASKWALK_MEMORY", "")
    if own.replace(".", "", 1).isdigit():
        return int(float(own) * 1e9) // processes()
    limits = [*_free_memory(), *_group_memory(), *_address_space()]
    return min(limits, default=2**62) // processes()


def _free_memory() -> Iterator[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_memory() -> Iterator[int]:
    """What the control groups of this process leave (version 2, then version 1)."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, group = line.split(":", 2)
        base, names = Path("/sys/fs/cgroup"), ("memory.max", "memory.current")
        if kinds:
            base, names = base / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        if not kinds or "memory" in kinds.split(","):
            place = base / group.lstrip("/")
            for folder in (place, *place.parents[: len(place.parts) - len(base.parts)]):
                yield from _left(folder, *names)


def _left(folder: Path, most: str, used: str) -> Iterator[int]:
    """What one control group leaves, if it has a limit."""
    try:
        limit, now = ((folder / name).read_text().strip() for name in (most, used))
    except OSError:
        return
    if limit.isdigit() and now.isdigit():
        yield max(0, int(limit) - int(now))


def _address_space() -> Iterator[int]:
    """What `ulimit -v` leaves."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return
    if most != resource.RLIM_INFINITY:
        yield max(0, most - pages * os.sysconf("SC_PAGE_SIZE"))


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: on many small tensors more of them wait for each other longer than work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
