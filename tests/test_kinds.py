"""Every result is exact, factorised or shaped, and a shaped one is measured against the law."""

from dataclasses import dataclass
from typing import Any

import pytest

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.kinds import Departures, departure_words, kind_of
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.kinds import FACTORISED
from maskwalk.decoding.policy import Sampler
from maskwalk.samplers import SAMPLERS, Bisection
from maskwalk.stats import Estimate

PLACE = {"graph": "st_er(nodes=40, p=0.05)", "walk": "lazy(stay=0.2)", "length": 8}
KINDS = {
    "left_to_right": "exact",
    "entropy(block=1)": "exact",
    "first_hitting": "exact",
    "speculative(k=3)": "exact",
    "random(block=2)": "factorised",
    "bisection": "factorised",
    "blocks(4, entropy(block=2))": "factorised",
    "ancestral(8)": "factorised",
    "ancestral(8, finish='argmax')": "shaped",
    "threshold_drawn(tau=0.5)": "shaped",
    "low_confidence": "shaped",
    "remdm": "shaped",
    "p2": "shaped",
    "corrected(random(block=4))": "shaped",
    "lossless(entropy(block=1), 3)": "exact",
    "lossless(entropy(block=2), 3)": "shaped",
    "info_gain(candidates=3)": "shaped",
    "credit(left_to_right)": "shaped",
    "core": "shaped",
    "remdm('fb')": "shaped",
    "ancestral(64)": "factorised",
}


def record_of(sampler: str, **more: Any) -> Any:
    cell = Cell.checked(**{"task": "unconditional", "count": 64, **PLACE, **more}, sampler=sampler)
    return run_cell(cell, trace=False)[0]


@pytest.mark.parametrize("sampler", KINDS)
def test_a_record_says_its_kind_and_an_older_one_implies_it(sampler: str) -> None:
    record = record_of(sampler)
    assert record["kind"] == KINDS[sampler]
    older = {key: value for key, value in record.items() if key != "kind"}
    assert kind_of(older) == KINDS[sampler]


@pytest.mark.parametrize(
    "draw", ["draw(top_p=0.9)", "draw(temperature=0.5)", "draw(precision='bfloat16')"]
)
def test_draws_that_are_not_exact_make_any_result_a_shaped_one(draw: str) -> None:
    assert record_of("left_to_right", draw=draw)["kind"] == "shaped"
    assert Draw().exact and not Draw(floor=0.1).exact


class OwnStep(Bisection):
    """A policy that draws in a step of its own."""

    def step(self, canvas: Any, denoise: Any, rng: Any) -> Any:
        return super().step(canvas, denoise, rng)


def test_a_policy_with_a_step_of_its_own_is_shaped() -> None:
    assert Bisection().law_kind == "factorised" and OwnStep().law_kind == "shaped"


@dataclass(frozen=True)
class Asks(Sampler):
    """Says it is factorised; asks `asked` times a round and reveals `shown` from the left."""

    __module__ = "maskwalk.samplers.random"  # where the test puts it, as one of the package's own

    asked: int = 1
    shown: int = 1

    @property
    def law_kind(self) -> str:
        return FACTORISED

    def step(self, canvas: Any, denoise: Any, rng: Any) -> Any:
        chosen = canvas.masked & (canvas.masked.cumsum(1) <= self.shown)
        for _ in range(self.asked):
            log_probs = denoise(canvas.tokens, chosen)
        return canvas.reveal(chosen, rng.draw(log_probs, chosen))


@pytest.mark.parametrize(
    ("asked", "shown", "kind"),
    [(1, 1, "exact"), (2, 1, "factorised"), (2, 2, "factorised"), (1, 2, "factorised")],
)
def test_a_rule_that_asks_several_questions_is_not_exact_by_its_calls(
    asked: int, shown: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls and two tokens per round are one token per call, and not one at a time."""
    monkeypatch.setattr("maskwalk.samplers.random.Asks", Asks, raising=False)
    SAMPLERS.register("asks")(Asks)
    try:
        assert record_of(f"asks({asked}, {shown})")["kind"] == kind
    finally:
        del SAMPLERS._makers["asks"]


def test_a_sampler_nobody_knows_counts_as_shaped() -> None:
    record = record_of("bisection")
    del record["kind"]
    assert kind_of(record | {"sampler": "mine(bound=3)"}) == "shaped"


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_every_sampler_says_a_kind(name: str) -> None:
    for setting in getattr(SAMPLERS[name], "sweep", ({},)):
        assert SAMPLERS[name](**setting).law_kind in ("exact", "factorised", "shaped")


def test_departures_from_the_law() -> None:
    """A truncation is off the law; speculation is not; the cells must be of one panel."""
    samplers = ("left_to_right", "threshold_drawn(tau=0.5)", "speculative(k=3)")
    records = [
        record_of(sampler, count=512, metrics=("rank_tv", "tokens_per_call"))
        for sampler in samplers
    ]
    far, near = (Departures(records).of(record) for record in records[1:])
    assert far.value > 4 * far.se and departure_words(far).startswith("off the law by 0.")
    assert abs(near.value) < 4 * near.se
    assert Departures(records[1:2]).of(records[1]) is None
    other = record_of("left_to_right", count=512, metrics=("rank_tv",), graph_seed=1)
    assert Departures([records[1], other]).of(records[1]) is None


def test_a_prompted_result_is_measured_with_several_samples_of_each_prompt() -> None:
    plain = record_of("threshold_drawn(tau=0.5)", task="endpoints")
    several = {"task": "endpoints", "count": 64, "per_prompt": 8, "metrics": ("rank_tv",)}
    records = [
        plain,
        *(record_of(s, **several) for s in ("left_to_right", "threshold_drawn(tau=0.5)")),
    ]
    assert Departures(records[:1]).of(plain) is None
    departure = Departures(records).of(plain)
    assert departure.value > 4 * departure.se


def test_words() -> None:
    assert departure_words(None) == "not measured against the law"
    assert departure_words(Estimate(0.2, 0.01, 1)) == "off the law by 0.200 ± 0.020"
    assert departure_words(Estimate(-0.01, 0.02, 1)) == "within 0.029 of the law"
    assert departure_words(Estimate(-0.1, 0.02, 1)) == "as near to the law as one at a time"
