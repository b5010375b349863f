"""Coherence can be bought with sequences that are not the law's; a verdict must say so."""

from pathlib import Path

import pytest

from maskwalk.bench.verdict import suite
from maskwalk.bench.verdict.outcomes import outcome
from maskwalk.bench.verdict.result import Evaluation
from maskwalk.bench.verdict.run import evaluate
from maskwalk.decoding.policy import Sampler
from maskwalk.errors import UserCodeError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.blocks import Blocks
from tests.mutants import cheats

SPECS = ("random(block=24)", "random(block=4)", "bisection", "left_to_right")
SCENES = (
    suite.Scene("degree 7", "st_er_deg7", "unconditional", False, 128, SPECS, 4),
    suite.Scene("tree", "st_er_p0", "endpoints", False, 48, SPECS, 4),
)
# What each breaks of the contract; the others keep it, and only the law tells them apart.
BROKEN = {
    "Peeks": {"draws_from_the_marginals"},
    "Reaches": {"draws_from_the_marginals", "fits_in_wrappers"},
    "SaysExact": {"exact_as_stated"},
}


@pytest.fixture(scope="module")
def baselines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baselines")


def judged(sampler: Sampler | str, baselines: Path) -> Evaluation:
    return evaluate(sampler, SCENES, anyway=True, out=baselines, workers=0, progress=False)


@pytest.mark.parametrize("name", cheats.__all__)
def test_a_cheat_is_named_as_such(name: str, baselines: Path) -> None:
    found = judged(getattr(cheats, name)(), baselines)
    (broken,) = found.contract.values()
    assert set(broken) == BROKEN.get(name, set())
    positions = [c.position for c in found.comparisons]
    assert "off" in positions and set(positions) <= {"off", "near", "unclear", "void"}
    assert "off the law by" in found.verdict and "beyond" not in found.verdict
    assert "off ." in str(found) and "†" in str(found)


def test_the_copying_cheat_is_as_coherent_as_can_be(baselines: Path) -> None:
    """It would win by coherence: that is why the law is asked."""
    row = judged(cheats.Copies(), baselines).comparisons[0]
    assert row.coherence == 1.0 and row.calls == 1.0 and row.front.low > 0.9
    assert row.position == "off" and row.departure.value > 0.3


@pytest.mark.parametrize("spec", ["threshold_drawn(tau=0.5)", "low_confidence(steps=8)", "p2()"])
def test_hidden_truncations_of_public_rules_are_named(spec: str, baselines: Path) -> None:
    assert "off the law by" in judged(spec, baselines).verdict


@pytest.mark.parametrize(
    "spec", ["speculative(k=2)", "first_hitting()", "ancestral(8)", "bisection()"]
)
def test_honest_rules_are_not_accused(spec: str, baselines: Path) -> None:
    found = judged(spec, baselines)
    assert {c.kind for c in found.comparisons} <= {"exact", "factorised"}
    assert "off" not in {c.position for c in found.comparisons}


@pytest.mark.parametrize(
    "sampler",
    [cheats.Knows(), cheats.Learns(), Blocks(8, cheats.Knows())],
    ids=["knows", "learns", "in blocks"],
)
def test_a_rule_that_could_sample_the_world_gets_no_verdict(sampler: Sampler) -> None:
    """Nothing is wrong with its sequences: they are the law's own, at one call."""
    found = outcome(SCENES[1].cell(), sampler)
    assert found.calls.mean() <= 3 and found.coherent.mean() > 0.9
    with pytest.raises(UserCodeError, match=r"is told its world .* and draws in a step of its own"):
        evaluate(sampler, (), workers=0, progress=False)


def test_a_rule_that_knows_its_world_and_only_says_where_is_judged(baselines: Path) -> None:
    (one, other) = judged(cheats.Aims(), baselines).comparisons
    assert (one.kind, other.kind) == ("exact", "exact") and one.position == "dominated"


def test_a_rule_that_cannot_be_checked_is_measured() -> None:
    kinds = {name: SAMPLERS[name]().law_kind for name in ("remdm", "corrected", "low_confidence")}
    assert set(kinds.values()) == {"shaped"}
