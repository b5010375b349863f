"""What the shell offers after Tab: names of the tables, of the zoo, of shipped experiments.

Nothing is imported for it: names are read from the `register` lines of the source, so that Tab does
not wait for torch. Members of a user's own files are not offered.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from maskwalk.resources import PACKAGE, shipped

REGISTERED = re.compile(r'^@?([A-Z]+)\.register\(\s*"(\w+)"', re.M)
TABLES = {
    "worlds": "WORLDS",
    "graphs": "GRAPHS",
    "walks": "WALKS",
    "tasks": "TASKS",
    "samplers": "SAMPLERS",
    "scores": "SCORES",
    "draws": "DRAWS",
    "denoisers": "DENOISERS",
    "maskings": "MASKINGS",
    "outputs": "OUTPUTS",
    "metrics": "METRICS",
}


@cache
def registered() -> dict[str, list[str]]:
    """Names by table, as the source registers them."""
    names: dict[str, list[str]] = {}
    for folder in ("worlds", "denoisers", "decoding", "samplers", "training"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for table, name in REGISTERED.findall(path.read_text(encoding="utf-8")):
                names.setdefault(table, []).append(name)
    return {table: sorted(set(some)) for table, some in names.items()}


def zoo_names() -> list[str]:
    """The shipped models, as a denoiser names them."""
    try:
        manifest = json.loads((shipped("zoo") / "manifest.json").read_text("utf-8"))
        return sorted(f"zoo:{name}" for name in manifest["models"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def experiment_names() -> list[str]:
    """The shipped experiments."""
    folder = shipped("experiments")
    return sorted(
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml")
    )


def result_names() -> list[str]:
    """The shipped records."""
    return sorted(
        f"results/{path.parent.name}" for path in shipped("results").glob("*/records.jsonl*")
    )


def page_names() -> list[str]:
    """The shipped documents."""
    pages = sorted(path.stem for path in shipped("docs").glob("*.md"))
    return ["README"] * page_file("README").is_file() + pages


def page_file(name: str) -> Path:
    """Where a page is; the README stands beside the documents."""
    folder = shipped("docs").parent if name == "README" else shipped("docs")
    return folder / f"{name}.md"


def offer(names: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """A completion: those names that go on from what is typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def table(key: str) -> Callable[[str], list[str]]:
    """The completion of a name of a table."""
    return offer(lambda: registered().get(TABLES[key], []))


def preset_names() -> list[str]:
    """The decodings by name."""
    text = (PACKAGE / "decoding" / "presets.py").read_text(encoding="utf-8")
    return sorted(set(re.findall(r'^ +"(\w+)": Preset\(', text, re.M)))


worlds, graphs, walks, tasks, samplers, maskings = (
    table(key) for key in ("worlds", "graphs", "walks", "tasks", "samplers", "maskings")
)
denoisers = offer(lambda: [*registered().get("DENOISERS", []), *zoo_names()])
models = offer(lambda: [*zoo_names(), *(n.removeprefix("zoo:") for n in zoo_names())])
presets = offer(preset_names)
kinds = offer(lambda: [*TABLES, "presets"])
experiments, results, pages = map(offer, (experiment_names, result_names, page_names))
