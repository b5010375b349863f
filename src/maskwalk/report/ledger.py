"""The ledger of `maskwalk diagnose --out DIR`, read for the page: a group for every setting.

DIR/diagnosis.jsonl holds one object a line: a row of `maskwalk.diagnose` with what it was
measured on (graph, walk, task, model, preset, seed). Rows of one setting form a group, a figure of
the report; of two rows of one sampler the later counts. Nothing is computed anew here.
"""

import csv
import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwalk.bench import labels
from maskwalk.bench.records import whole_bytes
from maskwalk.errors import MaskwalkError
from maskwalk.report.study import Study, finite
from maskwalk.report.tables import as_latex, as_markdown

Row = dict[str, Any]
FILE = "diagnosis.jsonl"
NEEDED = ("sampler", "calls", "rounds")
SETTING = ("model", "task", "preset", "graph", "graph_seed", "walk", "length")
RUN = ("n", "orders", "seed")


@dataclass(frozen=True)
class Group:
    """The rows of one setting; `samplers` are their places in the study."""

    title: str
    detail: str
    rows: list[Row]
    samplers: list[int]

    @property
    def stem(self) -> str:
        """A file name."""
        words = "".join(c if c.isalnum() else " " for c in f"diagnosis {self.title}".lower())
        return "-".join(words.split())

    @property
    def command(self) -> str:
        """How to measure these rows again."""
        row = self.rows[0]
        flags = {"denoiser": row.get("model"), "task": row.get("task"), "preset": row.get("preset")}
        if row.get("model") == "oracle":  # a trained model brings its graph and walk
            flags |= {key: row.get(key) for key in ("graph", "graph_seed", "walk", "length")}
        flags |= {"count": row.get("n"), "orders": row.get("orders"), "seed": row.get("seed")}
        flags["samplers"] = ";".join(r["sampler"] for r in self.rows)
        said = [
            f"--{key.replace('_', '-')} {shlex.quote(str(value))}"
            for key, value in flags.items()
            if value is not None
        ]
        return " ".join(["maskwalk diagnose", *said, "--out DIR"])

    @property
    def split(self) -> bool:
        """Whether any loss is known in its two parts."""
        return any(finite(row.get("dependence")) is not None for row in self.rows)


def read_ledger(directory: Path) -> list[Row]:
    """The complete rows of a directory's ledger; none where there is no ledger."""
    path = directory / FILE
    if not path.exists():
        return []
    rows: list[Row] = []
    for number, line in enumerate(path.read_bytes()[: whole_bytes(path)].splitlines(), 1):
        try:
            row = json.loads(line)
            lacking = [key for key in NEEDED if key not in row]
        except (ValueError, TypeError):
            lacking = ["everything"]
        if lacking:
            raise MaskwalkError(
                f"Line {number} of {path} is no row of `maskwalk diagnose`: it lacks "
                f"{', '.join(lacking)}. Remove the line or run the command again."
            )
        rows.append(row)
    return rows


def specs(rows: Sequence[Row]) -> list[str]:
    """The samplers of a ledger."""
    return list(dict.fromkeys(row["sampler"] for row in rows))


def groups(study: Study, rows: Sequence[Row]) -> list[Group]:
    """The ledger's rows by setting, in order of appearance, samplers in the study's order."""
    place = {sampler.spec: i for i, sampler in enumerate(study.samplers)}
    found: dict[str, dict[int, Row]] = {}
    about: dict[str, Row] = {}
    for row in rows:
        key = json.dumps([row.get(name) for name in (*SETTING, *RUN)])
        about.setdefault(key, {name: row.get(name) for name in (*SETTING, *RUN)})
        found.setdefault(key, {})[place[row["sampler"]]] = row
    plain = [_title(held) for held in about.values()]
    titles = labels.tell_apart(plain, list(about.values()))
    out = []
    for title, (key, held) in zip(titles, found.items()):
        order = sorted(held)
        detail = " · ".join(
            f"{labels.spoken(k)} {v}" for k, v in about[key].items() if v is not None
        )
        out.append(Group(title, detail, [held[s] for s in order], order))
    return out


def _title(about: Row) -> str:
    model, task = str(about.get("model") or "oracle"), str(about.get("task") or "")
    return ", ".join(word for word in (model, labels.task_label(task) if task else "") if word)


def ledger_data(found: Sequence[Group]) -> list[Row]:
    """What the page draws of the groups, as compactly as is readable."""
    return [
        {"title": g.title, "rows": [_shown(row, s) for row, s in zip(g.rows, g.samplers)]}
        for g in found
    ]


def _shown(row: Row, sampler: int) -> Row:
    numbers = ("kl", "kl_se", "nll", "dependence", "denoiser", "coherence", "regret", "lost")
    example = row.get("example")
    length = len(example["rounds"]) if example else row.get("length") or 1
    return {
        "s": sampler,
        "calls": _short(row["calls"]),
        "most": row.get("calls_max"),
        "upper": row.get("kl_kind") == "upper",
        "infinite": bool(row.get("kl_infinite")),
        "reliable": row.get("reliable"),
        "length": length,
        **{name: _short(row.get(name)) for name in numbers},
        "rounds": [_round(part) for part in row["rounds"]],
        "example": _example(example) if example else None,
    }


def _round(part: Row) -> Row:
    names = ("dependence", "denoiser", "nll", "revealed", "share", "cost")
    return {"positions": part["positions"], **{name: _short(part.get(name)) for name in names}}


def _example(example: Row) -> Row:
    parts = [example.get("dependence"), example.get("denoiser")]
    cost = None
    if all(isinstance(part, list) for part in parts):
        cost = [_short((finite(a) or 0.0) + (finite(b) or 0.0)) for a, b in zip(*parts)]
    return {"rounds": example["rounds"], "cost": cost}


def _short(value: Any) -> float | None:
    number = finite(value)
    return None if number is None else float(f"{number:.4g}")


def sheet(group: Group, study: Study) -> list[list[str]]:
    """The ledger as a table of text: a head and a row a sampler; – where something is not known."""
    head = [
        "sampler",
        "calls",
        "coherence",
        "KL",
        "dependence",
        "denoiser",
        "worst round",
        "regret",
    ]
    body = []
    for row, sampler in zip(group.rows, group.samplers):
        bound = "≤ " if row.get("kl_kind") == "upper" else ""
        kl = "∞" if row.get("kl_infinite") else _number(row, "kl", bound)
        lost = "∞" if row.get("kl_infinite") and row.get("denoiser") is None else None
        unsure = "~" if row.get("reliable") is False else ""
        worst = row.get("worst_round")
        body.append(
            [
                study.samplers[sampler].label,
                f"{row['calls']:.4g}",
                _number(row, "coherence", unsure, 3),
                kl,
                _number(row, "dependence"),
                lost or _number(row, "denoiser"),
                "–" if worst is None else str(worst + 1),
                _number(row, "regret"),
            ]
        )
    return [head, *body]


def _number(row: Row, name: str, before: str = "", digits: int = 2) -> str:
    value, se = finite(row.get(name)), finite(row.get(f"{name}_se"))
    if value is None:
        return "–"
    error = "" if se is None else f" ± {se:.{digits}f}"
    return f"{before}{value:.{digits}f}{error}".replace("-0.00", "0.00")


def ledger_tables(found: Sequence[Group], study: Study, suffix: str) -> dict[str, str]:
    """The ledgers as files: CSV with the numbers as they are, Markdown and LaTeX to be read."""
    out = {}
    for group in found:
        if suffix == "csv":
            names = [k for k in group.rows[0] if k not in ("rounds", "example", "key")]
            text = io.StringIO()
            writer = csv.DictWriter(
                text, names, restval="", extrasaction="ignore", lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(group.rows)
            out[f"{group.stem}.csv"] = text.getvalue()
        else:
            lines = sheet(group, study)
            shown = as_markdown(lines) if suffix == "md" else as_latex(lines)
            out[f"{group.stem}.{suffix}"] = shown
    return out
