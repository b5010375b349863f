"""The fused kernels against the plain formulas, on an accelerator."""

import pytest
import torch

from maskwalk.decoding.scores import SCORES, score
from maskwalk.denoisers.network.attention import attend, rotation
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.training.settings import Job, Settings
from maskwalk.training.step import Stepper

pytestmark = pytest.mark.gpu


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double().cpu() - b.double().cpu()).norm() / b.double().norm())


@pytest.mark.parametrize("length", [5, 24, 40])
def test_attention(length: int) -> None:
    qkv = torch.randn(7, length, 3 * 128, generator=torch.Generator().manual_seed(0)).half()
    plain = attend(qkv.double(), 2, rotation(length, 32).double())
    fused = attend(qkv.cuda(), 2, rotation(length, 32).cuda())
    assert distance(fused, plain) < 2e-3


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 2e-3)])
def test_attention_over_long_texts(causal: bool, dtype: torch.dtype, close: float) -> None:
    qkv = torch.randn(3, 100, 3 * 6 * 32, generator=torch.Generator().manual_seed(0)).to(dtype)
    plain = attend(qkv.double(), 6, rotation(100, 16).double(), causal)
    with torch.no_grad():
        turned = attend(qkv.cuda(), 6, rotation(100, 16).cuda(), causal)
    assert distance(turned, plain) < close
    kept = qkv.cuda().requires_grad_()
    assert distance(attend(kept, 6, rotation(100, 16).cuda(), causal).detach(), plain) < close
    assert torch.equal(kept.detach().cpu(), qkv)


@pytest.mark.parametrize(("rows", "vocab"), [(0, 5), (3, 5), (70, 500), (2, 5000)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", sorted(SCORES))
def test_scores(name: str, rows: int, vocab: int, dtype: torch.dtype) -> None:
    logits = torch.randn(rows, vocab, generator=torch.Generator().manual_seed(0)).to(dtype)
    logits[:, :2] = -torch.inf  # a true zero contributes nothing
    if rows > 2:
        logits[0, 3:] = -torch.inf  # certain
        logits[1, -2:] = 9.0  # two largest, the same
    marginals = logits.log_softmax(-1)
    fused = score(name, marginals.cuda(), 1e-9).cpu()
    assert torch.allclose(fused, score(name, marginals, 1e-9), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "config", [DDiTConfig(blocks=2), DDiTConfig(blocks=2, causal=True, tied=True)], ids=repr
)
def test_a_steps_gradient_is_the_cpus(config: DDiTConfig) -> None:
    """bfloat16 with fused kernels against float32 with plain formulas, dropout included."""
    generator = torch.Generator().manual_seed(0)
    walks = torch.randint(0, 500, (500, 24), generator=generator)
    jobs = [Job("a", walks, 1, 0.1), Job("b", walks, 2, 0.3)]
    noise = 0.03 * torch.randn(2, layout(config).size, generator=generator)
    found = {}
    for device in ("cpu", "cuda"):
        stepper = Stepper(config, jobs, Settings(batch=32), device, compiled=False, graph=False)
        for part, extra in zip(stepper.parts, layout(config).parts(noise)):
            part.weights += extra.to(device)
        matrices = stepper.parts[0].weights
        matrices = matrices.to(torch.bfloat16) if device == "cuda" else matrices
        leaves = [t.detach().requires_grad_() for t in (matrices, stepper.parts[1].weights)]
        losses = stepper.objective(*leaves)
        gradients = torch.autograd.grad(losses.sum(), leaves)
        found[device] = [losses.detach().cpu(), *(g.double().cpu() for g in gradients)]
    assert distance(found["cuda"][0], found["cpu"][0]) < 1e-3
    ours, theirs = (layout(config).grouped(*found[d][1:]) for d in ("cuda", "cpu"))
    for name in ours:
        assert distance(ours[name], theirs[name]) < 0.03, name


@pytest.mark.filterwarnings("default")  # torch's compiler has warnings of its own
def test_a_graph_steps_as_eager_code_does() -> None:
    config = DDiTConfig(vocab_size=20, length=8, hidden=64, cond=16, blocks=1, heads=2)
    walks = torch.randint(0, 20, (300, 8), generator=torch.Generator().manual_seed(0))
    settings = Settings(steps=100, batch=32, lr=1e-3)
    jobs = [Job("a", walks, 1, 0.1), Job("b", walks[:100], 2, 0.0)]
    graph = Stepper(config, jobs, settings, "cuda").advance(30)
    eager = Stepper(config, jobs, settings, "cuda", compiled=False, graph=False).advance(30)
    torch.testing.assert_close(graph, eager, rtol=2e-2, atol=2e-2)


def test_narrow_inference_is_near_and_keeps_ties() -> None:
    config = DDiTConfig()
    weights = layout(config).initial([0])[0]
    weights += 0.03 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0))
    tokens = torch.randint(0, 501, (70, 24), generator=torch.Generator().manual_seed(1))
    wide = NetworkDenoiser(config, weights)(tokens)
    narrow = NetworkDenoiser(config, weights, device="cuda", rows=64)
    assert float((narrow(tokens.cuda()).cpu() - wide).abs().max()) < 5e-3
    entropies = score("entropy", narrow(torch.full((3, 24), 500).cuda()), narrow.score_grid)
    assert len(entropies.unique()) == 1
    parts = torch.cat([narrow(part.cuda()) for part in tokens.split(9)])
    assert torch.equal(parts, narrow(tokens.cuda()))
