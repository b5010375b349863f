"""The objective against enumeration, the update against PyTorch's, batches against single runs."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from maskwalk.denoisers.files import load_pretrained, load_zoo
from maskwalk.denoisers.network.ddit import hidden_states, logits, modulations
from maskwalk.denoisers.network.noise import sigma
from maskwalk.denoisers.network.outputs import cross_entropy
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError
from maskwalk.resources import zoo_manifest
from maskwalk.training import zoo
from maskwalk.training.data import Walks
from maskwalk.training.fit import Plan, fit, fit_zoo
from maskwalk.training.loop import Judge, train
from maskwalk.training.objective import EPSILON, Noise, bound, loss
from maskwalk.training.schedule import averaging, learning_rate
from maskwalk.training.settings import Job, Settings
from maskwalk.training.step import Part, Stepper, update
from maskwalk.worlds.walks.oracles import oracle_for
from maskwalk.worlds.world import build_world
from tests.conftest import small_law

TINY = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)


def rough(config: DDiTConfig, seed: int = 0, size: float = 0.5) -> Tensor:
    flat = layout(config).initial([seed])
    return flat + size * torch.randn(flat.shape, generator=torch.Generator().manual_seed(seed))


def grouped(config: DDiTConfig, flat: Tensor) -> dict[str, Tensor]:
    return layout(config).grouped(*layout(config).parts(flat))


def every_mask(config: DDiTConfig, flat: Tensor, walk: Tensor) -> dict[tuple[bool, ...], float]:
    """Σ_{i masked} -log p(x_i | the rest) for every set of masked positions."""
    masks = torch.tensor(list(itertools.product([False, True], repeat=len(walk))))
    tokens = torch.where(masks, config.mask_id, walk)[None]
    weights = grouped(config, flat)
    hidden = hidden_states(
        config, weights, tokens, config.angles(len(walk), "cpu"), modulations(config, weights)
    )
    rows = walk.expand(masks.shape).reshape(1, -1)
    nats = cross_entropy(config, *logits(config, weights, hidden), rows).view(masks.shape)
    return {tuple(m.tolist()): float((n * m).sum()) for m, n in zip(masks, nats)}


def test_the_loss_is_unbiased() -> None:
    """Its mean over many steps is the integral over times and masks, by enumeration."""
    flat, walk = rough(TINY), torch.tensor([1, 3, 0, 3])
    table = every_mask(TINY, flat, walk)
    times = EPSILON + (1 - EPSILON) * (np.arange(4000) + 0.5) / 4000
    p = (1 - EPSILON) * times
    exact = 0.0
    for mask, nats in table.items():
        k = sum(mask)
        exact += nats * float(np.mean(p**k * (1 - p) ** (4 - k) / times)) / 4
    noise = Noise(TINY, [11], [0.0], 4, 512)
    walks = walk.expand(1, 512, 4)
    with torch.no_grad():
        found = torch.cat(
            [
                loss(
                    TINY, grouped(TINY, flat), walks, TINY.angles(4, "cpu"), noise, torch.tensor(s)
                )
                for s in range(300)
            ]
        ).to(torch.float64)
    error = float(found.std()) / math.sqrt(300)
    assert error < 0.01 * exact
    assert abs(float(found.mean()) - exact) < 4 * error


def test_the_loss_of_a_step_by_hand() -> None:
    """1/(n·L) Σ 1/t Σ_{i masked} −log p(x_i | the rest), of the masks and times of the step."""
    flat, walks = rough(TINY), torch.randint(0, 5, (1, 8, 4), generator=torch.Generator())
    noise, step, angles = Noise(TINY, [11], [0.0], 4, 8), torch.tensor(3), TINY.angles(4, "cpu")
    found = float(loss(TINY, grouped(TINY, flat), walks, angles, noise, step))
    _, masked, times = noise.corrupt(walks, step)
    expected = 0.0
    for walk, where, t in zip(walks[0], masked[0], times[0].tolist()):
        expected += every_mask(TINY, flat, walk)[tuple(where.tolist())] / t
    assert found == pytest.approx(expected / (8 * 4), rel=1e-5)


def test_the_noise_is_the_published_one() -> None:
    """A token of time t is masked with probability (1 − 1e-3) t; times are above 1e-3."""
    assert EPSILON == 1e-3
    noise = Noise(TINY, [5], [0.0], 64, 4000)
    _, masked, times = noise.corrupt(torch.zeros(1, 4000, 64, dtype=torch.int64), torch.tensor(0))
    assert 1e-3 <= float(times.min()) < 1e-3 + 1 / 4000 and float(times.max()) <= 1
    assert float(sigma(torch.ones(()))) == pytest.approx(math.log(1000), rel=1e-4)
    late = times[0] > 0.99  # a hundredth of the samples: 40 × 64 coins of about .994
    assert float(masked[0, late].double().mean()) == pytest.approx(0.994, abs=0.005)


def test_validation_sees_the_averaged_weights_and_the_held_out_walks(walks: Tensor) -> None:
    job = Job("a", walks, 0, 0.0, walks[:40].flip(1))
    stepper = Stepper(TINY, [job], Settings(steps=40, batch=16, lr=3e-2))
    stepper.advance(10)
    average = stepper.averages()[0]
    raw = torch.cat([part.weights for part in stepper.parts], 1)[0]
    assert not torch.allclose(average, raw, atol=1e-2)
    tokens, seen = torch.where(torch.tensor([True, False, True, False]), 5, walks[:3]), []

    def validate(name: str, denoiser: NetworkDenoiser) -> dict[str, float]:
        seen.append(denoiser(tokens))
        return {"coherence": 0.5}

    ((numbers,), (answer,)) = Judge(stepper, [job], validate)(), seen
    assert torch.equal(answer, NetworkDenoiser(TINY, average)(tokens))
    assert job.held is not None
    nats = bound(TINY, grouped(TINY, average[None]), job.held[None], TINY.angles(4, "cpu"))[0]
    assert numbers["bound"] == pytest.approx(float(nats.mean()))
    assert numbers["bound_se"] == pytest.approx(float(nats.std()) / math.sqrt(40))
    assert numbers["coherence"] == 0.5


def test_a_models_bound_is_of_walks_it_was_not_trained_on(tmp_path: Path) -> None:
    """Both ways of training keep the held-out walks apart: by their numbers, or by their seed."""
    place = {"graph": "st_er(nodes=5, p=0.2)", "walk": "lazy(stay=0.2)", "length": 4}
    plan = Plan.checked(
        **place, graph_seed=1, walks=64, dropout=0.0, hidden=16, blocks=1, heads=2, seed=3
    )
    fit(plan, Settings(steps=2, batch=8, every=2), tmp_path, "cpu", False)
    model = load_pretrained(tmp_path)
    held = build_world(plan.world).sample(zoo.HELD, seed=4, first=1_000_000_000)
    weights, angles = grouped(plan.config, model.weights[None]), plan.config.angles(4, "cpu")
    nats = bound(plan.config, weights, held[None], angles)[0]
    assert model.about["bound"] == pytest.approx(float(nats.mean()))
    ((job,), _) = zoo.jobs({"latin": zoo.WorldRecipe("latin(n=4)", "clues", walks=2000)})
    assert job.held is not None and len(job.held) == zoo.HELD
    assert not torch.equal(job.held, job.walks[: zoo.HELD])


def test_a_model_trained_by_an_installed_package_can_be_read(tmp_path: Path) -> None:
    """Where the package runs from no checkout there is no commit to name."""
    job = Job("law", small_law(length=4).sample(64, seed=1), 0, 0.0, None, None)
    settings = Settings(steps=2, batch=8, every=2)
    train(TINY, [job], settings, tmp_path, live=False, about=[{"commit": None}])
    assert load_pretrained(tmp_path).about["commit"] is None


def test_the_bound_is_the_loss_without_its_noise() -> None:
    """Averaged over random orders it is Σ_k (1/k) E over sets of k positions, by enumeration."""
    flat, walk = rough(TINY, 1), torch.tensor([1, 3, 0, 2])
    exact = 0.0
    for mask, nats in every_mask(TINY, flat, walk).items():
        if k := sum(mask):
            exact += nats / k / math.comb(4, k) / 4
    found = bound(
        TINY, grouped(TINY, flat), walk.expand(1, 3000, 4), TINY.angles(4, "cpu"), seed=5
    )[0]
    assert abs(float(found.mean()) - exact) < 4 * float(found.std()) / math.sqrt(3000)


def test_times_are_antithetic_and_masks_follow_them() -> None:
    noise = Noise(TINY, [3], [0.0], 200, 1000)
    walks = torch.zeros(1, 1000, 200, dtype=torch.int64)
    tokens, masked, times = noise.corrupt(walks, torch.tensor(17))
    slices = ((times[0].double() - EPSILON) / (1 - EPSILON) * 1000).floor()
    assert (
        slices.sort().values - torch.arange(1000)
    ).abs().max() <= 1  # one in each, rounding aside
    assert slices.unique().numel() > 990
    share, p = masked[0].double().mean(1), (1 - EPSILON) * times[0].double()
    z = (share - p) / (p * (1 - p) / 200).sqrt().clamp(min=1e-3)
    assert abs(float(z.mean())) < 4 / math.sqrt(1000) and 0.8 < float(z.std()) < 1.2
    assert torch.equal(tokens == TINY.mask_id, masked)
    _, _, others = noise.corrupt(walks, torch.tensor(18))
    assert not torch.equal(times, others)
    half = Noise(TINY, [3], [0.0], 200, 1000, first=500, share=500)
    assert torch.equal(half.corrupt(walks[:, 500:], torch.tensor(17))[0], tokens[:, 500:])


def test_epochs_visit_every_walk_once() -> None:
    table = torch.arange(20)[:, None].expand(20, 3)
    walks = Walks([table, table[:7] + 100, table[:2] + 200], torch.tensor([1, 1, 1]), 4)
    seen: list[Tensor] = []
    for step in range(10):
        walks.shuffle(step)
        seen.append(walks.gather(torch.tensor(step), torch.arange(4))[:, :, 0])
    first = torch.cat([s[0] for s in seen[:5]])
    again = torch.cat([s[0] for s in seen[5:]])
    assert sorted(first.tolist()) == sorted(again.tolist()) == list(range(20))
    assert first.tolist() != again.tolist()
    assert all(len(set(s[1].tolist())) == 4 for s in seen)  # one batch an epoch, no repeats
    assert all(set(s[2].tolist()) == {200, 201} for s in seen)  # fewer walks than a batch
    other = Walks([table, table[:7], table[:2]], torch.tensor([1, 1, 1]), 4)
    other.shuffle(7, resume=True)
    assert torch.equal(other.gather(torch.tensor(7), torch.arange(4))[0, :, 0], seen[7][0])


def test_schedule_and_average_are_the_papers() -> None:
    settings = Settings()
    rates = [float(learning_rate(settings, torch.tensor(n))) for n in (0, 2500, 5000, 27500, 50000)]
    expected = [1e-6, (1e-6 + 3e-4) / 2, 3e-4, (1e-6 + 3e-4) / 2, 1e-6]
    assert rates == pytest.approx(expected, rel=1e-12)
    decays = [float(averaging(settings, torch.tensor(k))) for k in (1, 90, 10**6)]
    assert decays == pytest.approx([2 / 11, 0.91, 0.9999])


def test_the_update_is_adamw_after_clipping_each_model_by_itself() -> None:
    settings = Settings(steps=40, lr=1e-2, weight_decay=0.1, clip=1.0)
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(2, n, generator=generator) for n in (7, 3)]
    parts, step = [Part.start(t) for t in start], torch.tensor(0)
    mine = [[torch.nn.Parameter(t[m].clone()) for t in start] for m in range(2)]
    optimisers = [
        torch.optim.AdamW(p, lr=1.0, weight_decay=0.1, betas=(0.9, 0.999), eps=1e-8) for p in mine
    ]
    averages = [[p.detach().clone() for p in ps] for ps in mine]
    for n in range(12):
        size = torch.tensor([[0.1], [3.0]])  # the first model is never clipped, the second always
        gradients = [torch.randn(t.shape, generator=generator) * size for t in start]
        update(settings, parts, [g.clone() for g in gradients], None, step)
        for m in range(2):
            for parameter, gradient in zip(mine[m], gradients):
                parameter.grad = gradient[m].clone()
            torch.nn.utils.clip_grad_norm_(mine[m], 1.0)
            optimisers[m].param_groups[0]["lr"] = float(learning_rate(settings, torch.tensor(n)))
            optimisers[m].step()
            keep = min(0.9999, (2 + n) / (11 + n))
            for average, parameter in zip(averages[m], mine[m]):
                average.mul_(keep).add_(parameter.detach(), alpha=1 - keep)
    assert int(step) == 12
    for k, part in enumerate(parts):
        for m in range(2):
            torch.testing.assert_close(part.weights[m], mine[m][k].detach())
            torch.testing.assert_close(part.average[m], averages[m][k])


@pytest.fixture(scope="module")
def walks() -> Tensor:
    return small_law(length=4).sample(300, seed=0)


def test_models_trained_together_are_those_trained_alone(walks: Tensor) -> None:
    jobs = [Job("a", walks, 0, 0.0), Job("b", walks[:130], 9, 0.0), Job("c", walks, 4, 0.0)]
    settings = Settings(steps=40, batch=16, lr=3e-3)
    together = Stepper(TINY, jobs, settings)
    losses = together.advance(15)
    for m, job in enumerate(jobs):
        alone = Stepper(TINY, [job], settings)
        torch.testing.assert_close(losses[:, m : m + 1], alone.advance(15), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            together.averages()[m : m + 1], alone.averages(), rtol=1e-3, atol=1e-4
        )
    assert losses[-3:].mean() < losses[:3].mean()


def test_dropout_is_the_same_alone_and_together(walks: Tensor) -> None:
    jobs = [Job("a", walks, 0, 0.3), Job("b", walks, 9, 0.1)]
    settings = Settings(steps=40, batch=16, lr=3e-3)

    def losses(jobs: list[Job]) -> Tensor:
        stepper = Stepper(TINY, jobs, settings)
        for part, rows in zip(stepper.parts, layout(TINY).parts(rough(TINY))):
            part.weights.copy_(rows.expand_as(part.weights))  # fresh gates hide the branches
        return stepper.advance(3)

    together = losses(jobs)
    for m, job in enumerate(jobs):
        torch.testing.assert_close(together[:, m : m + 1], losses([job]), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(losses([Job("a", walks, 0, 0.0)]), together[:, :1], rtol=1e-2)


def test_advance_in_pieces_is_advance(walks: Tensor) -> None:
    settings = Settings(steps=400, batch=64, lr=1e-3)
    whole, pieces = (Stepper(TINY, [Job("a", walks)], settings) for _ in range(2))
    losses = whole.advance(12)
    assert torch.equal(losses, torch.cat([pieces.advance(n) for n in (1, 4, 7)]))
    third = Stepper(TINY, [Job("a", walks)], settings)
    third.load(pieces.tensors(), 12)
    assert torch.equal(third.advance(3), whole.advance(3))


def test_a_small_model_learns_its_law(tmp_path: Path) -> None:
    """The bound falls to near the floor, and the conditionals to near the oracle's."""
    law = small_law(length=4)
    config = DDiTConfig(vocab_size=5, length=4, hidden=32, cond=8, blocks=1, heads=2)
    floor = law.entropy() / 4
    job = Job("law", law.sample(20_000, seed=1), 0, 0.0, law.sample(200, seed=2), floor)
    settings = Settings(steps=500, batch=128, lr=1e-2, ema=0.98, every=500)
    (model,) = train(config, [job], settings, tmp_path, live=False)
    assert model.about["floor"] == floor
    assert floor - 4 * model.about["bound_se"] < model.about["bound"] < floor * 1.12
    walk = law.sample(64, seed=3)
    shown = torch.rand(walk.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    tokens = torch.where(shown, walk, 5)
    oracle, network = oracle_for(law)(tokens).exp(), model.denoiser()(tokens).exp()
    distance = 0.5 * (oracle - network).abs().sum(1).mean()
    fresh = NetworkDenoiser(config, layout(config).initial([0])[0])(tokens).exp()
    assert float(distance) < 0.1
    assert float(0.5 * (oracle - fresh).abs().sum(1).mean()) > 0.25


def test_mistakes_are_sentences(walks: Tensor, tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match="vocabulary is 0 to 4"):
        train(TINY, [Job("a", walks + 1)], Settings(), tmp_path)
    with pytest.raises(MaskwalkError, match="shared evenly"):
        Stepper(TINY, [Job("a", walks)], Settings(batch=15), world=2)
    with pytest.raises(MaskwalkError, match="one length"):
        Walks([walks, walks[:, :2]], torch.tensor([0, 1]), 4)
    with pytest.raises(MaskwalkError, match="steps must be"):
        Settings(steps=0)
    with pytest.raises(MaskwalkError, match="dropout"):
        Job("a", walks, 0, 1.5)


def test_a_zoo_is_trained_watched_and_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way of `reproduce --train`, with next to no training; the zoo then answers."""
    monkeypatch.setattr(zoo, "HELD", 4)
    settings = Settings(steps=2, batch=4, every=2)
    made = fit_zoo(
        ["two_b1"],
        tmp_path / "zoo",
        tmp_path / "work",
        settings=settings,
        device="cpu",
        resume=False,
        samples=2,
        commit="abc",
    )
    manifest = zoo_manifest(tmp_path / "zoo")
    assert list(manifest) == list(made) == ["two_b1"]
    about = manifest["two_b1"]
    assert about["commit"] == "abc" and about["device"] == "CPU"
    assert about["trained_together"] == 1 and about["bound"] > about["floor"]
    assert 0 <= about["coherence"] <= 1 and 0 <= about["coherence_bisection"] <= 1
    assert load_zoo("two_b1", tmp_path / "zoo").denoiser().vocab_size == 500
