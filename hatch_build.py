"""A wheel made in a checkout holds its commit, for `maskwalk --version` and for records."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "COMMIT"  # as resources.py looks for it


class CommitHook(BuildHookInterface):
    """Adds the file to the wheel; an editable install asks its checkout instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the build."""
        commit = commit_of(Path(self.root))
        if version != "editable" and commit:
            file = Path(tempfile.mkdtemp()) / NAME
            file.write_text(f"{commit}\n", encoding="utf-8")
            build_data["force_include"][str(file)] = f"maskwalk/{NAME}"


def commit_of(root: Path) -> str:
    """The commit of this checkout; "" where there is none, or another project's around it."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
