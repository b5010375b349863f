"""What a record and a row of a diagnosis must hold, field by field (docs/experiments.md).

Fields that are not named here are allowed: nobody reads them. `checked_record` and `checked_row`
raise `reading.Wrong`, which knows the field; the reader of the file adds the file and the line.
"""

from functools import lru_cache
from typing import Any

from maskwalk.decoding.kinds import KINDS
from maskwalk.errors import MaskwalkError
from maskwalk.reading import (
    Shape,
    Wrong,
    anything,
    by_type,
    flag,
    listed,
    maybe,
    number,
    one_of,
    row,
    table,
    text,
    whole,
)
from maskwalk.specs import parse
from maskwalk.worlds.metrics import METRICS

ROUNDS = 1_000_000  # of one sequence
NAME = text(least=1, most=10_000)
COUNT = whole(0, 2**53)
ERROR = maybe(number(0))
Numbers = dict[str, Any]


@lru_cache(maxsize=4096)
def _is_spec(words: str) -> bool:
    try:
        parse(words)
    except MaskwalkError:
        return False
    return True


def spec(value: Any) -> None:
    """A spec as records spell it, such as bisection(order=1)."""
    NAME(value)
    if not _is_spec(value):
        raise Wrong("a spec such as name(key=value)", value)


NUMBERS = row("numbers", int, float, type(None))
MORE = by_type(  # what else a metric says of its number: a bound, a floor, the spread of groups
    "a number, true, false, null, a text or a list of numbers",
    {
        int: number(),
        float: number(),
        bool: anything,
        str: text(most=10_000),
        list: NUMBERS,
        type(None): anything,
    },
)
SOURCES = maybe(table({}, others=text(), what="a table of files and their hashes"))
LOOSE = by_type(  # what a row says besides: nobody computes with it
    "a number, true, false, null, a text, a list of numbers or a table",
    {**dict.fromkeys((int, float), number()), list: NUMBERS}
    | dict.fromkeys((bool, str, dict, type(None)), anything),
)
LOSSES = ("kl", "kl_rest", "nll", "dependence", "denoiser", "regret", "lost")
POINT = table(
    {"at": number(), "value": maybe(number()), "se": ERROR, "n": COUNT}, needs=("at", "value")
)
ESTIMATE = table(
    {
        "value": maybe(number()),
        "se": ERROR,
        "n": COUNT,
        "by": listed("points", POINT, 100_000),
        "nats": by_type(
            "a number or a list of numbers", {int: number(), float: number(), list: NUMBERS}
        ),
        "bytes": row("whole numbers", int, low=0, high=2**53),
        "bound": maybe(flag),
        "floor_se": ERROR,
        "group_sd": ERROR,
    },
    others=MORE,
    what="a table with value, se and n, or null",
)
TRACE = table(
    {
        "tokens": row("whole numbers", int, low=0, high=2**31),
        "rounds": row("whole numbers", int, low=-1, high=ROUNDS),
        "entropy": row("numbers or null", int, float, type(None), low=-1e-6),
        "prob": maybe(row("numbers or null", int, float, type(None), low=0, high=1 + 1e-6)),
        "valid": maybe(row("true and false", bool)),
        "pictures": row("texts", str),
        "picture_rounds": row("whole numbers", int, low=-1, high=ROUNDS),
    },
    needs=("tokens", "rounds", "entropy"),
    what="a table with tokens, rounds and entropy, or null",
)
MARK = by_type(
    "a number, or a table with at and label",
    {int: number(), float: number(), dict: table({"at": number(), "label": text()}, ("at",))},
)
AXIS = table(
    {"name": NAME, "value": maybe(number()), "marks": maybe(listed("marks", MARK, 1000))},
    needs=("name",),
)
DESCRIBED = table(
    {
        "key": text(),
        "title": text(),
        "meaning": text(),
        "heading": text(),
        "role": text(),
        "better": whole(-1, 1),
        "digits": whole(0, 20),
        "limits": listed("two limits", maybe(number()), 2),
        "drawn": flag,
    },
)
COMMON: dict[str, Shape] = {
    "schema": whole(1, 2),
    "key": NAME,
    "version": text(),
    "commit": maybe(text()),
    "experiment": maybe(text()),
    "cell": COUNT,
    "title": maybe(text()),
    "sampler": NAME,
    "ties": text(),
    "count": COUNT,
    "per_prompt": whole(1, 2**53),
    "seed": whole(0),
    "metrics": anything,  # by their names, below
    "described": maybe(table({}, others=DESCRIBED)),
    "seconds": maybe(number(0)),
    "trace": maybe(TRACE),
    "notes": row("texts", str),
    "impossible": COUNT,
    "axis": maybe(AXIS),
    "column": maybe(text()),
    "published": maybe(table({"value": number()}, others=maybe(number()))),
    "texts": maybe(row("texts", str)),
    "judge": text(),
    "judge_weights": maybe(text()),
    "sources": SOURCES,
    "kind": maybe(text()),
}
RECORD = table(
    COMMON
    | {
        "world": spec,
        "task": spec,
        "denoiser": text(),
        "mode": NAME,
        "draw": text(),
        "kind": maybe(one_of(*KINDS)),
    },
    needs=("key", "metrics", "world", "task", "sampler", "denoiser", "mode"),
)
OLD = table(  # schema 1
    COMMON
    | {
        "preset": NAME,
        "draw": maybe(
            table(
                {},
                others=by_type("a number or a text", {int: number(), float: number(), str: text()}),
            )
        ),
        "graph": text(),
        "walk": text(),
        "length": maybe(whole(1)),
        "graph_seed": maybe(whole(0)),
        "task": spec,
        "denoiser": text(),
        "model": text(),
    },
    needs=("key", "metrics", "sampler", "preset"),
)
OLD_WALK = table({}, needs=("graph", "walk", "length", "task", "denoiser"))


def checked_record(record: Any) -> None:
    """Raises `Wrong` for what is no record of schema 1 or 2."""
    old = type(record) is dict and record.get("schema", 1) == 1
    (OLD if old else RECORD)(record)
    if old and record.get("kind") != "text":
        OLD_WALK(record)
    metrics = record["metrics"]
    if type(metrics) is not dict:
        raise Wrong("a table of metrics by their names", metrics).inside("metrics")
    for name, numbers in metrics.items():
        if numbers is not None:
            try:
                _estimate(name, numbers)
            except Wrong as wrong:
                raise wrong.inside(f"metrics.{name[:80]}") from None
    if record.get("trace") is not None:
        _same_length(record["trace"], "trace", ("tokens", "rounds", "entropy", "prob", "valid"))
        _same_length(record["trace"], "trace", ("pictures", "picture_rounds"))


def _estimate(name: str, numbers: Any) -> None:
    ESTIMATE(numbers)
    if "by" not in numbers:
        for key in ("value", "se", "n"):
            if key not in numbers:
                raise Wrong("a number or null", lacking=True).inside(key)
    low, high = _limits(name)
    value = numbers.get("value")
    if value is not None and not low <= value <= high:
        raise Wrong(f"within {low:.3g} and {high:.3g}", value).inside("value")
    if value is not None and not numbers.get("n", 1):
        raise Wrong("at least 1 where there is a value", 0).inside("n")
    if type(numbers.get("nats")) is list:
        if "bytes" not in numbers:
            raise Wrong("the bytes of every passage, beside nats", lacking=True).inside("bytes")
        _same_length(numbers, "", ("nats", "bytes"))


@lru_cache(maxsize=4096)
def _limits(metric: str) -> tuple[float, float]:
    """What a metric's own description allows; anything, of one that is not known here."""
    NAME(metric)
    if "(" in metric and not _is_spec(metric):
        raise Wrong("named by a name or a spec such as tvk(k=2)", metric)
    if METRICS.name_of(metric) not in METRICS:
        return float("-inf"), float("inf")
    low, high = METRICS.describe(metric).limits
    return (
        float("-inf") if low is None else low - 1e-6,
        float("inf") if high is None else high + 1e-6,
    )


def _same_length(given: Numbers, where: str, names: tuple[str, ...]) -> None:
    """Lists that tell of the same positions are of one length."""
    lengths = {name: len(given[name]) for name in names if given.get(name) is not None}
    if len(set(lengths.values())) > 1:
        words = " and ".join(f"{count} {name}" for name, count in lengths.items())
        raise Wrong(f"lists of one length, where there are {words}", given[names[0]]).inside(
            f"{where}.{names[0]}".lstrip(".")
        )


PART = table(
    {"positions": row("whole numbers", int, low=0, high=ROUNDS)},
    needs=("positions",),
    others=MORE,
    what="a table with positions",
)
ROW = table(
    {
        "key": text(),
        "sampler": NAME,
        "label": text(),
        "sources": SOURCES,
        **{name: maybe(number()) for name in LOSSES},
        **{f"{name}_se": ERROR for name in LOSSES},
        METRICS.cost.key: number(0, 1e9),
        f"{METRICS.cost.key}_max": number(0, 1e9),
        "rounds": listed("rounds", PART, ROUNDS),
        "worst_round": maybe(whole(0, ROUNDS)),
        "reliable": maybe(flag),
        "kl_infinite": maybe(flag),
        "kl_kind": maybe(text()),
        **{name: maybe(text()) for name in ("world", "task", "draw", "ties", "mode", "model")},
        **{name: maybe(text()) for name in ("graph", "walk", "preset")},
        **{name: maybe(whole(0)) for name in ("n", "orders", "seed", "length", "graph_seed")},
        "example": maybe(
            table(
                {
                    "tokens": row("whole numbers", int, low=0, high=2**31),
                    "rounds": row("whole numbers", int, low=-1, high=ROUNDS),
                    "dependence": maybe(NUMBERS),
                    "denoiser": maybe(NUMBERS),
                },
                needs=("rounds",),
            )
        ),
    },
    needs=("sampler", METRICS.cost.key, "rounds"),
    others=LOOSE,
)


def checked_row(row: Any) -> None:
    """Raises `Wrong` for what is no row of `maskwalk diagnose`."""
    ROW(row)
    worst = row.get("worst_round")
    if worst is not None and worst >= len(row["rounds"]):
        raise Wrong(f"one of the {len(row['rounds'])} rounds, counted from 0", worst).inside(
            "worst_round"
        )
    if row.get("example") is not None:
        _same_length(row["example"], "example", ("rounds", "tokens", "dependence", "denoiser"))
