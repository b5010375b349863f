"""The numbers the paper prints, as data, and which record each belongs to.

`coherence_tables.json` holds the three coherence tables (24 samplers × 6, 6 and 4 graphs: 384
cells): the mean, and the standard deviation of four group means. A record belongs to a cell by the
`column` its experiment file names, by its task (the table) and by its sampler.
"""

import json
from functools import cache
from pathlib import Path

from maskwalk.bench.records import Record
from maskwalk.specs import parse
from maskwalk.stats import combined, group_spread_se, share_se

TABLES = {
    "unconditional": "unconditional",
    "endpoints": "endpoint_conditional",
    "bottleneck": "bottleneck_conditional",
}  # task -> table
RULES = {"greedy_entropy": "entropy", "greedy_confidence": "confidence", "greedy_margin": "margin"}
# Beside these the paper has one sampler a rule and block size: greedy_entropy_x2, random_x4, …
NAMED = {
    "bisection": "bisection(order=1)",
    "bisection_entropy": "guided_bisection(order=1, score='entropy')",
}


@cache
def tables() -> dict[str, dict[str, dict[str, list[float]]]]:
    """table -> sampler, as the paper calls it -> column -> [mean, standard deviation]."""
    text = (Path(__file__).parent / "coherence_tables.json").read_text("utf-8")
    numbers: dict[str, dict[str, dict[str, list[float]]]] = json.loads(text)
    return numbers


def spec_of(name: str) -> str:
    """The canonical spec of a sampler as the paper's tables call it."""
    if name in NAMED:
        return NAMED[name]
    rule, _, size = name.rpartition("_")
    if size == "exponential":
        block = "'exponential'"
    elif size.startswith("x"):
        block = size[1:]
    else:
        rule, block = name, "1"
    return f"{RULES.get(rule, rule)}(block={block})"


@cache
def _names() -> dict[str, str]:
    return {spec_of(name): name for name in tables()["unconditional"]}


def published_cell(record: Record) -> tuple[str, str, str] | None:
    """(table, sampler, column) of the published cell that belongs to a record, if there is one."""
    table = TABLES.get(parse(record["task"]).name)
    name, column = _names().get(record["sampler"]), record.get("column")
    if table is None or name is None or column not in tables()[table][name]:
        return None
    return table, name, str(column)


def error(value: float, se: float | None, n: int) -> float:
    """A standard error, at least that of as many independent sequences (stats.share_se).

    A spread of .000 among four groups is not an error of zero.
    """
    return max(se or 0.0, share_se(value, n))


def printed(table: str, name: str, column: str) -> dict[str, float]:
    """A published cell: value, spread of four group means (sd), error of their mean (se)."""
    value, sd = tables()[table][name][column]
    n = 512 * (1 if table == "unconditional" else 32)
    return {"value": value, "sd": sd, "se": error(value, group_spread_se(sd), n)}


def attach(records: list[Record]) -> list[Record]:
    """The records, those of a published cell with it under `published`.

    `z` there is the difference in combined standard errors.
    """
    return [_with(record) for record in records]


def _with(record: Record) -> Record:
    where, coherence = published_cell(record), record["metrics"].get("coherence") or {}
    if where is None or coherence.get("value") is None:
        return record
    published = printed(*where)
    ours = error(coherence["value"], coherence["se"], coherence["n"])
    z = (coherence["value"] - published["value"]) / combined(ours, published["se"])
    attached = record.copy()
    attached["published"] = {**published, "z": z}
    return attached
