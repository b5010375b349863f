"""What is around the code: data folders, the zoo's manifest, the cache, files, optional packages.

An installed package holds its data (`zoo`, `experiments`) inside itself; a checkout has it beside
`src`.
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError
from maskwalk.reading import Shape, Wrong, anything, json_value, shown
from maskwalk.reading.files import file_size
from maskwalk.reading.models import MODELS

PACKAGE = Path(__file__).parent
ZOO = "maskwalk-zoo/1"
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
TOML_BYTES = 2**20
DOTTED = re.compile(rb"(?:\.[^.\n,=]{1,200}){33}")


def shipped(name: str) -> Path:
    """The folder of that name, inside the package or beside its source."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent.parent / name


def at_hand(path: Path, folder: str, suffix: str = "") -> Path:
    """A path as it is; where nothing is there, the shipped one of that name, if there is one.

    "quickstart", "quickstart.toml" and "experiments/quickstart.toml" name the same experiment.
    """
    if path.exists() or path.is_absolute() or ".." in path.parts:
        return path
    inside = path.relative_to(folder) if path.parts[:1] == (folder,) else path
    for name in (inside, inside.with_name(inside.name + suffix)) if inside.parts else ():
        if (shipped(folder) / name).exists():
            return shipped(folder) / name
    return path


def commit() -> str | None:
    """The commit of the checkout this package runs from, or that its wheel was made from."""
    if not (PACKAGE.parent.parent / ".git").exists():  # installed, maybe inside another checkout
        made_from = PACKAGE / "COMMIT"  # hatch_build.py writes it
        return made_from.read_text(encoding="utf-8").strip() if made_from.is_file() else None
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
    """Writes aside, flushes, renames: a reader sees the old file or the new one, never a part.

    A link is followed to its file first; a device or a pipe cannot be replaced and is written to.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(data)
        return
    aside = path.with_name(f".{path.name}.partial")
    try:
        aside.unlink(missing_ok=True)  # what a kill left, or a link to somewhere else
        with os.fdopen(os.open(aside, NEW_FILE, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as problem:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise OSError(problem.errno, problem.strerror, str(path)) from None


@contextmanager
def held(directory: Path, what: str) -> Iterator[None]:
    """The directory is this process's alone meanwhile; another one is refused in a sentence."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MaskwalkError(
                f"Another process is {what} {directory}; wait for it, or name another directory."
            ) from None
        yield
    finally:
        os.close(handle)


def read_file(path: Path) -> bytes:
    """The bytes of a file, or a sentence: a device, a pipe or what is too large is not begun."""
    if (size := file_size(path)) > (free := available_memory()):
        raise MaskwalkError(f"{path} has {size:,} bytes, and there are {free:,} of memory free.")
    try:
        return path.read_bytes()
    except OSError as problem:
        raise MaskwalkError(f"Cannot read {path}: {problem.strerror}.") from None


def read_json(path: Path, form: str, what: str, shape: Shape = anything) -> dict[str, Any]:
    """A JSON object whose `format` is the one expected and that has this shape, or a sentence."""
    try:
        value = json_value(read_file(path))
    except Wrong as wrong:
        raise MaskwalkError(f"{path} is not JSON: {wrong.told()}; it may be cut short.") from None
    if not isinstance(value, dict) or value.get("format") != form:
        given = value.get("format") if isinstance(value, dict) else None
        raise MaskwalkError(f"{path} is not {what}: its format is {shown(given)}, not {form!r}.")
    checked(value, shape, path, what)
    return value


def checked(value: Any, shape: Shape, path: object, what: str) -> None:
    """A sentence where something that was read has another shape."""
    try:
        shape(value)
    except Wrong as wrong:
        raise MaskwalkError(
            f"{path} is not {what}: {wrong.told()}; mend it, or write the file again."
        ) from None


def read_toml(path: str | Path) -> dict[str, Any]:
    """What an experiment file says, or a sentence."""
    if (size := file_size(Path(path))) > TOML_BYTES:
        raise MaskwalkError(
            f"{path} has {size:,} bytes, and an experiment file at most {TOML_BYTES:,}; name "
            "fewer things in it, or split it into several files."
        )
    data = read_file(Path(path))
    if DOTTED.search(data):  # reading a key takes the square of its parts
        raise MaskwalkError(f"{path} has a key of more than 32 parts; an experiment has none.")
    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise MaskwalkError(f"{path} is nested too deeply for an experiment file.") from None
    except ValueError as problem:  # not TOML, not UTF-8, or a number of a thousand digits
        raise MaskwalkError(f"{path} is not a TOML file: {str(problem)[:200]}.") from None


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
    models: dict[str, dict[str, Any]] = read_json(file, ZOO, "a zoo manifest", MODELS)["models"]
    return models


def need(
    module: str = "transformers", extra: str = "language", what: str = "Models of text"
) -> Any:
    """A module of an optional extra, or a sentence that says what to install."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise MaskwalkError(
            f"{what} cannot be had without the package {module.split('.')[0]} ({problem}); "
            f"install it with: pip install 'maskwalk[{extra}]'."
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
    import torch  # `maskwalk --version` does not wait for it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
