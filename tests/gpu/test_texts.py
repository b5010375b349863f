"""Models of text on an accelerator: the same answers and likelihoods as on a CPU."""

import pytest
import torch
from torch import Tensor

from maskwalk.analysis.replay import replay
from maskwalk.decoding.decode import decode
from maskwalk.denoisers.language.base import LogMarginals
from maskwalk.denoisers.language.books import NextToken
from maskwalk.denoisers.language.mdlm import MDLM
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.objective import bound
from tests.gpu.test_kernels import distance

pytestmark = pytest.mark.gpu

KINDS = {False: MDLM, True: NextToken}


def rough(causal: bool, device: str, precision: str = "float32", rows: int = 4) -> MDLM:
    """A network far from its zeros; 130 tokens, so that columns have to be padded."""
    config = DDiTConfig(130, 24, 64, 16, 2, 2, causal=causal, tied=True)
    flat = layout(config).initial([1])
    flat += 0.1 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(1))
    return KINDS[causal](config, flat[0], rows=rows, device=device, precision=precision)


def canvas(model: MDLM, count: int = 10) -> tuple[Tensor, Tensor]:
    """Texts with something masked, and where to ask."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, 130, (count, 24), generator=generator)
    hidden = torch.rand(tokens.shape, generator=generator) < 0.5
    if model.config.causal:
        hidden = torch.arange(24) >= torch.arange(count)[:, None]
    at = hidden & (hidden.cumsum(1) == 1) if model.config.causal else hidden
    return torch.where(hidden, model.mask_id, tokens), at


@pytest.mark.parametrize("vocab", [5, 500, 8192, 50_257])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_on_their_way_into_the_table(vocab: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn(70, vocab + 3, generator=generator)).to(dtype)
    logits[3, 1], logits[4, vocab - 1] = torch.nan, torch.inf  # of tokens that are never drawn
    bias = torch.randn(vocab, generator=generator)
    found = []
    for device in ("cpu", "cuda"):
        answer = LogMarginals(90, vocab, (1, vocab - 1), bias.to(device), torch.device(device))
        answer.append(logits[:50].to(device))
        answer.append(logits[50:].to(device))
        answer.put(torch.arange(89, 69, -1, device=device), logits[:20].to(device))
        found.append(answer.whole().cpu())
    assert torch.equal(found[0] == -torch.inf, found[1] == -torch.inf)
    assert bool((found[1][:, [1, vocab - 1]] == -torch.inf).all())
    torch.testing.assert_close(found[0].exp(), found[1].exp(), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(found[1].double().exp().sum(1).float(), torch.ones(90))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_logits_that_are_no_numbers(bad: float) -> None:
    answer = LogMarginals(9, 100, (3,), None, torch.device("cuda"))
    logits = torch.zeros(9, 100, device="cuda")
    logits[4, slice(None) if bad < 0 else 70] = bad
    answer.append(logits)
    with pytest.raises(MaskwalkError, match="not finite"):
        answer.whole()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("precision", "close"), [("float32", 2e-3), ("float16", 2e-2)])
def test_answers(causal: bool, precision: str, close: float) -> None:
    here, there = rough(causal, "cpu"), rough(causal, "cuda", precision)
    tokens, at = canvas(here)
    one, two = here(tokens, at), there(tokens.cuda(), at.cuda())
    assert float((one.exp() - two.cpu().exp()).abs().max()) < close
    few = torch.cat([there(t.cuda(), a.cuda()) for t, a in zip(tokens.split(3), at.split(3))])
    if causal:  # it reads as far as the longest of them, which changes last bits
        torch.testing.assert_close(few.exp(), two.exp(), rtol=0, atol=close)
    else:
        assert torch.equal(few, two)  # whoever else is asked


@pytest.mark.parametrize("causal", [False, True])
def test_likelihoods(causal: bool) -> None:
    """The bound, and the likelihood along a fixed order, in float32."""
    here, there = rough(causal, "cpu"), rough(causal, "cuda")
    texts = torch.randint(0, 130, (6, 24), generator=torch.Generator().manual_seed(3))
    spec = "left_to_right" if causal else "bisection(order=2)"
    found = []
    for model, device in ((here, "cpu"), (there, "cuda")):
        streams = Streams(0, torch.arange(6, device=device))
        forced = replay(SAMPLERS.build(spec), model, texts.to(device), streams=streams)
        angles = model.config.angles(24, model.device)
        whole = bound(model.config, model.weights, texts.to(device)[None], angles)[0]
        found.append((forced.log_prob.sum(1).cpu(), whole.cpu()))
    assert distance(found[1][0], found[0][0]) < 1e-3
    assert distance(found[1][1], found[0][1]) < 1e-3


@pytest.mark.parametrize("spec", ["entropy(block=4)", "bisection(order=2)", "random(block=4)"])
def test_texts_do_not_depend_on_the_batch(spec: str) -> None:
    model, sampler = rough(False, "cuda", "float16"), SAMPLERS.build(spec)
    ids = torch.arange(7, device="cuda")
    blank = torch.full((7, 24), model.mask_id, device="cuda")
    whole = decode(sampler, model, blank, streams=Streams(5, ids)).tokens
    parts = [decode(sampler, model, blank[i], streams=Streams(5, i)).tokens for i in ids.split(3)]
    assert torch.equal(torch.cat(parts), whole)


def test_replay_knows_of_the_dice() -> None:
    model, streams = rough(False, "cuda"), Streams(0, torch.arange(6, device="cuda"))
    texts = torch.randint(0, 130, (6, 24), generator=torch.Generator().manual_seed(3)).cuda()
    for spec, dice in (("random(block=4)", True), ("entropy(block=4)", True), ("bisection", False)):
        assert replay(SAMPLERS.build(spec), model, texts, streams=streams).random is dice
