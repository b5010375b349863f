"""Maskings: what a step shows and counts, and that the best answer stays the true conditional."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from maskwalk.analysis.replay import replay
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.looks import Looks
from maskwalk.training.loop import train
from maskwalk.training.maskings import MASKINGS, Along, Coarse, Distil, Mistakes
from maskwalk.training.objective import Noise, planned
from maskwalk.training.settings import Job, Settings
from maskwalk.training.step import Stepper
from tests.conftest import small_law

TINY = DDiTConfig(vocab_size=5, length=6, hidden=16, cond=4, blocks=1, heads=2)
WALKS = torch.arange(4096)[:, None].expand(-1, 6)[None] % 5


def network(steps: int = 40) -> tuple[NetworkDenoiser, Tensor]:
    """A network that has learned a little, and its training walks."""
    law = small_law(length=6)
    walks = law.sample(300, seed=1)
    config = DDiTConfig(law.vocab_size, 6, hidden=16, cond=4, blocks=1, heads=2)
    stepper = Stepper(config, [Job("a", walks)], Settings(steps=steps, batch=16, lr=0.02))
    stepper.advance(steps)
    return NetworkDenoiser(config, stepper.averages()[0]), walks


def contexts(masking: str, steps: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """(tokens, counted, share) of a few steps of one model."""
    noise = Noise(TINY, [3], [0.0], 6, 4096, maskings=[MASKINGS.build(masking)])
    made = [noise.context(WALKS, torch.tensor(step)) for step in range(steps)]
    return tuple(torch.cat([one[i][0] for one in made]) for i in (1, 2, 4))  # type: ignore


def test_uniform_is_what_training_always_did() -> None:
    step = torch.tensor(7)
    old = Noise(TINY, [3], [0.0], 6, 4096).corrupt(WALKS, step)
    new = Noise(TINY, [3], [0.0], 6, 4096, maskings=[MASKINGS.build("uniform")])
    found = new.context(WALKS, step)
    assert torch.equal(found.tokens, old[0]) and torch.equal(found.counted, old[1])
    assert torch.equal(found.times, old[2]) and torch.equal(found.share, old[2])


def test_coarse_reveals_at_even_distances() -> None:
    """Gaps between revealed positions differ by at most one, for strides of every size."""
    extra = torch.rand((5000, 5), generator=torch.Generator().manual_seed(0))
    extra[:, 3] = 0.9  # ends left as they are
    masked = Coarse().masked(extra, 24)
    gaps = [row.nonzero()[:, 0].diff() for row in ~masked]
    assert all(int(gap.max() - gap.min()) <= 1 for gap in gaps if len(gap))
    stride = 1.5 * 16 ** extra[:, 1]  # log-uniform, 1.5 to 24
    for low, high in ((1.5, 2), (2, 4), (4, 12), (12, 24)):
        rows = (stride >= low) & (stride < high)
        expected = float((1 / stride[rows]).mean())
        found = (~masked[rows]).float().mean(1)
        assert abs(float(found.mean()) - expected) < 4 * float(found.std()) / math.sqrt(rows.sum())


def test_coarse_reveals_both_ends_half_of_the_time() -> None:
    extra = torch.rand((4000, 5), generator=torch.Generator().manual_seed(0))
    extra[:, 1] = 1.0  # stride 24: one more position at most
    revealed = ~Coarse().masked(extra, 24)
    both = revealed[:, 0] & revealed[:, -1]
    assert torch.equal(both, extra[:, 3] < 0.5)
    assert int(revealed.sum(1).max()) == 3


def test_a_share_of_the_batch_is_coarse_and_the_rest_uniform() -> None:
    """Of every masking, so many of each pattern: with weight, patterns not coarse are uniform's."""
    tokens, counted, share = contexts("coarse(share=0.25, low=2.0, high=2.0)")
    assert torch.equal(tokens == TINY.mask_id, counted)
    # At stride 2 a coarse sample is one of four patterns: two offsets, with the ends or without.
    coarse = {(1, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 1), (0, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 0)}
    plain = contexts("uniform")[1]
    names = [Counter(tuple(row) for row in table.int().tolist()) for table in (counted, plain)]
    total = len(counted)
    for pattern in {*names[0], *names[1]}:
        expected = 0.75 * names[1][pattern] / total + (0.25 / 4 if pattern in coarse else 0.0)
        error = math.sqrt(2 * max(expected, 1 / total) / total)
        assert abs(names[0][pattern] / total - expected) < 5 * error, pattern
    mine = share[(counted.float().mean(1) == share)]
    assert abs(len(mine) / total - 0.25) < 0.02  # weight 1/(share masked); elsewhere 1/t


def test_maskings_of_models_trained_together_do_not_mix() -> None:
    walks = WALKS.expand(3, -1, -1)
    specs = ["uniform", "coarse(share=1.0)", "coarse(share=0.5)"]
    together = Noise(
        TINY, [3, 4, 5], [0.0] * 3, 6, 4096, maskings=[MASKINGS.build(s) for s in specs]
    )
    found = together.context(walks, torch.tensor(2))
    for model, spec in enumerate(specs):
        alone = Noise(TINY, [3 + model], [0.0], 6, 4096, maskings=[MASKINGS.build(spec)])
        expected = alone.context(WALKS, torch.tensor(2))
        assert all(torch.equal(a[model], b[0]) for a, b in zip(found, expected))


@pytest.mark.parametrize("counted", ["next", "all"])
def test_along_shows_what_the_policy_visits(counted: str) -> None:
    """Every context is a round of the policy on that walk, each round as often as the others, and
    with `next` the mean of what is counted is the policy's own −log q."""
    denoiser, walks = network()
    config = denoiser.config
    masking = Along(sampler="entropy(block=2)", counted=counted, sequences=3000)
    looks = Looks(masking, 6, "cpu")
    looks.refresh(denoiser, walks, seed=5, look=1)
    table = looks.table
    hidden = table.tokens == config.mask_id
    sampler, streams = SAMPLERS.build("entropy(block=2)"), Streams(5, 3000 + torch.arange(3000))
    chosen = table.walks.long()
    truth = replay(sampler, denoiser, chosen, streams=streams)
    rounds = Counter[int]()
    for masked, takes, round, share in zip(
        hidden, table.counted, truth.round, table.share.tolist()
    ):
        now = [r for r in range(3) if torch.equal(masked, round >= r)]
        assert len(now) == 1
        rounds[now[0]] += 1
        assert torch.equal(takes, round == now[0] if counted == "next" else masked)
        assert share == pytest.approx(1 / 3 if counted == "next" else float(masked.float().mean()))
    assert all(abs(rounds[r] - 1000) < 5 * math.sqrt(1000) for r in range(3))
    if counted == "next":
        nats = torch.where(table.counted, -truth.log_prob, 0.0).sum(1) / table.share
        error = float(nats.std()) / math.sqrt(len(nats))
        assert abs(float(nats.mean() + truth.log_prob.sum(1).mean())) < 4 * error
    # Drawn from the table, the walk comes with its own mask.
    extra = torch.rand((50, 5), generator=torch.Generator().manual_seed(0))
    got, entry = looks.gather(extra), (extra[:, 4] * 3000).long()
    assert all(torch.equal(a, b[entry]) for a, b in zip(got, table))
    assert torch.equal(got.tokens, got.walks.masked_fill(hidden[entry], config.mask_id))
    assert torch.equal(got.times, hidden[entry].float().mean(1))


def test_a_look_at_the_policy_sees_the_averaged_weights() -> None:
    """The table of step 6 is that of the weights of step 6, and stays until step 9."""
    law = small_law(length=6)
    masking = "along(sampler=entropy(block=2), every=3, sequences=64)"
    job = Job("a", law.sample(300, seed=1), 2, 0.0, masking=masking)
    config = DDiTConfig(law.vocab_size, 6, hidden=16, cond=4, blocks=1, heads=2)
    stepper = Stepper(config, [job], Settings(steps=20, batch=16, lr=0.05))
    stepper.advance(6)
    expected = Looks(stepper.noise.looks[0].masking, 6, "cpu")
    denoiser = NetworkDenoiser(config, stepper.averages()[0])
    expected.refresh(denoiser, job.walks, seed=2, look=2)
    stepper.advance(2)
    for name, tensor in expected.tensors().items():
        assert torch.equal(stepper.noise.looks[0].tensors()[name], tensor)
    stepper.advance(1)
    assert not torch.equal(stepper.noise.looks[0].table.walks, expected.table.walks)


def test_distil_learns_the_models_own_completions() -> None:
    """The shown context is of a training walk and coarse; the answers are what the slow sampler
    makes of it, with its law (checked on the context that comes most often)."""
    denoiser, walks = network()
    looks = Looks(Distil(sampler="left_to_right()", sequences=8000), 6, "cpu")
    looks.refresh(denoiser, walks, seed=5, look=0)
    shown, made = looks.table.tokens.long(), looks.table.walks.long()
    hidden = shown == denoiser.mask_id
    assert torch.equal(looks.table.counted, hidden) and torch.equal(shown[~hidden], made[~hidden])
    known = {tuple(walk) for walk in walks.tolist()}
    for context in shown[:50].tolist():
        assert any(all(a in (b, denoiser.mask_id) for a, b in zip(context, walk)) for walk in known)
    often = Counter(tuple(row) for row in shown.tolist() if row[0] == denoiser.mask_id)
    context = torch.tensor(often.most_common(1)[0][0])
    mine = made[(shown == context).all(1), 0]
    truth = denoiser(context[None])[0].exp()
    found = torch.bincount(mine, minlength=denoiser.vocab_size) / len(mine)
    assert sum(tuple(row) not in known for row in made.tolist()) > 1000  # not the data's walks
    assert len(mine) > 100
    assert float((found - truth).abs().max()) < 5 * math.sqrt(0.25 / len(mine))


def test_mistakes_are_the_models_own_tokens() -> None:
    """Complete sequences with tokens redrawn, which a model that knows little gets wrong."""
    denoiser, walks = network()
    looks = Looks(Mistakes(rate=0.4, sequences=4000), 6, "cpu")
    looks.refresh(denoiser, walks, seed=5, look=0)
    table = looks.table
    assert bool(table.counted.all()) and bool((table.share == 1).all())
    assert not bool((table.tokens == denoiser.mask_id).any())
    changed = float((table.tokens != table.walks).float().mean())
    # Redrawn: .2 of the tokens on average; changed: those whose new token is another one.
    kept = []
    for place in range(6):
        answers = denoiser(walks.masked_fill(torch.arange(6) == place, denoiser.mask_id)).exp()
        kept.append(float(answers.gather(1, walks[:, place, None]).mean()))
    assert abs(changed - 0.2 * (1 - sum(kept) / 6)) < 0.02


def test_a_planner_counts_sure_positions_more() -> None:
    """1 + α·n·softmax(log p): by hand on one sequence; n positions count n(1 + α) together."""
    nats = torch.tensor([[[0.1, 2.0, 5.0, 0.3]]])
    counted = torch.tensor([[[True, True, False, True]]])
    found = planned(nats, counted, torch.tensor([0.5]))[0, 0]
    weights = torch.tensor([0.1, 2.0, 0.3]).neg().exp()
    expected = 1 + 0.5 * 3 * weights / weights.sum()
    assert torch.allclose(found[[0, 1, 3]], expected)
    assert float(found[[0, 1, 3]].sum()) == pytest.approx(3 * 1.5)
    job = Job("a", small_law(length=6).sample(300, seed=1), 2, 0.0)
    config = DDiTConfig(5, 6, hidden=16, cond=4, blocks=1, heads=2)
    losses = [
        Stepper(config, [replace(job, masking=m)], Settings(steps=9, batch=64)).advance(1)
        for m in ("uniform", "uniform(planner=1.0)")
    ]
    # A network that knows nothing says the same everywhere: all positions alike, twice the loss.
    assert float(losses[1] / losses[0]) == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize(
    "masking",
    [
        "coarse()",
        "mistakes(every=7, sequences=32)",
        "along(sampler=bisection(), every=7, sequences=32)",
    ],
)
def test_a_run_goes_on_to_the_same_bytes(masking: str, tmp_path: Path) -> None:
    """Stopped between two looks at the policy, and resumed."""
    law = small_law(length=6)
    config = DDiTConfig(law.vocab_size, 6, hidden=16, cond=4, blocks=1, heads=2)
    job = Job("a", law.sample(300, seed=1), 2, 0.1, masking=MASKINGS.canonical(masking))
    whole = Stepper(config, [job], settings := Settings(steps=24, batch=16, lr=3e-3, every=10))
    whole.advance(24)
    first = Stepper(config, [job], settings)
    first.advance(10)
    state = {name: tensor.clone() for name, tensor in first.tensors().items()}
    again = Stepper(config, [job], settings)
    again.load(state, 10)
    again.advance(14)
    assert torch.equal(again.averages(), whole.averages())
    plain = Stepper(config, [Job("a", job.walks, 2, 0.1)], settings)
    plain.advance(24)
    assert not torch.equal(plain.averages(), whole.averages())
    trained = train(config, [job], settings, tmp_path / "a", live=False)[0]
    assert trained.about["masking"] == job.masking


def test_mistakes_are_sentences() -> None:
    for spec, said in (
        ("coarse(share=2.0)", "share"),
        ("coarse(low=0.5)", "low"),
        ("coarse(low=4.0, high=2.0)", "high"),
        ("uniform(share=0.5)", "share"),
        ("mistakes(rate=1.5)", "rate"),
        ("coarse(planner=-1.0)", "planner"),
        ("along(counted='some')", "next"),
        ("along(sampler=p2())", "cannot be replayed"),
        ("fine", "coarse"),
    ):
        with pytest.raises(MaskwalkError, match=said):
            MASKINGS.build(spec)
