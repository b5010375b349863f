"""Tables as files: CSV with numbers and standard errors, Markdown and LaTeX to be read."""

import csv
import io
from typing import Any

from maskwalk.bench.records import numbers
from maskwalk.decoding.draw import decoding_in
from maskwalk.decoding.kinds import SHAPED
from maskwalk.report.estimates import Estimate, published
from maskwalk.report.study import Study
from maskwalk.report.tables import FLOOR, Cell, Table

SETTINGS = ("world", "denoiser", "mode", "draw", "ties", "count", "per_prompt", "seed", "seconds")
Line = dict[str, Any]


def to_csv(table: Table, study: Study) -> str:
    """Wide CSV: for every column the value and its standard error, and the paper's if it has any.

    Columns that are metrics are named by their keys and say n, and whether a number is a bound.
    """
    rows: list[Line] = []
    for row in table.rows:
        line: Line = {"sampler": row.label, "kind": "/".join(row.kinds)}
        if table.metric is None:
            line["spec"] = "" if row.sampler is None else study.samplers[row.sampler].spec
            cost = study.estimate(table.mode, table.columns[0].panel, row.sampler, study.cost)
            line |= _fields(study.cost.key, cost)
        else:
            line[study.cost.key] = row.cost_span
        rows.append(line | _numbers(table, row.cells))
    if table.floor:
        rows.append({"sampler": "floor"} | _numbers(table, table.floor))
    return as_csv(rows)


def _numbers(table: Table, cells: list[Cell]) -> Line:
    line: Line = {}
    for c, (column, cell) in enumerate(zip(table.columns, cells)):
        if table.metric is None:
            line |= _fields(column.metric.key, cell.estimate)
            if any(_says_bound(row.cells[c]) for row in table.rows):
                line[f"{column.metric.key}_bound"] = cell.estimate.bound if cell.estimate else None
        else:
            estimate = cell.estimate
            line[column.title] = estimate.value if estimate else None
            line[f"{column.title} (se)"] = estimate.se if estimate else None
        if table.published[c]:
            line[f"{column.title} (paper)"] = cell.paper.value if cell.paper else None
            line[f"{column.title} (paper sd)"] = cell.paper.sd if cell.paper else None
    return line


def _fields(key: str, estimate: Estimate | None) -> Line:
    """A number, its standard error and n, by column."""
    numbers = (estimate.value, estimate.se, estimate.n) if estimate else (None, None, None)
    return dict(zip((key, f"{key}_se", f"{key}_n"), numbers))


def _says_bound(cell: Cell) -> bool:
    return cell.estimate is not None and "bound" in cell.estimate.more


def long_csv(study: Study) -> str:
    """Everything but traces and texts, one line per record: specs, and every number as it is."""
    rows: list[Line] = []
    every = [((m, p, None), r) for (m, p), r in study.references.items()]
    for (mode, panel, sampler), record in [*every, *study.cells.items()]:
        row: Line = {
            "mode_label": study.modes[mode],
            "title": study.panels[panel].title,
            "task": study.panels[panel].task,
            "label": study.label(sampler),
            "sampler": record["sampler"],
            **_law(study, (mode, panel, sampler)),
        }
        row |= {key: record.get(key) for key in SETTINGS} | {"decoding": decoding_in(record)}
        paper = published(record, study.quality)
        row |= {"published": paper.value, "published_sd": paper.sd} if paper else {}
        rows.append(row | numbers(record))
    return as_csv(rows)


def _law(study: Study, place: tuple[int, int, int | None]) -> Line:
    """The kind of a result, and how far a shaped one is from the law where that was measured."""
    mode, panel, sampler = place
    if sampler is None:
        return {"kind": "", "off_law": None, "off_law_se": None}
    kind = study.kinds[mode, panel, sampler]
    off = study.departure(mode, panel, sampler) if kind == SHAPED else None
    return {"kind": kind, "off_law": off and off.value, "off_law_se": off and off.se}


def as_csv(rows: list[Line]) -> str:
    """Rows as CSV; the columns are all their keys, and what a row lacks is empty."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([row.get(key, "") for key in head] for row in rows)
    return text.getvalue()


def _sheet(table: Table, study: Study) -> list[list[str]]:
    heads = [f"{title} ({n})" if n else title for title, n in table.heads]
    lines = [["sampler", study.cost.title, *heads]]
    lines += [[r.marked, r.cost, *(c.text + c.beside for c in r.cells)] for r in table.rows]
    if table.floor:
        lines.append([FLOOR, "", *(c.text for c in table.floor)])
    return lines


def to_markdown(table: Table, study: Study) -> str:
    """A Markdown table: bold is what is not clearly worse than the best."""
    wrap = {"best": "**{}**", "": "{}"}
    head, *body = _sheet(table, study)
    for line, row in zip(body, table.rows):
        line[2:] = [wrap[c.mark].format(c.text) + c.beside for c in row.cells]
    return f"**{table.caption}**\n\n" + as_markdown([head, *body])


def as_markdown(lines: list[list[str]]) -> str:
    """Lines of text as a Markdown table; the first is the head, the first column is words."""
    head, *body = lines
    ruled = [head, ["---", *("---:" for _ in head[1:])], *body]
    return "".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |\n" for row in ruled)


def to_latex(table: Table, study: Study) -> str:
    """A LaTeX tabular for booktabs: bold is what is not clearly worse than the best."""
    wrap = {"best": r"\textbf{{{}}}", "": "{}"}
    head, *body = [[tex(x) for x in line] for line in _sheet(table, study)]
    for line, row in zip(body, table.rows):
        line[2:] = [wrap[c.mark].format(tex(c.text)) + c.beside for c in row.cells]
    last = 1 if table.floor else 0
    return rf"% {table.caption}" + "\n" + tabular([head, *body], last)


def as_latex(lines: list[list[str]]) -> str:
    """Lines of text as a LaTeX tabular; the first is the head, the first column is words."""
    return tabular([[tex(x) for x in line] for line in lines])


def tabular(lines: list[list[str]], apart: int = 0) -> str:
    """Lines of LaTeX as a tabular; the `apart` last ones stand below a rule."""
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    if apart:
        body.insert(len(body) - apart, r"\midrule")
    start = rf"\begin{{tabular}}{{l{'r' * (len(lines[0]) - 1)}}}"
    rows = [start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(rows)


def tex(text: str) -> str:
    """Text as LaTeX: what is special to it is escaped."""
    special = {
        "\\": r"\textbackslash{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "–": "--",
        "·": r"$\cdot$",
        "≤": r"$\leq$",
        "∞": r"$\infty$",
    }
    special |= {c: "\\" + c for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"}
    return "".join(special.get(c, c) for c in text)
