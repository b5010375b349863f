"""Losses of `maskwalk diagnose --out DIR`, read for the page: a group for every setting.

A row says what one sampler loses and what it was measured on (world, task, model, mode, seed).
Rows of one setting form a group, a figure of the report; of two rows of one sampler the later
counts. Nothing is computed anew here; every ± is half of a 95 % interval.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maskwalk.bench import labels
from maskwalk.report.estimates import INTERVAL, NONE, finite, plus_minus
from maskwalk.report.formats import as_csv, as_latex, as_markdown
from maskwalk.report.study import Study
from maskwalk.report.words import file_stem, quoted, world_words
from maskwalk.stats import half_width, settled_se
from maskwalk.worlds.metrics import METRICS, QUALITY, Metric

Row = dict[str, Any]
SETTING = ("model", "task", "mode", "world")
RUN = ("n", "orders", "seed", "draw", "ties")
PARTS = ("dependence", "denoiser")
HEADS = {  # what the columns of a sheet mean
    "KL": "nats per sequence lost against the law in all",
    "dependence": "nats per sequence lost by drawing dependent positions together",
    "denoiser": "nats per sequence lost by the denoiser",
    "worst round": "the round in which most is lost to dependence",
    "regret": "its dependence above that of the best plan with as many calls",
}
UNREAD = ("rounds", "example", "key")


@dataclass(frozen=True)
class Group:
    """The rows of one setting; `samplers` are their places in the study."""

    title: str
    heading: str  # the same for a reader of the page: the world in words
    detail: str
    rows: list[Row]
    samplers: list[int]

    @property
    def stem(self) -> str:
        """A file name."""
        return file_stem("diagnosis", self.title)

    @property
    def caption(self) -> str:
        """What its table holds, in a line."""
        return f"nats per sequence {INTERVAL}, {self.title}"

    @property
    def quality(self) -> Metric | None:
        """What the rows say of the sampler's quality, by replay."""
        metrics = (METRICS.describe(key) for key in METRICS)
        return next((m for m in metrics if m.role == QUALITY and m.key in self.rows[0]), None)

    @property
    def command(self) -> str:
        """How to measure these rows again."""
        row = self.rows[0]
        flags = {"denoiser": row.get("model"), "task": row.get("task")}
        if row.get("model") == "oracle":  # a trained model brings its world
            flags["world"] = row.get("world")
        if "(" in str(row.get("mode")):
            flags |= {"draw": row.get("draw"), "ties": row.get("ties")}
        else:
            flags["preset"] = row.get("mode")
        flags |= {"count": row.get("n"), "orders": row.get("orders"), "seed": row.get("seed")}
        flags["samplers"] = ";".join(r["sampler"] for r in self.rows)
        words = [
            f"--{key} {quoted(str(value))}" for key, value in flags.items() if value is not None
        ]
        return " ".join(["maskwalk diagnose", *words, "--out DIR"])

    @property
    def split(self) -> bool:
        """Whether any loss is known in its two parts."""
        return any(finite(row.get(PARTS[0])) is not None for row in self.rows)


def specs(rows: Sequence[Row]) -> list[str]:
    """The samplers of some rows."""
    return list(dict.fromkeys(row["sampler"] for row in rows))


def groups(study: Study, rows: Sequence[Row]) -> list[Group]:
    """The rows by setting, in order of appearance, samplers in the study's order."""
    place = {sampler.spec: i for i, sampler in enumerate(study.samplers)}
    members: dict[str, dict[int, Row]] = {}
    about: dict[str, Row] = {}
    for row in rows:
        setting = {name: row.get(name) for name in (*SETTING, *RUN)}
        key = json.dumps(list(setting.values()))
        about.setdefault(key, setting)
        members.setdefault(key, {})[place[row["sampler"]]] = row
    settings = list(about.values())
    titles = labels.tell_apart([_title(one) for one in settings], settings)
    headings = labels.tell_apart([_heading(one) for one in settings], settings)
    out = []
    for title, heading, (key, mine) in zip(titles, headings, members.items()):
        order = sorted(mine)
        known = {name: value for name, value in about[key].items() if value is not None}
        detail = " · ".join(f"{labels.spoken(name)} {value}" for name, value in known.items())
        out.append(Group(title, heading, detail, [mine[s] for s in order], order))
    return out


def _title(setting: Row) -> str:
    model, task = str(setting.get("model") or "oracle"), str(setting.get("task") or "")
    return ", ".join(word for word in (model, labels.task_label(task) if task else "") if word)


def _heading(setting: Row) -> str:
    """Tree of 500 nodes, unconditional · zoo:st_er_p0."""
    model, world = str(setting.get("model") or "oracle"), str(setting.get("world") or "")
    if not world:
        return _title(setting)
    task = str(setting.get("task") or "")
    place = ", ".join([world_words(world), *([labels.task_label(task)] if task else [])])
    return f"{place} · {model}"


def loss(row: Row) -> float:
    """What a sampler loses in all: its KL, else its negative log-likelihood."""
    if row.get("kl_infinite"):
        return float("inf")
    amounts = [finite(row.get(name)) for name in ("kl", "nll")]
    return next((value for value in amounts if value is not None), 0.0)


def lost_in(part: Row) -> float:
    """What a round loses."""
    parts = [finite(part.get(name)) for name in PARTS]
    return sum(p or 0.0 for p in parts) if parts[0] is not None else finite(part.get("nll")) or 0.0


def losses_data(members: Sequence[Group]) -> list[Row]:
    """What the page draws of the groups, as compactly as is readable."""
    return [
        {
            "title": g.title,
            "quality": g.quality.title if g.quality else "",
            "rows": [_row_data(g, row, s) for row, s in zip(g.rows, g.samplers)],
        }
        for g in members
    ]


def _row_data(group: Group, row: Row, sampler: int) -> Row:
    example = row.get("example")
    length = len(example["rounds"]) if example else row.get("length") or 1
    cost = METRICS.cost.key
    return {
        "s": sampler,
        "cost": _short(row[cost]),
        "most": row.get(f"{cost}_max"),
        "upper": row.get("kl_kind") == "upper",
        "infinite": bool(row.get("kl_infinite")),
        "reliable": row.get("reliable"),
        "length": length,
        "half": _short(half_width(finite(row.get("kl_se")))),
        "quality": _short(row.get(group.quality.key)) if group.quality else None,
        **{
            name: _short(row.get(name))
            for name in ("kl", "kl_rest", "nll", *PARTS, "regret", "lost")
        },
        "rounds": [_round_data(part) for part in row["rounds"]],
        "example": _example_data(example) if example else None,
    }


def _round_data(part: Row) -> Row:
    names = (*PARTS, "nll", "revealed", "share", "cost")
    return {"positions": part["positions"], **{name: _short(part.get(name)) for name in names}}


def _example_data(example: Row) -> Row:
    parts = [example.get(name) for name in PARTS]
    cost = None
    if all(isinstance(part, list) for part in parts):
        cost = [_short((finite(a) or 0.0) + (finite(b) or 0.0)) for a, b in zip(*parts)]
    return {"rounds": example["rounds"], "cost": cost}


def _short(value: Any) -> float | None:
    number = finite(value)
    return None if number is None else float(f"{number:.4g}")


def sheet(group: Group, study: Study) -> list[list[str]]:
    """The losses as a table of text: a head, one row per sampler; –: not known."""
    quality = group.quality
    head = ["sampler", study.cost.title, *([quality.title] if quality else [])]
    lines = [[*head, "KL", *PARTS, "worst round", "regret"]]
    for row, sampler in zip(group.rows, group.samplers):
        infinite = bool(row.get("kl_infinite"))
        unsure = "~" if row.get("reliable") is False else ""
        worst, bound = row.get("worst_round"), "≤ " if row.get("kl_kind") == "upper" else ""
        line = [study.label(sampler), f"{row[study.cost.key]:.4g}"]
        line += [_quality(row, quality, unsure)] if quality else []
        line += ["∞" if infinite else _number(row, "kl", bound), _number(row, PARTS[0])]
        line += ["∞" if infinite and row.get(PARTS[1]) is None else _number(row, PARTS[1])]
        line += [NONE if worst is None else str(worst + 1), _number(row, "regret")]
        lines.append(line)
    return lines


def _quality(row: Row, metric: Metric, before: str) -> str:
    """The quality by replay; a share of 0 or 1 has an interval, too."""
    settled = settled_row(row, metric)
    return _number({**row, f"{metric.key}_se": settled}, metric.key, before, metric.digits)


def settled_row(row: Row, metric: Metric) -> float | None:
    """The standard error of a row's quality, to print."""
    value, se = finite(row.get(metric.key)), finite(row.get(f"{metric.key}_se"))
    n = finite(row.get("n")) or 1.0
    return None if value is None else settled_se(value, se, n, metric.share)


def _number(row: Row, name: str, before: str = "", digits: int = 2) -> str:
    value, half = finite(row.get(name)), half_width(finite(row.get(f"{name}_se")))
    if value is None:
        return NONE
    error = "" if half is None else plus_minus(half, digits)
    return f"{before}{value:.{digits}f}{error}".replace("-0.00", "0.00")


def losses_files(members: Sequence[Group], study: Study, suffix: str) -> dict[str, str]:
    """The losses as files: CSV with the numbers as they are, Markdown and LaTeX to be read."""
    out = {}
    for group in members:
        if suffix == "csv":
            rows = [{k: v for k, v in row.items() if k not in UNREAD} for row in group.rows]
            out[f"{group.stem}.csv"] = as_csv(rows)
        elif suffix == "md":
            out[f"{group.stem}.md"] = f"**{group.caption}**\n\n" + as_markdown(sheet(group, study))
        else:
            out[f"{group.stem}.tex"] = f"% {group.caption}\n" + as_latex(sheet(group, study))
    return out
