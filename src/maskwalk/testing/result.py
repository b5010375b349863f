"""What an audit says: one result a check, the curve over steps, and the whole as text and JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PASSES, NOTED, FINDING, NOT_APPLICABLE = "passes", "noted", "finding", "not applicable"
STATUSES = (PASSES, NOTED, FINDING, NOT_APPLICABLE)
FORM = "maskwalk-audit/1"


@dataclass(frozen=True)
class Result:
    """What one check found: its status, a sentence, and the numbers behind it."""

    check: str
    status: str
    says: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in the JSON."""
        return {
            "check": self.check,
            "status": self.status,
            "says": self.says,
            "evidence": dict(self.evidence),
        }


def not_applicable(check: str, why: str, evidence: Mapping[str, Any] | None = None) -> Result:
    """A check that cannot be made, and why."""
    return Result(check, NOT_APPLICABLE, f"{why[0].upper()}{why[1:]}.", evidence or {})


@dataclass(frozen=True)
class Point:
    """The decoder at one number of steps: cost, and how near its sequences are to the law."""

    steps: int
    passes: float
    coherence: float
    coherence_se: float
    kl: float
    tv: float
    sequences: int


@dataclass(frozen=True)
class Audit:
    """Every check of a decoder."""

    target: str
    like: str
    world: str
    options: Mapping[str, Any]
    results: tuple[Result, ...]
    curve: tuple[Point, ...] = ()
    floor: Mapping[str, float] = field(default_factory=dict)  # what exact sequences would get
    checks: Mapping[str, str] = field(default_factory=dict)  # what each check asks

    @property
    def findings(self) -> tuple[Result, ...]:
        """What it does that it must not do."""
        return tuple(one for one in self.results if one.status == FINDING)

    @property
    def passed(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __getitem__(self, check: str) -> Result:
        return next(one for one in self.results if one.check == check)

    @property
    def summary(self) -> str:
        """Findings, and how the other checks went, in a line."""
        counts = {status: sum(r.status == status for r in self.results) for status in STATUSES}
        found = counts[FINDING]
        head = "no findings" if not found else f"{found} finding{'s' if found > 1 else ''}"
        rest = ", ".join(f"{n} {name}" for name, n in counts.items() if n and name != FINDING)
        return f"{self.target} (like {self.like}): {head}" + (f"; {rest}" if rest else "")

    def __str__(self) -> str:
        lines = [f"{self.summary}."]
        lines += [f"  {one.check}: {one.status}. {one.says}" for one in self.results]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The whole as JSON."""
        return {
            "format": FORM,
            "target": self.target,
            "like": self.like,
            "world": self.world,
            "options": {name: str(value) for name, value in self.options.items()},
            "passed": self.passed,
            "results": [one.as_dict() for one in self.results],
            "curve": [vars(point) for point in self.curve],
            "floor": dict(self.floor),
        }
