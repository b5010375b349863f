"""What might explain the paper's numbers: other graphs, other arithmetic, mixed separations."""

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import chain_mix

from maskwalk.analysis.paths import Paths, minus
from maskwalk.bench.cell import Cell
from maskwalk.bench.experiment import load_experiment
from maskwalk.bench.records import load_records
from maskwalk.denoisers.files import load_pretrained
from maskwalk.denoisers.resolve import build_denoiser, fingerprint, split_precision, world_of
from maskwalk.errors import MaskwalkError
from maskwalk.paper.spread import spread
from maskwalk.training.zoo import GROUPS, Recipe
from maskwalk.worlds.world import build_world

ROOT = Path(__file__).parent.parent


def test_a_precision_is_part_of_a_models_name() -> None:
    assert split_precision("zoo:two_b8@bfloat16") == ("zoo:two_b8", "bfloat16")
    assert split_precision("zoo:two_b8") == ("zoo:two_b8", None)
    assert split_precision("hf:someone/model@main") == ("hf:someone/model@main", None)
    assert world_of("zoo:two_b8@autocast") == world_of("zoo:two_b8")
    assert fingerprint("zoo:two_b8@autocast") == fingerprint("zoo:two_b8")
    asked = {"task": "unconditional", "sampler": "bisection"}
    plain, narrow = (Cell.checked(denoiser=f"zoo:two_b8{at}", **asked) for at in ("", "@bfloat16"))
    assert plain.key != narrow.key and plain.world == narrow.world


def test_narrow_products_are_refused_on_a_cpu() -> None:
    world = build_world(str(world_of("zoo:two_b8")))
    for name in ("bfloat16", "autocast", "float16"):
        with pytest.raises(MaskwalkError, match="needs an accelerator"):
            build_denoiser(f"zoo:two_b8@{name}", world)
    with pytest.raises(MaskwalkError, match="Unknown precision of zoo:two_b8"):
        build_denoiser("zoo:two_b8@half", world)
    assert build_denoiser("zoo:two_b8@float32", world).vocab_size == 500


def test_rounded_logits_are_those_of_public_code() -> None:
    model = load_pretrained("zoo:st_er_p0")
    tokens = torch.full((2, 24), 500)
    tokens[:, 3] = torch.tensor([7, 19])
    exact, rounded = model.denoiser(), model.denoiser(logits="bfloat16")
    close, near = exact(tokens), rounded(tokens)
    assert torch.allclose(near.exp().sum(-1), torch.ones(46, dtype=torch.float64))
    assert 1e-3 < float((close - near).abs().max()) < 0.2  # eight bits: steps of 2^-4 at 16
    padded = torch.full((exact.rows, 24), 500)
    padded[:2] = tokens
    answer, bias = exact._run(padded)
    raw = (answer + bias)[0, :500].to(torch.bfloat16)  # what autocast leaves of position 0
    public = (raw - torch.logsumexp(raw, -1)).to(torch.float64)  # its logarithms, in bfloat16
    assert torch.allclose(torch.log_softmax(public, -1), near[0], atol=1e-12)
    assert "logits in bfloat16" in rounded.notes[0] and "logits" not in exact.notes[0]
    with pytest.raises(MaskwalkError, match="logits"):
        model.denoiser(logits="float8")


def test_the_b8_models_are_the_shipped_recipe_on_other_graphs() -> None:
    shipped = GROUPS["zoo"]["two_b8"]
    others = GROUPS["suspects_b8"]
    assert [recipe.graph_seed for recipe in others.values() if isinstance(recipe, Recipe)] == [
        *range(5)
    ]
    assert others["two_b8_again"] == shipped


def test_the_arithmetic_is_tried_on_every_cell_of_the_paper() -> None:
    entries = load_experiment(ROOT / "experiments" / "suspects_precision.toml").entries
    assert len(entries) == 2 * 384
    assert {entry.cell.denoiser.partition("@")[2] for entry in entries} == {"bfloat16", "autocast"}


def test_the_printed_b1_column_lies_among_four_graphs() -> None:
    records = [r for name in ("suspects", "paper") for r in load_records(ROOT / "results" / name)]
    rows = spread(records, "two_b1", "as_published")
    ends = next(row for row in rows if "ends=None" in row["task"])
    assert (ends["graphs"], ends["inside"], ends["cells"]) == (4, 9, 9)
    assert ends["rmse"] < max(ends["others"]) and round(ends["nearest"], 3) == 0.021
    for wrong, word in (("two_b2", "has no column"), ("two_b64", "fewer than 3 graphs")):
        with pytest.raises(MaskwalkError, match=word):
            spread(records, wrong, "as_published")


def test_a_column_far_from_all_graphs_is_outside() -> None:
    records: list[dict[str, Any]] = []
    seeds = [(0, "a"), (0, "again"), (1, "b"), (2, "c")]
    for seed, title in seeds:
        for sampler, value in (("random(block=1)", 0.5), ("entropy(block=1)", 0.9)):
            coherence = {"value": value + seed / 100, "se": 0.01, "n": 16_384}
            world = f"walk(graph=path(nodes=4), law=lazy, length=24, seed={seed})"
            record = {"title": title, "world": world, "column": "two_b8", "sampler": sampler}
            record |= {"task": "endpoints()", "mode": "exact", "denoiser": "zoo:x"}
            records.append({**record, "metrics": {"coherence": coherence}})
    (row,) = spread(records, "two_b8", "exact")
    assert (row["graphs"], row["cells"], row["inside"]) == (3, 2, 0)  # printed: .800 and .968
    assert row["runs"] == [0.0] and len(row["outside"]) == 2
    assert row["others"] == pytest.approx([0.015, 0.0, 0.015])


def test_the_chain_is_a_mix_of_separations_but_for_guided_bisection() -> None:
    some = chain_mix.cells(load_records(ROOT / "results" / "paper"))
    assert len(some) == 9
    rest = chain_mix.fitted(some, chain_mix.GUIDED)
    assert sum(rest["weights"]) == pytest.approx(1.0, abs=1e-3) and min(rest["weights"]) >= 0
    assert rest["rmse"] < 0.01 < 0.02 < chain_mix.fitted(some)["rmse"]
    errors = chain_mix.uniform(some, chain_mix.GUIDED)
    assert errors.index(min(errors)) == 6 and min(errors) < 0.02  # 1 … 7
    assert max(row["high"] for row in chain_mix.prompts_a_group(some)) < 128


def test_policies_are_compared_over_as_many_paths() -> None:
    calls = torch.ones(2, dtype=torch.float64)
    one = Paths(torch.tensor([[2.0, 3.0], [4.0, 3.0]], dtype=torch.float64), calls, True)
    fixed = Paths(torch.tensor([[1.0, 1.0]], dtype=torch.float64), calls, False)
    assert minus(one, fixed, 1).tolist() == [2.0, 2.0]  # the mean of both paths, less the only one
    assert torch.equal(minus(one, fixed, 2), one.over(2) - 1.0)
    assert minus(one, one, 2).tolist() == [0.0, 0.0] and one.counts() == [1, 2]
