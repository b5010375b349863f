"""The list of semantic mutants: small wrong edits of the package, and the tests that must fail.

A mutant is one entry `[[mutant]]` of a file in `semantic/`:

    name    how `make mutants` calls it
    file    under src/maskwalk
    old     text that occurs there exactly once, so that the list fails loudly when the code moves
    new     what replaces it
    tests   node ids of pytest; one of them has to fail
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src/maskwalk")
LISTS = Path(__file__).parent / "semantic"


@dataclass(frozen=True)
class Mutant:
    """One wrong edit."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The edited file, from the root of the repository."""
        return PACKAGE / self.file

    def problem(self, root: Path = ROOT) -> str:
        """Why it cannot be applied; empty if it can."""
        if not (root / self.path).is_file():
            return f"there is no file {self.path}"
        count = (root / self.path).read_text(encoding="utf-8").count(self.old)
        return "" if count == 1 else f"its text occurs {count} times in {self.path}, not once"

    def source(self, root: Path = ROOT) -> str:
        """The text of the file with the edit."""
        return (root / self.path).read_text(encoding="utf-8").replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """All of them, file by file."""
    result = []
    for path in sorted(LISTS.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            result.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}))
    return result
