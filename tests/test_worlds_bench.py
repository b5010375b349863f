"""Worlds under the runner: bisection along them, metrics, impossible evidence, models, files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk import (
    SAMPLERS,
    WORLDS,
    Sample,
    diagnose,
    evaluate,
    sampler_law,
    total_variation,
)
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.experiment import Experiment, load_experiment
from maskwalk.bench.verdict.suite import scenes
from maskwalk.decoding.draw import DRAWS
from maskwalk.denoisers.files import load_zoo, save_zoo
from maskwalk.errors import MaskwalkError
from maskwalk.training.zoo import WORLD_RECIPES, by_shape, floor
from maskwalk.worlds.exact.listing import entropy_estimate, support_of
from maskwalk.worlds.exact.metrics import distinct, pair_floor, pair_law, pair_tv, solution_chi2
from tests.coins import Coins

ROOT = Path(__file__).parent.parent
ALONG = "bisection(along='world')"


def sample_of(world: Any, tokens: torch.Tensor, seed: int = 0) -> Sample:
    rows = torch.arange(len(tokens))
    return Sample(world, tokens, None, rows, torch.full((len(rows),), world.length), seed=seed)


# ---------------------------------------------------------------- bisection along the world


@pytest.mark.parametrize(
    ("spec", "calls"),
    [
        ("addition(digits=2, base=2)", 6),
        ("addition(digits=2, base=2, order='reversed')", 6),
        ("addition(digits=2, base=2, order='interleaved')", 6),
        ("potts(height=2, width=3)", 4),
        ("potts(height=2, width=3, order='columns')", 4),
        ("hierarchy(depth=2, symbols=3, synonyms=2, nodes='shown')", 4),
        ("walk(graph=st_er(nodes=3, p=0.0), law=lazy(stay=0.2), length=5)", 3),
        ("walk(graph=st_er(nodes=3, p=1.0), law=markov(order=2, seed=1), length=5)", 4),
    ],
)
def test_bisection_along_the_world_is_exact(spec: str, calls: int) -> None:
    world = WORLDS.build(spec)
    rule = SAMPLERS.build(ALONG).in_world(world)
    blank = torch.full((world.length,), world.vocab_size)
    known = support_of(world)
    assert known is not None
    assert total_variation(sampler_law(rule, world.oracle(), blank), known) < 1e-12
    # The same where some tokens are given.
    canvas = blank.clone()
    canvas[::3] = known[0][0, ::3]
    fits = ((known[0] == canvas) | (canvas == world.vocab_size)).all(1)
    truth = known[0][fits], known[1][fits] / known[1][fits].sum()
    assert total_variation(sampler_law(rule, world.oracle(), canvas), truth) < 1e-12
    record, _ = run_cell(
        Cell.checked(world=spec, task="unconditional", sampler=ALONG, count=2), trace=False
    )
    assert record["metrics"]["calls"]["value"] == calls


@pytest.mark.parametrize("spec", ["latin", "hmm", "pcfg", "dyck", "hierarchy(nodes='hidden')"])
def test_a_world_without_separators_is_refused_before_anything_runs(spec: str) -> None:
    with pytest.raises(MaskwalkError, match="names no separators"):
        Cell.checked(world=spec, task="unconditional", sampler=ALONG)


def test_no_verdict_on_a_rule_that_has_to_know_its_world() -> None:
    wrapped = f"blocks(size=6, inner={ALONG})"
    assert SAMPLERS.build(wrapped).needs_world and not SAMPLERS.build("bisection").needs_world
    for policy in (ALONG, wrapped):
        with pytest.raises(MaskwalkError, match="has to know its world"):
            evaluate(policy, "worlds", progress=False)


def test_it_has_to_know_its_world() -> None:
    blank = torch.full((4,), 2)
    with pytest.raises(MaskwalkError, match="has to know its world"):
        sampler_law(SAMPLERS.build(ALONG), Coins(length=4).oracle(), blank)


def test_wrapped_samplers_are_told_of_the_world_too() -> None:
    world = WORLDS.build("potts(height=2, width=3)")
    rule = SAMPLERS.build(f"blocks(size=6, inner={ALONG})").in_world(world)
    assert rule.inner.world is world
    assert SAMPLERS.build("entropy").in_world(world) == SAMPLERS.build("entropy")


def test_a_parameter_added_later_leaves_old_specs_as_they_were() -> None:
    assert SAMPLERS.canonical("bisection") == "bisection(order=1)"
    assert SAMPLERS.canonical(ALONG) == "bisection(order=1, along='world')"
    assert SAMPLERS.canonical("bisection(order=2, along='line')") == "bisection(order=2)"


# ---------------------------------------------------------------- metrics


def test_losses_of_a_cell_are_those_of_the_exact_law() -> None:
    """KL(ν ‖ q) of a fixed order by enumeration, in nats per token."""
    spec = "latin(n=3)"
    world = WORLDS.build(spec)
    known, law = (
        support_of(world),
        sampler_law(SAMPLERS.build("bisection(order=2)"), world.oracle(), torch.full((9,), 3)),
    )
    table = {tuple(row): p for row, p in zip(law[0].tolist(), law[1].tolist())}
    probs = torch.tensor([table[tuple(row)] for row in known[0].tolist()], dtype=torch.float64)
    exact = float((known[1] * (known[1] / probs).log()).sum()) / 9
    names = ("replay_kl", "replay_dependence", "replay_denoiser")
    cell = Cell.checked(
        world=spec, task="unconditional", sampler="bisection(order=2)", count=128, metrics=names
    )
    metrics = run_cell(cell)[0]["metrics"]
    assert metrics["replay_kl"]["value"] == pytest.approx(exact, abs=1e-9)  # all alike
    assert not metrics["replay_kl"]["bound"]
    assert metrics["replay_denoiser"]["value"] == 0
    assert metrics["replay_dependence"]["value"] == metrics["replay_kl"]["value"]
    stochastic = run_cell(replace(cell, sampler="random(block=3)"))[0]["metrics"]
    assert stochastic["replay_kl"]["bound"]
    remasking = run_cell(replace(cell, sampler=SAMPLERS.canonical("remdm")))[0]["metrics"]
    assert remasking["replay_kl"] is None


def test_a_truncated_draw_says_what_it_lost_and_what_it_does_to_the_rest() -> None:
    """Left to right on a hidden Markov model, cut at min-p: no number of the record is infinite."""
    names = ("replay_kl", "replay_denoiser", "replay_lost", "replay_rest")
    cell = Cell.checked(
        world="hmm(length=6)",
        task="unconditional",
        sampler="left_to_right",
        count=64,
        metrics=names,
        draw="draw(min_p=0.5)",
    )
    cut = run_cell(cell)[0]
    assert json.loads(json.dumps(cut, allow_nan=False))["metrics"]["replay_kl"] is None
    found = cut["metrics"]
    assert found["replay_denoiser"] is None
    assert 0 < found["replay_lost"]["value"] < 1 and found["replay_rest"]["value"] > 0
    whole = run_cell(replace(cell, draw=DRAWS.canonical("draw")))[0]["metrics"]
    assert whole["replay_lost"]["value"] == 0
    assert whole["replay_rest"]["value"] == whole["replay_kl"]["value"]


def test_distinct_solutions_and_their_unevenness() -> None:
    world = WORLDS.build("latin(n=4)")
    exact = sample_of(world, world.sample(2000, 5))
    assert distinct(exact).value == pytest.approx(1, abs=0.03)
    assert solution_chi2(exact).extra["p"] > 1e-3
    few = sample_of(world, world.sample(100, 5).repeat(20, 1))
    assert distinct(few).value < 0.2
    assert solution_chi2(few).value > 5 and solution_chi2(few).extra["p"] < 1e-6
    broken = sample_of(world, torch.zeros_like(exact.tokens))
    assert distinct(broken).value == 0 and solution_chi2(broken) is None
    assert distinct(sample_of(WORLDS.build("potts"), WORLDS.build("potts").sample(4, 0))) is None


def test_pair_tv_stands_beside_its_floor() -> None:
    world = WORLDS.build("potts(height=2, width=3, beta=0.8)")
    tokens, probs = support_of(world)
    law = pair_law(world)
    for k, (i, j) in enumerate(world.pairs()):
        code = tokens[:, i] * 2 + tokens[:, j]
        truth = torch.zeros(4, dtype=torch.float64).index_add(0, code, probs).view(2, 2)
        assert torch.allclose(law[k], truth, atol=1e-12)
    estimate = pair_tv(sample_of(world, world.sample(1000, 9)))
    assert abs(estimate.extra["excess"]) < 4 * estimate.se
    assert estimate.extra["floor"] == pair_floor(world, 1000, 0)[0] > 0
    free = torch.randint(0, 2, (1000, 6), generator=torch.Generator().manual_seed(0))
    assert pair_tv(sample_of(world, free)).extra["excess"] > 0.1


def test_full_support_has_no_coherence() -> None:
    cell = Cell.checked(world="potts", task="frame", sampler="bisection", count=4)
    metrics = run_cell(cell)[0]["metrics"]
    assert metrics["coherence"] is None and metrics["first_invalid"] is None
    assert metrics["pair_tv"] is None  # something is given
    world = WORLDS.build("potts(height=2, width=3)")
    row = diagnose(world, world.oracle(), SAMPLERS.build("bisection"), world.sample(8, 0))
    assert row["coherence"] is None and row["reliable"] is None and row["kl"] >= 0
    assert world.oracle().notes == () and WORLDS.build("latin").oracle().notes


def test_impossible_evidence_is_counted_in_the_record() -> None:
    one_call = {"world": "sudoku", "task": "unconditional", "count": 8}
    assert run_cell(Cell.checked(**one_call, sampler="random(block=16)"))[0]["impossible"] == 0
    assert run_cell(Cell.checked(**one_call, sampler="random(block=4)"))[0]["impossible"] > 0
    walks = {"graph": "st_er(nodes=30, p=0.0)", "walk": "lazy(stay=0.2)", "length": 12}
    cell = Cell.checked(**walks, task="unconditional", sampler="random(block=4)", count=16)
    assert run_cell(cell)[0]["impossible"] > 0


def test_wrong_sums_by_their_longest_chain_of_carries() -> None:
    world = WORLDS.build("addition(digits=3)")
    tokens = world.sample(300, 0)
    tokens[world.carries(tokens).sum(1) == 3, -1] = -1  # break those with three carries
    tokens = torch.where(tokens < 0, (world.sample(300, 0) + 1) % 10, tokens)
    cell = Cell.checked(
        world="addition(digits=3)",
        task="operands",
        sampler="random(block=2)",
        count=32,
        metrics=("coherence_by_carries",),
    )
    by = run_cell(cell)[0]["metrics"]["coherence_by_carries"]["by"]
    assert [part["at"] for part in by] == sorted({part["at"] for part in by})
    assert sum(part["n"] for part in by) == 32 and all(part["value"] == 1 for part in by)
    from maskwalk.worlds.addition import coherence_by_carries, longest_runs

    wrong = coherence_by_carries(sample_of(world, tokens)).extra["by"]
    assert {part["at"]: part["value"] for part in wrong}[3] == 0
    assert {part["at"]: part["value"] for part in wrong}[0] == 1
    ones = torch.tensor([[0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    assert longest_runs(ones).tolist() == [2, 0, 5]


# ---------------------------------------------------------------- models, files, suites


def test_recipes_of_one_shape_are_trained_together() -> None:
    groups = by_shape(WORLD_RECIPES)
    assert [list(group) for _, group in groups][:2] == [
        ["latin", "sudoku", "dyck", "regular"],
        ["addition", "addition_reversed", "addition_interleaved"],
    ]
    assert sum(len(group) for _, group in groups) == 12


def test_the_floor_of_a_model_is_exact_or_has_an_error() -> None:
    latin, hmm = WORLDS.build("latin"), WORLDS.build("hmm(length=8)")
    assert floor(latin) == (latin.entropy() / 16, 0.0)
    assert floor(hmm, samples=500)[1] > 0
    small = WORLDS.build("hmm(states=3, tokens=3, length=5)")
    listed = entropy_estimate(small)
    assert listed.se == 0 and hmm.entropy() is None
    log_probs = small.log_prob(small.sample(20_000, 1))
    assert listed.value == pytest.approx(float(-log_probs.mean()), abs=0.05)


def test_a_zoo_keeps_the_models_it_has(tmp_path: Path) -> None:
    first, second = load_zoo("latin"), load_zoo("dyck")
    save_zoo({"latin": first}, tmp_path)
    save_zoo({"dyck": second}, tmp_path)
    models = json.loads((tmp_path / "manifest.json").read_text())["models"]
    assert set(models) == {"latin", "dyck"}


@pytest.mark.parametrize("name", WORLD_RECIPES)
def test_shipped_models_know_their_world(name: str) -> None:
    model = load_zoo(name)
    world = WORLDS.build(model.about["world"])
    assert world.vocab_size == model.config.vocab_size and world.length == model.config.length
    assert model.about["bound"] > model.about["floor"] - 2 * model.about["bound_se"]
    assert (ROOT / "zoo" / f"{name}.safetensors.xz").stat().st_size < 500_000


def test_the_atlas_of_worlds_and_its_quick_run() -> None:
    path = ROOT / "experiments" / "worlds.toml"
    everything, quick = load_experiment(path), load_experiment(path, quick=True)
    assert isinstance(everything, Experiment) and isinstance(quick, Experiment)
    assert len({cell.key for cell in everything.cells}) == 12824
    assert {cell.world for cell in quick.cells} == {cell.world for cell in everything.cells}
    assert len(quick.cells) == 728 and {cell.count for cell in quick.cells} == {32}


def test_the_suite_of_worlds_has_the_worlds_that_can_be_checked() -> None:
    names = {scene.zoo for scene in scenes("worlds")}
    assert names | {"potts", "addition_reversed"} == set(WORLD_RECIPES)
    assert all(scene.cell().count >= 64 for scene in scenes("worlds"))
