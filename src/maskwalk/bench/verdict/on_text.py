"""A verdict on a policy with a model of text: held-out likelihood against baselines at its calls.

Every setting of the policy is measured as `maskwalk tune` measures (tuning/trial.py), and so are
the baselines that spend as many calls. The policy meets the best baseline with at most as many
calls, passage by passage; which one is best is decided on the other half of the passages, so that
being chosen is no advantage. After Holm's correction over the settings it is

    beyond    held-out text is likelier than under the best baseline
    inside    less likely
    on        neither is shown

Stochastic policies and baselines are compared by their upper bounds, over as many paths each. A
policy that cannot be replayed has no position.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from jaxtyping import Float64

from maskwalk.analysis.contract.trial import broken_checks
from maskwalk.bench.run import Engine, Run, here
from maskwalk.bench.subject import Subject
from maskwalk.bench.time_limit import time_limit
from maskwalk.bench.tuning.candidates import settings
from maskwalk.bench.tuning.search import FILE, load_rows
from maskwalk.bench.tuning.trial import measured, text_job
from maskwalk.bench.verdict.policy import Policy, candidate, setting_spec
from maskwalk.errors import user_code
from maskwalk.stats import LEVEL, Difference, holm, normal_difference

BASELINES = ("random", "entropy", "confidence", "margin", "bisection", "halton", "left_to_right")
Row = dict[str, Any]
Matrix = Float64[np.ndarray, "baselines passages"]


@dataclass(frozen=True)
class Standing:
    """One setting of the policy against the baselines with at most as many calls."""

    row: Row
    baselines: tuple[Row, ...]
    best: str | None
    difference: Difference | None  # of nats per passage, less is better
    position: str = "–"

    def as_dict(self) -> Row:
        """As JSON has it."""
        found = {"setting": self.row, "best": self.best, "position": self.position}
        d = self.difference
        told = None if d is None else {"value": d.value, "low": d.low, "high": d.high, "p": d.p}
        return found | {"difference": told, "baselines": [b["sampler"] for b in self.baselines]}


@dataclass(frozen=True)
class TextEvaluation:
    """What was found; `standings` is empty where the contract is broken."""

    name: str
    model: str
    contract: dict[str, dict[str, str]]
    standings: tuple[Standing, ...]

    @property
    def kept(self) -> bool:
        """Whether every setting keeps the contract."""
        return not any(self.contract.values())

    def as_dict(self) -> Row:
        """As `maskwalk evaluate --json` prints it."""
        broken = {setting: dict(found) for setting, found in self.contract.items() if found}
        about: Row = {"policy": self.name, "model": self.model}
        about["contract"] = {"kept": self.kept, "broken": broken}
        return about | {"settings": [s.as_dict() for s in self.standings]}

    def lines(self) -> list[str]:
        """For a person, in 80 columns."""
        lines = [f"{self.name} · {self.model}"]
        lines += ["Contract: kept." if self.kept else "Contract: broken."]
        for setting, broken in self.contract.items():
            lines += [f"  {setting}: {check}: {why}" for check, why in broken.items()]
        if self.standings:
            head = ("", "calls", "held out", "best baseline", "difference")
            lines += ["", "{:24.24}{:>6}{:>12}  {:<22}{:>14}".format(*head)]
        lines += [_line(s) for s in self.standings]
        if self.standings:
            lines += ["", *_legend(self.standings)]
        return lines


def _legend(standings: Sequence[Standing]) -> list[str]:
    units = dict.fromkeys(s.row["likelihood"]["unit"] for s in standings if s.row["likelihood"])
    words = f"held out: {', '.join(units) or 'bits'} of held-out text. {LEGEND}"
    return wrap(words, 80)


LEGEND = (
    "best baseline: with at most as many calls. difference: the policy's bits per passage less "
    "its, with half of a 95 % interval; beyond, inside: shown after Holm's correction. ≤: an upper "
    "bound."
)


def _line(s: Standing) -> str:
    held = s.row["likelihood"]
    shown = "–" if held is None or held["value"] is None else f"{held['value']:.3f}"
    shown = f"≤ {shown}" if held is not None and held.get("bound") else shown
    cells = f"{s.row['sampler']:24.24}{s.row['calls']['value']:>6.4g}{shown:>12}"
    if s.difference is None or s.best is None:
        return f"{cells}  {'–':<22}{'–':>14}  {s.position}"
    d = s.difference
    half = (d.high - d.low) / 2 / log(2)
    gap = f"{d.value / log(2):+.2f} ± {half:.2f}"
    return f"{cells}  {s.best:<22.22}{gap:>14}  {s.position}"


def evaluate_on_text(
    policy: Policy,
    subject: Subject,
    how: Row,
    *,
    anyway: bool = False,
    out: Path,
    device: str = "cpu",
    timeout: float | None = None,
    engine: Engine | None = None,
    told: Callable[[str], object] = lambda _: None,
) -> TextEvaluation:
    """Contract, policy, baselines at its calls, and where it stands; `out` keeps the baselines,
    which run on `engine`; the policy runs here."""
    found = candidate(policy)
    contract = {}
    for label, sampler in found.settings.items():
        with time_limit(timeout, f"The contract of {setting_spec(found.name, label)}"):
            contract[label] = broken_checks(sampler)
    if any(contract.values()) and not anyway:
        return TextEvaluation(found.name, subject.name, contract, ())
    _, passages = subject.load(device)
    masked = int((~passages.given[0]).sum())
    standings = []
    for label, sampler in found.settings.items():
        name = setting_spec(found.name, label)
        told(name)
        with time_limit(timeout, name), user_code("on text"):
            own = measured(sampler, name, subject, how, 0, device)
        calls = max(1, int(own["calls"]["value"] + 1e-9))
        specs = [s for s in settings(masked, calls) if s.partition("(")[0] in BASELINES]
        jobs = [text_job(subject, spec, how) for spec in specs]
        for row in Run(jobs, out / FILE, engine or here(device), load_rows):
            told(str(row["sampler"]))
        known = {row["key"]: row for row in load_rows(out / FILE)}
        rows = tuple(known[job.key] for job in jobs)
        standings.append(stand(own, [r for r in rows if r["calls"]["value"] <= calls + 1e-9]))
    return TextEvaluation(found.name, subject.name, contract, judged(standings))


def stand(own: Row, baselines: Sequence[Row]) -> Standing:
    """The policy's nats per passage less those of the best baseline, chosen on the other half."""
    mine = own["likelihood"] and own["likelihood"]["each"]
    rows = [b for b in baselines if b["likelihood"] and b["likelihood"]["each"]]
    if not mine or not rows:
        return Standing(own, tuple(baselines), None, None)
    table = np.array([b["likelihood"]["each"] for b in rows])
    best = rows[int(table.mean(1).argmin())]["sampler"]
    each = np.array(mine) - opponent(table)
    return Standing(own, tuple(baselines), best, normal_difference(each))


def opponent(table: Matrix) -> Float64[np.ndarray, " passages"]:
    """Of every passage, the nats of the baseline that is best on the other half of them."""
    half = np.arange(table.shape[1]) % 2
    chosen = np.empty(table.shape[1])
    for side in (0, 1):
        others = table[:, half != side] if (half != side).any() else table
        chosen[half == side] = table[others.mean(1).argmin()][half == side]
    return chosen


def judged(found: Sequence[Standing]) -> tuple[Standing, ...]:
    """The same with positions, after Holm's correction over the settings."""
    tests = [s.difference for s in found if s.difference is not None]
    corrected = iter(holm(np.array([d.p for d in tests], dtype=np.float64)).tolist())
    out = []
    for s in found:
        position = s.position
        if s.difference is not None:
            shown = next(corrected) < LEVEL
            position = ("beyond" if s.difference.value < 0 else "inside") if shown else "on"
        out.append(Standing(s.row, s.baselines, s.best, s.difference, position))
    return tuple(out)
