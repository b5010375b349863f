"""Of which kind a record is, and how far a shaped one is from the law.

A record says its kind; for older ones it follows from the sampler, the draw and the calls. A shaped
result is measured against one-at-a-time decoding of the same denoiser in the same world and task:
the difference of a metric that compares sequences with the law (`role=LAW`: transition TV, pair TV,
bridge TV), at the same number of sequences, with both errors. Nothing is said where no such pair of
records is at hand.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from maskwalk.bench.records import HELD_OUT, Record
from maskwalk.decoding.draw import DRAWS
from maskwalk.decoding.guard import believed_kind
from maskwalk.decoding.kinds import EXACT, KINDS, SHAPED, result_kind
from maskwalk.decoding.policy import SAMPLERS, chooses_first
from maskwalk.errors import MaskwalkError
from maskwalk.specs import parse
from maskwalk.stats import Estimate, combined, half_width
from maskwalk.worlds.metrics import LAW, METRICS

REFERENCE = "left_to_right"
Key = tuple[str, ...]


def kind_of(record: Record) -> str:
    """exact, factorised or shaped; a sampler that nobody knows here counts as shaped."""
    known = record.get("kind")
    if known in KINDS:
        return str(known)
    if record["sampler"] == HELD_OUT:  # nobody decoded it
        return EXACT
    kind, exact_draws, plain = _built(
        record["sampler"], record.get("draw", ""), record.get("mode", "")
    )
    return result_kind(kind, exact_draws, plain and _one_at_a_time(record))


@lru_cache(maxsize=4096)
def _built(sampler: str, draw: str, mode: str) -> tuple[str, bool, bool]:
    """A sampler's kind, whether its draws are exact, and whether it asks once a round."""
    try:
        exact_draws = DRAWS.build(draw).exact if draw else mode == "exact"
        rule = SAMPLERS.build(sampler)
        return believed_kind(rule), exact_draws, chooses_first(rule)
    except MaskwalkError:
        return SHAPED, False, False


def _one_at_a_time(record: Record) -> bool:
    """Whether every call of the denoiser revealed one token: of a policy, one call per round."""
    per_call = record["metrics"].get("tokens_per_call")
    if per_call:
        return bool(per_call["value"] == 1.0)
    calls = record["metrics"].get(METRICS.cost.key)
    length = parse(record["world"]).kwargs.get("length")
    return calls is not None and calls["value"] == length


class Departures:
    """How far shaped results are from the law, among these records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._panels: dict[Key, list[Record]] = {}
        self._references: dict[tuple[Any, ...], dict[str, Any] | None] = {}
        self._settings: dict[Key, list[Record]] = {}
        for record in records:
            self._panels.setdefault(_panel(record), []).append(record)
            self._settings.setdefault((*_panel(record), *_setting(record)), []).append(record)

    def of(self, record: Record) -> Estimate | None:
        """The excess of its distance to the law over one-at-a-time decoding, with its error.

        Of the same world, task and denoiser; the same setting measured with more samples of each
        prompt counts for it. None where the records do not say.
        """
        own = self._settings.get((*_panel(record), *_setting(record)), [])
        for one in (record, *own):
            for key, measured in _distances(one).items():
                reference = self._reference(one, key)
                if reference is not None:
                    return _difference(measured, reference)
        return None

    def _reference(self, record: Record, key: str) -> dict[str, Any] | None:
        where = (*_panel(record), record["count"], record["per_prompt"], key)
        if where not in self._references:
            panel = self._panels.get(_panel(record), [])
            self._references[where] = _reference(panel, record, key)
        return self._references[where]


def _panel(record: Record) -> Key:
    return record["world"], record["task"], record["denoiser"]


def _setting(record: Record) -> Key:
    return record["sampler"], record.get("draw", ""), record.get("ties", "")


def _distances(record: Record) -> dict[str, dict[str, Any]]:
    """The record's distances to the law, by metric."""
    return {
        key: value
        for key, value in record["metrics"].items()
        if value and value.get("value") is not None and _compares_laws(key)
    }


@lru_cache(maxsize=256)
def _compares_laws(key: str) -> bool:
    return METRICS.describe(key).role == LAW


def _reference(panel: Iterable[Record], like: Record, key: str) -> dict[str, Any] | None:
    """The same distance of one-at-a-time decoding, left to right if that is there."""
    size = (like["count"], like["per_prompt"])
    others = [
        r
        for r in panel
        if kind_of(r) == EXACT and (r["count"], r["per_prompt"]) == size and key in _distances(r)
    ]
    # Chosen by name: the luckiest of several would make every other look worse than it is.
    others.sort(key=lambda r: not r["sampler"].startswith(REFERENCE))
    return _distances(others[0])[key] if others else None


def _difference(one: dict[str, Any], other: dict[str, Any]) -> Estimate:
    se = combined(one.get("se"), other.get("se"))
    return Estimate(one["value"] - other["value"], se, one.get("n", 0))


def departure_words(departure: Estimate | None) -> str:
    """The same in words: off the law by …, within … of it, or not measured."""
    if departure is None:
        return "not measured against the law"
    half = half_width(departure.se) or 0.0
    if departure.value > half:
        return f"off the law by {departure.value:.3f} ± {half:.3f}"
    above = departure.value + half
    return f"within {above:.3f} of the law" if above > 0 else "as near to the law as one at a time"
