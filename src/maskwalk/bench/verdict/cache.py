"""Baselines are run once: their outcomes are kept on disk, by cell and by the code that made them.

A cell's key names everything its outcome depends on but the code. The file's name holds a hash of
the package's sources (what prints or draws pictures left out) and of torch's version, so that an
edit of a sampler, an oracle or the streams never meets yesterday's numbers. A cache that cannot be
written is no reason to stop.
"""

import hashlib
import json
import os
from functools import cache
from pathlib import Path

import torch

from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.errors import MaskwalkError
from maskwalk.resources import PACKAGE, cache_directory

FORMAT = 1
# The folders that decide no outcome; whatever is not in them counts.
BESIDE = ("analysis", "training", "report", "paper", "cli", "zoo", "experiments")


@cache
def code_hash() -> str:
    """A short hash of the code that decides outcomes."""
    digest = hashlib.sha256(f"{FORMAT} {torch.__version__}".encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in BESIDE:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class Store:
    """Outcomes by cell key, one JSON object a line; a line that is not whole is not there."""

    def __init__(self, directory: Path | None = None) -> None:
        self.path = (directory or cache_directory()) / f"baselines-{code_hash()}.jsonl"
        self.outcomes: dict[str, Outcome] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        except OSError as problem:
            if directory is not None:
                raise MaskwalkError(f"Cannot write {directory}: {problem.strerror}.") from None
            lines = []
        for line in lines:
            try:
                entry = json.loads(line)
                self.outcomes[entry["key"]] = Outcome.from_json(entry)
            except (ValueError, KeyError, TypeError):
                continue

    def add(self, outcome: Outcome) -> None:
        """Remembers an outcome, here and on disk if that can be written."""
        self.outcomes[outcome.record["key"]] = outcome
        line = json.dumps(outcome.as_json(), allow_nan=False).encode() + b"\n"
        try:
            # One write in append mode: two evaluations at once do not tear each other's lines.
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(handle, line if _ended(handle) else b"\n" + line)
            finally:
                os.close(handle)
        except OSError:
            return


def _ended(handle: int) -> bool:
    """Whether a file's last line is whole; one that a kill cut short stays apart from the next."""
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"
