"""Worlds of a known law on a GPU: the same answers as on the CPU, and cells that run there."""

import pytest
import torch

from maskwalk import WORLDS
from maskwalk.bench.cell import Cell, run_cell

pytestmark = pytest.mark.gpu
SPECS = (
    "latin(n=4)",
    "latin(n=5)",
    "sudoku(box=2)",
    "addition(order='plain')",
    "addition(order='interleaved')",
    "dyck",
    "regular",
    "hmm",
    "pcfg",
    "hierarchy",
    "hierarchy(nodes='shown')",
    "potts",
    "potts(height=6, width=8, order='columns')",
)


@pytest.mark.parametrize("spec", SPECS)
def test_oracles_answer_as_on_the_cpu(spec: str) -> None:
    world = WORLDS.build(spec)
    tokens = world.sample(64, 0)
    generator = torch.Generator().manual_seed(1)
    masked = torch.rand(tokens.shape, generator=generator) < 0.5
    canvas = torch.where(masked, world.vocab_size, tokens)
    here, there = world.oracle()(canvas).exp(), world.oracle()(canvas.cuda()).exp().cpu()
    assert float((here - there).abs().max()) < 1e-12
    assert torch.equal(here == 0, there == 0)
    assert torch.allclose(world.log_prob(tokens), world.log_prob(tokens.cuda()).cpu(), atol=1e-10)


@pytest.mark.parametrize("name", ["sudoku", "hmm", "pcfg", "hierarchy_shown", "potts"])
def test_cells_with_a_replay_run_on_the_gpu(name: str) -> None:
    cell = Cell.checked(
        task="given(share=0.5)",
        sampler="bisection(order=2)",
        denoiser=f"zoo:{name}",
        count=32,
        metrics=("coherence", "replay_kl", "replay_dependence", "replay_denoiser"),
    )
    here, there = run_cell(cell)[0]["metrics"], run_cell(cell, "cuda")[0]["metrics"]
    for key in ("replay_kl", "replay_dependence", "replay_denoiser"):
        # float16 on the GPU: the loss to the denoiser moves in the third digit
        assert there[key]["value"] == pytest.approx(here[key]["value"], abs=5e-3)
