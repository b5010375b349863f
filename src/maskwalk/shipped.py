"""What came with this copy of maskwalk: its data folders, and the commit it was checked out at.

An installed package holds its data (`zoo`, `experiments`) inside itself; a checkout has it beside
`src`.
"""

import subprocess
from pathlib import Path

PACKAGE = Path(__file__).parent


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
