"""The same numbers, marginals, diagnoses and sampled walks on an accelerator as on a CPU."""

import pytest
import torch

from maskwalk.analysis.losses import diagnose
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import preset
from maskwalk.denoisers.files import load_pretrained
from maskwalk.denoisers.resolve import build_denoiser, world_of
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Purpose, Streams
from maskwalk.worlds.walks.oracles import EnumerationOracle, LiftedOracle, oracle_for
from maskwalk.worlds.world import build_world
from tests.conftest import STANDS, small_law

pytestmark = pytest.mark.gpu
LAWS = STANDS | {
    "drift": small_law("st_er(nodes=5, p=0.4)", "drift(strength=0.8)"),
    "turns": small_law("st_er(nodes=5, p=0.2)", "schedule(laws=[lazy(stay=0.6), lazy()], turn=1)"),
    "spread": small_law("st_er(nodes=4, p=0.3)", "schedule(laws=[markov(seed=1), drift(0.9)])"),
}


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1, 2**33 + 5])
def test_streams(seed: int) -> None:
    ids = torch.tensor([0, 5, 2**40 + 3])
    here, there = Streams(seed, ids), Streams(seed, ids.to("cuda"))
    assert torch.equal(here.uniform(Purpose.TIE, 7, 33), there.uniform(Purpose.TIE, 7, 33).cpu())
    rows, places = torch.tensor([2, 0]), torch.tensor([30, 1])
    spots = there.uniform_at(Purpose.TIE, 7, rows.to("cuda"), places.to("cuda")).cpu()
    assert torch.equal(here.uniform_at(Purpose.TIE, 7, rows, places), spots)
    one = here.single_at(Purpose.TOKEN, 3, rows, places, 501)
    two = there.single_at(Purpose.TOKEN, 3, rows.to("cuda"), places.to("cuda"), 501)
    assert torch.equal(one, two.cpu())


@pytest.mark.parametrize("name", LAWS)
def test_oracles(name: str) -> None:
    """Half of the evidence is possible, half mostly not: the fallback too is the same."""
    law = LAWS[name]
    generator = torch.Generator().manual_seed(3)
    tokens = law.sample(64, 0)
    tokens[32:] = torch.randint(0, law.vocab_size, (32, law.length), generator=generator)
    hidden = torch.rand(tokens.shape, generator=generator) < 0.5
    tokens = tokens.masked_fill(hidden, law.vocab_size)
    want = EnumerationOracle(law)(tokens)
    for oracle in (oracle_for(law), LiftedOracle(law)):
        got = oracle(tokens.cuda())
        assert got.device.type == "cuda"
        got = got.cpu()
        assert torch.equal(got == -torch.inf, want == -torch.inf)
        assert torch.allclose(got.exp(), want.exp(), rtol=0, atol=1e-12)


def test_diagnosis() -> None:
    law = small_law("st_er(nodes=20, p=0.1)", "lazy(stay=0.2)", 8)
    walks = law.sample(64, 0)
    for spec in (
        "entropy(block=2)",
        "random(block=2)",
        "bisection",
        "dependence_bounded(budget=0.5)",
    ):
        rows = [
            diagnose(law, oracle_for(law), SAMPLERS.build(spec), walks.to(device))
            for device in ("cpu", "cuda")
        ]
        for key in ("kl", "coherence", "dependence", "calls"):
            assert rows[0][key] == pytest.approx(rows[1][key], abs=1e-9)
        assert rows[0]["kl_kind"] == rows[1]["kl_kind"]  # whether there were dice


@pytest.mark.parametrize("mode", ["exact", "as_published"])
@pytest.mark.parametrize("spec", sorted(SAMPLERS))
def test_decoding_with_an_oracle(spec: str, mode: str) -> None:
    """Every sampler makes the same walks with the same calls on both."""
    law = small_law("st_er(nodes=20, p=0.1)", "lazy(stay=0.2)", 8)
    oracle, (draw, ties) = oracle_for(law), preset(mode)
    blank = torch.full((128, law.length), oracle.mask_id)
    found = []
    for device in ("cpu", "cuda"):
        streams = Streams(0, torch.arange(128, device=device))
        sampler = SAMPLERS.build(spec)
        done = decode(sampler, oracle, blank.to(device), streams=streams, draw=draw, ties=ties)
        found.append((done.tokens.cpu(), done.calls.cpu()))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


def test_a_trained_network_in_float32() -> None:
    """The logits differ in their last bits, so a few walks may differ; the marginals hardly."""
    model = load_pretrained("st_er_deg7")
    tokens = torch.full((64, 24), model.denoiser().mask_id)
    tokens[:, 7] = torch.arange(64)
    here = model.denoiser()(tokens)
    for precision, close in (("float32", 2e-3), ("float16", 2e-2)):
        there = model.denoiser(device="cuda", precision=precision)(tokens.cuda()).cpu()
        assert float((there.exp() - here.exp()).abs().max()) < close
    for name in ("bfloat16", "autocast"):
        world = build_world(str(world_of("zoo:st_er_deg7")))
        there = build_denoiser(f"zoo:st_er_deg7@{name}", world, "cuda")(tokens.cuda()).cpu()
        assert 0 < float((there.exp() - here.exp()).abs().max()) < 0.1
