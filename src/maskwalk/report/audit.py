"""The page of an audit: findings first, every check with its evidence, the curve over steps."""

import json
from pathlib import Path
from typing import Any

from maskwalk import __version__
from maskwalk.report.page import pasted, render
from maskwalk.resources import write_file
from maskwalk.stats import half_width
from maskwalk.testing.result import FINDING, NOT_APPLICABLE, NOTED, PASSES, Audit

ORDER = (FINDING, NOTED, PASSES, NOT_APPLICABLE)


def audit_page(found: Audit) -> str:
    """The page as text."""
    groups = [(status, [r for r in found.results if r.status == status]) for status in ORDER]
    return render(
        "audit.html",
        style=pasted("style.css", "audit.css"),
        found=found,
        groups=[(status, some) for status, some in groups if some],
        told=_told,
        half=half_width,
        drawn=_drawn(found),
        version=__version__,
    )


def write_page(found: Audit, path: Path) -> None:
    """Writes it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, audit_page(found).encode())


def _told(value: Any) -> str:
    """A piece of evidence as text."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return value if isinstance(value, str) else json.dumps(value)


def _drawn(found: Audit) -> dict[str, Any]:
    """Where the marks of the small figure stand: coherence against forward passes."""
    if not found.curve:
        return {}
    most = max(point.passes for point in found.curve)
    places = [
        (40 + 300 * point.passes / most, 150 - 130 * point.coherence, point)
        for point in found.curve
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    return {"points": places, "line": line, "most": most}
