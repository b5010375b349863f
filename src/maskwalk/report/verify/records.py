"""A number of the committed records: which record, which metric, what of it."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from maskwalk.bench.labels import read
from maskwalk.bench.records import SETTINGS, Record
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.report.comparison import differences
from maskwalk.report.estimates import Estimate, estimate, finite, read_estimate
from maskwalk.report.verify.printed import Truth
from maskwalk.specs import Spec
from maskwalk.stats import NORMAL
from maskwalk.worlds.metrics import METRICS, Metric

QUALITY = "coherence"  # the metric if none is named
ASKED = ("metric", "field", "of", "at", "against", "against_mode")
CHOSEN = (*SETTINGS, "column")
OF: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}


def record_truth(records: list[Record], asked: Mapping[str, str]) -> Truth:
    """What the records say to name=value pairs."""
    some = chosen(records, {k: v for k, v in asked.items() if k not in ASKED})
    kind = asked.get("of")
    if kind == "count":
        return Truth(float(len(some) if "field" not in asked else _different(some, asked["field"])))
    if kind is not None:
        metric = asked.get("metric", QUALITY).partition(".")[0]
        return Truth(_extreme(kind, [_number(record, asked) for record in _having(some, metric)]))
    if "against" in asked:
        return _difference(records, _one(some, asked), asked)
    return _number(_one(some, asked), asked)


def chosen(records: list[Record], settings: Mapping[str, str]) -> list[Record]:
    """The records with these settings; at least one."""
    some = records
    for name, wanted in settings.items():
        if name not in CHOSEN:
            raise unknown("setting of a record", name, (*CHOSEN, *ASKED))
        before, same = some, [r for r in some if str(r.get(name)) == wanted]
        some = same or [r for r in some if fits(name, str(r.get(name)), wanted)]
        if not some:
            raise unknown(
                f"{name} among these records:", wanted, {str(r.get(name)) for r in before}
            )
    return some


@cache
def _spec(text: str) -> Spec:
    return read(text)


def fits(name: str, text: str, wanted: str) -> bool:
    """Whether a record's setting is the wanted one; parameters left out may be anything."""
    if text == wanted or (name == "denoiser" and wanted == "model" and text != "oracle"):
        return True
    own, spec = _spec(text), _spec(wanted)
    same = own.name == spec.name and not spec.args
    return same and all(str(own.kwargs.get(k, own)) == str(v) for k, v in spec.kwargs.items())


def _one(some: list[Record], asked: Mapping[str, str]) -> Record:
    """The only record that has the metric, or the first of several that say the same."""
    metric = asked.get("metric", QUALITY).partition(".")[0]
    some = _having(some, metric)
    first = some[0]
    if any(r["metrics"].get(metric) != first["metrics"].get(metric) for r in some):
        differ = [k for k in CHOSEN if k != "key" and len({str(r.get(k)) for r in some}) > 1]
        raise MaskwalkError(
            f"{_told(asked)} names {len(some)} records; say also which {' or '.join(differ[:3])}."
        )
    return first


def _having(some: list[Record], metric: str) -> list[Record]:
    """Those with the metric: a setting's distance to the law stands in a record of its own."""
    return [record for record in some if record["metrics"].get(metric)] or some


def _told(asked: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in asked.items())


def _number(record: Record, asked: Mapping[str, str]) -> Truth:
    key, _, field = asked.get("metric", QUALITY).partition(".")
    metric = METRICS.describe(key, record.get("described"))
    number = _estimate(record, metric, asked)
    if number is None:
        known = [key for key, numbers in record["metrics"].items() if numbers]
        raise unknown("metric of this record", metric.key, known)
    return _field(number, field or asked.get("field", "value"))


def _estimate(record: Record, metric: Metric, asked: Mapping[str, str]) -> Estimate | None:
    """A metric's estimate; with `at`, that of one part of it."""
    if "at" not in asked:
        return estimate(record, metric)
    numbers: Any = record["metrics"].get(metric.key) or {}
    parts = {str(part["at"]): part for part in numbers.get("by", ())}
    if asked["at"] not in parts:
        raise unknown(f"part of {metric.key}", asked["at"], parts)
    return read_estimate(parts[asked["at"]], metric)


def _field(number: Estimate, field: str) -> Truth:
    """Its value, or another number that the record says of it."""
    if field == "value":
        return Truth(number.value, number.half, number.bound)
    plain = {"half": number.half, "se": number.se, "n": number.n}
    known = {k: finite(v) for k, v in {**number.more, **plain}.items()}
    value = known.get(field)
    if value is None:
        raise unknown("field", field, ["value", *(k for k, v in known.items() if v is not None)])
    return Truth(value)


def _extreme(kind: str, numbers: list[Truth]) -> float:
    if kind not in OF:
        raise unknown("way to sum records up", kind, ("count", *OF))
    return OF[kind]([number.value for number in numbers])


def _different(some: list[Record], field: str) -> int:
    """How many values a setting has; `sampler.name`: how many rules."""
    key, _, part = field.partition(".")
    texts = {str(record.get(key)) for record in some}
    return len({read(text).name for text in texts} if part == "name" else texts)


def _difference(records: list[Record], one: Record, asked: Mapping[str, str]) -> Truth:
    """This record minus that of another sampler or draw, as `maskwalk text compare` has it."""
    settings = {k: v for k, v in asked.items() if k not in ASKED}
    settings |= {"sampler": asked["against"]} if asked["against"] else {}
    settings |= {"mode": asked["against_mode"]} if "against_mode" in asked else {}
    other = _one(chosen(records, settings), asked)
    metric = asked.get("metric", QUALITY)
    for row in differences(one, other):
        if row.metric == metric and row.half is not None:
            value = row.value * NORMAL / row.half if asked.get("field") == "errors" else row.value
            return Truth(value, row.half)
    raise MaskwalkError(f"{_told(asked)}: one of the two records has no {metric}.")
