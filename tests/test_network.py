"""The network against a plain one, and what a denoiser made of it promises."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from maskwalk.analysis.contract import CHECKS, Stand
from maskwalk.decoding.scores import score
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.network.attention import attend, rotation
from maskwalk.denoisers.network.ddit import (
    Modulation,
    hidden_states,
    linear,
    logits,
    modulations,
    residual_norm,
)
from maskwalk.denoisers.network.dropout import Dropout, mixed
from maskwalk.denoisers.network.product import _has_onednn, on_a_cpu
from maskwalk.denoisers.network.weights import MDLM, DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

TINY = DDiTConfig(vocab_size=11, length=6, hidden=32, cond=8, blocks=2, heads=2)


def rough(config: DDiTConfig, seeds: list[int], size: float = 0.2) -> Tensor:
    """Weights with nothing left at zero, so that every part of the network matters."""
    flat = layout(config).initial(seeds)
    for row, seed in zip(flat, seeds):
        row += size * torch.randn(row.shape, generator=torch.Generator().manual_seed(seed))
    return flat


def answers(
    config: DDiTConfig, flat: Tensor, tokens: Tensor, sigma: Tensor | None = None
) -> Tensor:
    """Logits (models, batch, length, vocab)."""
    weights = layout(config).grouped(*layout(config).parts(flat))
    angles = config.angles(tokens.shape[-1], "cpu")
    hidden = hidden_states(config, weights, tokens, angles, modulations(config, weights, sigma))
    out, bias = logits(config, weights, hidden)
    return (out + bias[:, None])[..., : config.vocab_size].view(*tokens.shape, -1)


def state(config: DDiTConfig, flat: Tensor) -> dict[str, Tensor]:
    """A model's weights for the plain network, which has the tied map under both its names."""
    named = {k: v[0] for k, v in layout(config).named(flat).items()}
    if config.tied:
        named["output_layer.linear.weight"] = named["vocab_embed.embedding"]
    return named


def test_a_causal_network_does_not_see_what_comes_later() -> None:
    config = DDiTConfig(**{**TINY.to_json(), "causal": True})
    flat = rough(config, [3])
    tokens = torch.randint(0, 11, (1, 4, 6), generator=torch.Generator().manual_seed(0))
    other = tokens.clone()
    other[..., 3:] = (other[..., 3:] + 1) % 11
    one, two = answers(config, flat, tokens), answers(config, flat, other)
    torch.testing.assert_close(one[:, :, :4], two[:, :, :4])  # position 3 does not see itself
    assert not torch.allclose(one[:, :, 4:], two[:, :, 4:])


def test_the_papers_model_has_as_many_parameters_as_the_public_one() -> None:
    assert DDiTConfig().parameters == 3_863_413
    named = layout(DDiTConfig()).named(torch.zeros(1, layout(DDiTConfig()).size))
    assert sum(value.numel() for value in named.values()) == 3_863_413
    assert MDLM.parameters == 169_627_218 and MDLM.mask_id + 1 == 50_258


@pytest.mark.parametrize("kind", ["", "time_conditioning", "causal", "tied"])
def test_it_is_the_plain_network(kind: str) -> None:
    from plain_ddit import PlainDDiT

    timed = kind == "time_conditioning"
    config = DDiTConfig(**{**TINY.to_json(), **({kind: True} if kind else {})})
    flat = rough(config, [3])
    plain = PlainDDiT(config).eval()
    plain.load_state_dict(state(config, flat))
    tokens = torch.randint(0, 12, (5, 6), generator=torch.Generator().manual_seed(0))
    sigma = torch.linspace(0.1, 3.0, 5) if timed else None
    with torch.no_grad():
        expected = plain(tokens, sigma)[..., : config.vocab_size]
    found = answers(config, flat, tokens[None], None if sigma is None else sigma[None])[0]
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_network_told_the_time_hears_the_masked_share() -> None:
    """σ = −log(1 − (1 − 1e-3) t), t the share of masked positions in each sequence."""
    config = DDiTConfig(**{**TINY.to_json(), "time_conditioning": True})
    flat = rough(config, [3])
    tokens = torch.randint(0, 11, (3, 6), generator=torch.Generator().manual_seed(0))
    tokens[0, :3], tokens[1, :], tokens[2, 5] = 11, 11, 11
    sigma = -torch.log(1 - 0.999 * torch.tensor([3 / 6, 1.0, 1 / 6]))
    assert float(sigma[1]) == pytest.approx(math.log(1000), rel=1e-4)
    expected = answers(config, flat, tokens[None], sigma[None])[0][tokens == 11]
    found = NetworkDenoiser(config, flat[0])(tokens)
    torch.testing.assert_close(
        found, torch.log_softmax(expected.double(), -1), rtol=1e-4, atol=1e-5
    )


def test_several_models_at_once_are_those_models() -> None:
    flat = rough(TINY, [1, 2, 3])
    tokens = torch.randint(0, 12, (3, 4, 6), generator=torch.Generator().manual_seed(0))
    together = answers(TINY, flat, tokens)
    for m in range(3):
        alone = answers(TINY, flat[m : m + 1], tokens[m : m + 1])
        torch.testing.assert_close(together[m : m + 1], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("text", [False, True])
def test_gradients_are_those_of_the_plain_network(text: bool) -> None:
    """The hand-written gradients of look-up and product."""
    from plain_ddit import PlainDDiT

    config = DDiTConfig(**{**TINY.to_json(), "causal": text, "tied": text})
    flat = rough(config, [3]).requires_grad_()
    plain = PlainDDiT(config)
    plain.load_state_dict(state(config, flat.detach()))
    tokens = torch.randint(0, 12, (5, 6), generator=torch.Generator().manual_seed(0))
    pull = torch.randn(5, 6, 11, generator=torch.Generator().manual_seed(1))
    (found,) = torch.autograd.grad((answers(config, flat, tokens[None])[0] * pull).sum(), flat)
    (plain(tokens)[..., :11] * pull).sum().backward()
    for name, value in layout(config).named(found).items():
        expected = plain.get_parameter(name).grad
        assert expected is not None
        torch.testing.assert_close(value[0], expected, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("models", [1, 3])
def test_products_without_gradients_are_those_with_them(models: int) -> None:
    """oneDNN's and MKL's round otherwise; a row's bits do not depend on the rows beside it."""
    x, weight = torch.randn(models, 96, 64), torch.randn(models, 40, 64)
    trained = linear(x, weight, torch.ones(models, 40))
    with torch.no_grad():
        alone, moved = linear(x, weight, torch.ones(models, 40)), linear(x.flip(1), weight)
        assert torch.allclose(alone, trained, atol=1e-4, rtol=0)
        assert torch.equal(moved.flip(1) + 1, alone)
        assert not on_a_cpu(x.to(torch.bfloat16))  # needs more of the processor than there may be
    assert not on_a_cpu(x)


def test_without_onednn_products_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    _has_onednn.cache_clear()
    x, weight = torch.randn(1, 5, 8), torch.randn(1, 3, 8)
    with torch.no_grad():
        assert torch.equal(linear(x, weight), torch.bmm(x, weight.transpose(1, 2)))
    _has_onednn.cache_clear()


def test_numbers_in_used_memory_are_those_of_the_formula() -> None:
    """Without gradients a branch and a norm are written over; the residual stream is not."""
    x, branch = torch.randn(2, 3, 4, 8), torch.randn(2, 12, 8)
    bias, parts = torch.randn(2, 8), [torch.randn(2, 1, 8) for _ in range(5)]
    told = Modulation((parts[0], parts[1]), (parts[2], parts[3]), (parts[4],))
    for norm, given in ((0, None), (1, branch)):
        words = (None if given is None else bias, told, norm, None, torch.float32)
        wanted = residual_norm(x, given, *words)
        with torch.no_grad():
            before = x.clone()
            found = residual_norm(x, None if given is None else given.clone(), *words)
        assert torch.equal(x, before)
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_fresh_weights_know_nothing_and_depend_on_the_seed_alone() -> None:
    fresh = layout(TINY).initial([5, 6])
    denoiser = NetworkDenoiser(TINY, fresh[0])
    answer = denoiser(torch.full((2, 6), 11))
    torch.testing.assert_close(answer, torch.full_like(answer, -math.log(11)))
    assert torch.equal(fresh[1], layout(TINY).initial([6])[0])
    assert not torch.equal(fresh[0], fresh[1])


def test_scores_depend_on_distances_only() -> None:
    """Rotary positions: values equal everywhere come back equal, whatever the queries."""
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(1, 9, 3 * 32, generator=generator)
    long = attend(torch.cat([qkv, qkv], 1)[:, :9], 2, rotation(9, 8))
    torch.testing.assert_close(long, attend(qkv, 2, rotation(9, 8)))
    same = qkv[:, :1].expand(1, 9, -1)
    out = attend(same, 2, rotation(9, 8))
    torch.testing.assert_close(out, same[..., 64:].expand(out.shape))


def test_a_fully_masked_walk_ties_unless_it_has_ends() -> None:
    for ends in (False, True):
        config = DDiTConfig(**{**TINY.to_json(), "ends": ends})
        denoiser = NetworkDenoiser(config, rough(config, [4])[0])
        entropies = score("entropy", denoiser(torch.full((1, 6), 11)), denoiser.score_grid)
        assert (len(entropies.unique()) == 1) != ends


def test_dropout_drops_its_share_independently_of_the_batch() -> None:
    keys = torch.randint(-(2**31), 2**31, (2, 3), generator=torch.Generator().manual_seed(0))
    rates = Dropout.of_rates([0.1, 0.4], torch.device("cpu"))
    drop = Dropout(keys.to(torch.int32), *rates)
    ones = torch.ones(2, 40, 6, 32)
    kept = drop(ones, 1)
    for model, rate in enumerate((0.1, 0.4)):
        share = (kept[model] == 0).float().mean()
        assert abs(share - rate) < 5 * math.sqrt(rate * (1 - rate) / ones[0].numel())
        torch.testing.assert_close(kept[model].max(), torch.tensor(1 / (1 - rate)))
    assert not torch.equal(drop(ones, 0), kept)
    later = Dropout(drop.keys, *rates, first=25)
    assert torch.equal(later(ones[:, :15], 1), kept[:, 25:])
    # neighbours are independent: the hash mixes
    gone = (kept[1] == 0).flatten().float()
    assert abs(torch.corrcoef(torch.stack([gone[:-1], gone[1:]]))[0, 1]) < 0.06
    assert len(mixed(torch.arange(1000, dtype=torch.int32)).unique()) == 1000


@pytest.fixture(scope="module")
def network() -> NetworkDenoiser:
    return NetworkDenoiser(TINY, rough(TINY, [7])[0])


def test_a_network_is_a_denoiser(network: NetworkDenoiser) -> None:
    assert isinstance(network, Denoiser)
    tokens = torch.tensor([[11, 1, 11, 2, 3, 4], [5, 5, 5, 5, 5, 5], [0, 11, 11, 11, 11, 11]])
    answer = network(tokens)
    assert answer.shape == (7, 11) and answer.dtype == torch.float64
    torch.testing.assert_close(answer.exp().sum(1), torch.ones(7, dtype=torch.float64))
    at = torch.zeros_like(tokens, dtype=torch.bool)
    at[0, 2] = at[2, 5] = True
    assert torch.equal(network(tokens, at), answer[[1, 6]])
    assert network(tokens[1:2]).shape == (0, 11)


def test_a_rows_answer_is_the_same_bits_in_every_batch() -> None:
    """Batches of 1, 7, all and permuted, of the paper's own model."""
    config = DDiTConfig()
    network = NetworkDenoiser(config, rough(config, [1], 0.03)[0])
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 501, (45, 24), generator=generator)
    tokens[torch.rand(tokens.shape, generator=generator) < 0.5] = 500
    whole = network(tokens)
    marginals = torch.zeros(45, 24, 500, dtype=torch.float64)
    marginals[tokens == 500] = whole
    assert torch.equal(
        torch.cat([network(row[None]) for row in tokens[:3]]), whole[: len(network(tokens[:3]))]
    )
    assert torch.equal(torch.cat([network(part) for part in tokens.split(7)]), whole)
    order = torch.randperm(45, generator=generator)
    shuffled = torch.zeros_like(marginals)
    shuffled[tokens[order] == 500] = network(tokens[order])
    assert torch.equal(shuffled, marginals[order])


def network_stand() -> Stand:
    config = DDiTConfig(vocab_size=3, length=4, hidden=16, cond=4, blocks=1, heads=2)
    network = NetworkDenoiser(config, rough(config, [2], 0.4)[0], rows=64)
    flat = NetworkDenoiser(config, layout(config).initial([0])[0], rows=64)
    return Stand(network, flat, 4)


@pytest.mark.parametrize("spec", ["entropy(block=1)", "bisection(order=1)", "random(block=2)"])
@pytest.mark.parametrize("check", CHECKS)
def test_samplers_keep_their_contract_on_a_network(check: str, spec: str) -> None:
    CHECKS[check](SAMPLERS.build(spec), network_stand())


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_every_sampler_is_the_same_in_any_batch_on_a_network(name: str) -> None:
    sampler = SAMPLERS.build(Spec(name, (), SAMPLERS[name].sweep[0]))
    for check in ("terminates", "batch_free"):
        CHECKS[check](sampler, network_stand())


def test_other_weights_can_be_loaded_in_place(network: NetworkDenoiser) -> None:
    tokens = torch.full((1, 6), 11)
    before, other = network(tokens), rough(TINY, [8])[0]
    twin = NetworkDenoiser(TINY, rough(TINY, [7])[0])
    twin.load(other)
    assert torch.equal(twin(tokens), NetworkDenoiser(TINY, other)(tokens))
    assert not torch.equal(twin(tokens), before)


def test_mistakes_are_sentences(network: NetworkDenoiser) -> None:
    with pytest.raises(MaskwalkError, match="twice the heads"):
        DDiTConfig(hidden=30, heads=4)
    with pytest.raises(MaskwalkError, match="unknown entries: width"):
        DDiTConfig.from_json({"width": 3})
    with pytest.raises(MaskwalkError, match="load the network with device='meta'"):
        network(torch.full((1, 6), 11, device="meta"))
    with pytest.raises(MaskwalkError, match="precision"):
        NetworkDenoiser(TINY, rough(TINY, [1])[0], precision="int8")


def test_only_the_places_asked_for_behind_the_last_attention() -> None:
    """The same answers, over several calls of either part, with rows and pieces that are padded."""
    weights = rough(TINY, [7])[0]
    whole = NetworkDenoiser(TINY, weights, rows=4)
    asked = NetworkDenoiser(TINY, weights, rows=4, asked_only=True)
    asked.places = 16
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, TINY.vocab_size, (11, TINY.length), generator=random)
    tokens[torch.rand(tokens.shape, generator=random) < 0.7] = TINY.mask_id
    tokens[3] = 1  # a row that asks for nothing
    some = (tokens == TINY.mask_id) & (torch.rand(tokens.shape, generator=random) < 0.6)
    assert int(some.sum()) % 16 and int(some.sum()) > 16
    for at in (None, some, torch.zeros_like(some)):
        torch.testing.assert_close(asked(tokens, at), whole(tokens, at), rtol=0, atol=1e-5)
    alone = torch.cat([asked(tokens[i : i + 1], some[i : i + 1]) for i in range(len(tokens))])
    assert torch.equal(alone, asked(tokens, some))  # whatever else is in the batch
    with pytest.raises(MaskwalkError, match="without time"):
        config = replace(TINY, time_conditioning=True)
        NetworkDenoiser(config, layout(config).initial([0])[0], asked_only=True)


@pytest.mark.parametrize("alike", [True, False])
def test_few_places_are_computed_alone_only_where_that_changes_no_bit(
    alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an accelerator: tried at the first question that asks for few."""
    network = NetworkDenoiser(TINY, rough(TINY, [7])[0], rows=4)
    whole = network(torch.full((5, TINY.length), TINY.mask_id))
    network.asked_only, network.places = None, 16
    tail = network._tail
    off = 0.0 if alike else 1e-6
    monkeypatch.setattr(
        network, "_tail", lambda *states: (tail(*states)[0] + off, tail(*states)[1])
    )
    tokens = torch.full((5, TINY.length), TINY.mask_id)
    one = torch.zeros_like(tokens, dtype=torch.bool)
    one[:, 2] = True
    assert torch.equal(network(tokens), whole) and network._alike is None  # many are asked for
    found = network(tokens, one)
    assert network._alike is alike
    torch.testing.assert_close(found, whole[one.flatten()], rtol=0, atol=1e-5)
    if not alike:
        assert torch.equal(found, whole[one.flatten()])
