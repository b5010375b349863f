"""Outputs of the network inside the fast loop: captured steps, gradients, marginals."""

import pytest
import torch

from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.training.settings import Job, Settings
from maskwalk.training.step import Stepper

pytestmark = pytest.mark.gpu
OUTPUTS = ["chain(rank=8)", "entmax(alpha=1.5)"]


def setting(output: str) -> tuple[DDiTConfig, list[Job]]:
    config = DDiTConfig(50, 12, hidden=64, cond=16, blocks=2, heads=2, output=output)
    walks = torch.randint(50, (400, 12), generator=torch.Generator().manual_seed(0))
    jobs = [
        Job("a", walks, 1, 0.0, masking="coarse(share=0.5)"),
        Job("b", walks.flip(0), 2, 0.0),
    ]
    return config, jobs


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_graph_steps_as_eager_code_does(output: str) -> None:
    """Compiled and captured, two models at once."""
    config, jobs = setting(output)
    settings = Settings(steps=100, batch=32, lr=3e-3)
    graph = Stepper(config, jobs, settings, "cuda").advance(30)
    eager = Stepper(config, jobs, settings, "cuda", compiled=False, graph=False).advance(30)
    torch.testing.assert_close(graph, eager, rtol=0.02, atol=0.02)
    assert bool((graph[-5:].mean(0) < graph[:5].mean(0)).all())


@pytest.mark.parametrize("output", OUTPUTS)
def test_losses_are_the_cpus(output: str) -> None:
    config, jobs = setting(output)
    found = [
        Stepper(config, jobs, Settings(steps=9, batch=32), d, compiled=False, graph=False)
        .advance(3)
        .cpu()
        for d in ("cpu", "cuda")
    ]
    torch.testing.assert_close(*found, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("output", OUTPUTS)
def test_marginals_are_the_cpus(output: str) -> None:
    """The captured network, and the same question in parts."""
    config, jobs = setting(output)
    flat = layout(config).initial([3])[0]
    flat = flat + 0.1 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(0))
    masked = torch.rand((70, 12), generator=torch.Generator().manual_seed(1)) < 0.6
    tokens = jobs[0].walks[:70].masked_fill(masked, config.mask_id)
    here = NetworkDenoiser(config, flat)(tokens)
    network = NetworkDenoiser(config, flat, device="cuda", precision="float32", rows=32)
    there = network(tokens.cuda())
    torch.testing.assert_close(there.cpu().exp(), here.exp(), rtol=1e-3, atol=1e-4)
    alone = torch.cat([network(row[None].cuda()) for row in tokens])
    assert torch.equal(alone, there)
