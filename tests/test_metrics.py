import numpy as np
import pytest
import torch
from scipy.stats import chi2

from maskwalk.analysis.law import bridge_law
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import LeftToRight
from maskwalk.stats import goodness_of_fit, mean
from maskwalk.streams import Streams
from maskwalk.worlds.exact.metrics import pair_tv
from maskwalk.worlds.metrics import Sample, coherence, first_invalid, measure
from maskwalk.worlds.ranks import exact_bridges, rank_tv, tenths
from maskwalk.worlds.tasks import TASKS, Prompts
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.walks.metrics import transition_tv, tv
from maskwalk.worlds.world import build_world
from tests.conftest import STANDS, small_law

LAW = small_law("st_er(nodes=6, p=0.2)", "lazy(stay=0.2)", 8)


def sample_of(
    law: WalkLaw, walks: torch.Tensor, conditional: bool = False, seed: int = 0
) -> Sample:
    n = len(walks)
    calls = torch.full((n,), 4)
    task = Prompts(walks, conditional)
    return Sample(law, walks, calls, torch.arange(n), torch.full((n,), 8), task, seed)


def test_coherence_counts_whole_walks() -> None:
    walks = LAW.sample(40, 0)
    away = (LAW.next_probs(walks[:1, 2:3])[0] == 0).nonzero()[0, 0]
    walks[0, 3] = away
    sample = sample_of(LAW, walks)
    assert coherence(sample).value == pytest.approx(39 / 40)
    assert first_invalid(sample).value == 3.0
    found = measure(sample, ("coherence", "first_invalid", "calls", "tokens_per_call", "tv1"))
    assert found["tokens_per_call"]["value"] == 2.0 and found["calls"]["max"] == 4
    perfect = measure(sample_of(LAW, LAW.sample(9, 0)), ("first_invalid",))
    assert perfect["first_invalid"]["value"] is None and perfect["first_invalid"]["n"] == 0


def test_standard_errors_are_clustered_by_prompt() -> None:
    """Ten prompts, all 20 samples of a prompt alike: ten independent numbers, not two hundred."""
    values = torch.tensor([1.0, 0.0]).repeat(5).repeat_interleave(20)
    clustered = mean(values, torch.arange(10).repeat_interleave(20))
    assert clustered.se == pytest.approx(np.std([1.0, 0.0] * 5, ddof=1) / np.sqrt(10))
    alone = mean(values, torch.arange(200))
    assert alone.se == pytest.approx(values.std().item() / np.sqrt(200), rel=1e-6)
    # The paper's spread: population standard deviation of four group means.
    groups = [np.mean(part) for part in np.array_split([1.0, 0.0] * 5, 4)]
    assert clustered.extra["group_sd"] == pytest.approx(np.std(groups))
    assert np.isnan(mean(torch.ones(1), torch.zeros(1)).se)


@pytest.mark.parametrize("k", [1, 2])
def test_tv_against_the_formula(k: int) -> None:
    law = STANDS["order-2"] if k == 2 else LAW
    walks = torch.randint(0, law.vocab_size, (50, 8), generator=torch.Generator().manual_seed(0))
    counts: dict[tuple, np.ndarray] = {}
    for row in walks.tolist():
        for t in range(k, 8):
            counts.setdefault(tuple(row[t - k : t]), np.zeros(law.vocab_size))[row[t]] += 1
    total = sum(c.sum() for c in counts.values())
    expected = sum(
        0.5
        * (c.sum() / total)
        * np.abs(c / c.sum() - law.next_probs(torch.tensor([h]))[0].numpy()).sum()
        for h, c in counts.items()
    )
    assert transition_tv(law, walks, k) == pytest.approx(expected, abs=1e-12)


def test_tv_of_a_schedule_has_a_row_for_every_step() -> None:
    law = small_law("st_er(nodes=4, p=0.3)", "schedule(laws=[lazy(stay=0.7), lazy(stay=0)])", 12)
    walks = torch.randint(0, 4, (50, 12), generator=torch.Generator().manual_seed(0))
    counts: dict[tuple, np.ndarray] = {}
    for row in walks.tolist():
        for t in range(1, 12):
            counts.setdefault((t, row[t - 1]), np.zeros(4))[row[t]] += 1
    expected = sum(
        0.5 * np.abs(c - c.sum() * law.step_probs(t, torch.tensor([[u]]))[0].numpy()).sum()
        for (t, u), c in counts.items()
    ) / (50 * 11)
    assert transition_tv(law, walks, 1) == pytest.approx(expected, abs=1e-12)
    # The same kernels in the other order have every step right, at the wrong time.
    late = small_law("st_er(nodes=4, p=0.3)", "schedule(laws=[lazy(stay=0), lazy(stay=0.7)])", 12)
    own, other = (tv(sample_of(law, one.sample(400, 5)), 1) for one in (law, late))
    assert own is not None and abs(own.extra["excess"]) < 6 * (own.se + own.extra["floor_se"])
    assert other is not None and other.extra["excess"] > 0.3


def test_coherence_by_level_is_that_of_each_level() -> None:
    law = small_law("community_hierarchy(depth=2, branching=2, nodes=4, p=0.3)", length=9)
    task = TASKS.build("levels", world=law, prompts=60, seed=0)
    assert task.answers is not None
    walks = task.answers.clone()
    high = task.labels["level"] == 2
    walks[high.nonzero()[:5, 0], 4] = walks[0, 0]  # five of the high ones leave the graph
    broken = ~law.valid(walks).all(1)
    sample = Sample(law, walks, None, torch.arange(60), torch.full((60,), 7), task)
    found = measure(sample, ("coherence_by_level",))["coherence_by_level"]
    assert found["value"] == pytest.approx(1 - broken.sum().item() / 60) and broken.any()
    one, two = found["by"]
    assert one["at"] == 1 and one["value"] == 1.0
    assert two["at"] == 2 and two["value"] == pytest.approx(1 - (broken.sum() / high.sum()).item())
    assert measure(sample_of(law, walks), ("coherence_by_level",))["coherence_by_level"] is None


def test_the_floor_is_that_of_as_many_exact_walks() -> None:
    """The mean over eight sets of as many walks as were measured, and the error of that mean."""
    sets = [LAW.sample(60, 3, first=2_000_000_000 + 60 * i) for i in range(8)]
    values = [transition_tv(LAW, walks, 1) for walks in sets]
    found = tv(sample_of(LAW, LAW.sample(60, 3), seed=3), 1)
    assert found is not None
    assert found.extra["floor"] == pytest.approx(np.mean(values), abs=1e-12)
    assert found.extra["floor_se"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(8))
    assert found.extra["excess"] == pytest.approx(found.value - np.mean(values))


def test_tv_stands_beside_its_floor() -> None:
    found = tv(sample_of(LAW, LAW.sample(200, 5)), 1)
    assert found is not None
    assert abs(found.extra["excess"]) < 6 * (found.se + found.extra["floor_se"])
    assert found.extra["floor"] > 0.01  # exact walks do not get zero: that is why it is shown
    wrong = small_law("st_er(nodes=6, p=0.2)", "lazy(stay=0.6)", 8)
    other = tv(sample_of(LAW, wrong.sample(200, 5)), 1)
    assert other is not None and other.extra["excess"] > 10 * other.se
    assert tv(sample_of(LAW, LAW.sample(20, 5), conditional=True), 1) is None
    with pytest.raises(MaskwalkError, match="no transition"):
        transition_tv(LAW, LAW.sample(2, 0), 8)


@pytest.mark.parametrize("stay", [0.2, 0.6])
def test_the_error_of_tv_is_its_spread_over_independent_sets(stay: float) -> None:
    """On the law's own walks, where the TV is all noise, and on walks of another law."""
    law = small_law("st_er(nodes=60, p=0.05)", "lazy(stay=0.2)", 12)
    source = small_law("st_er(nodes=60, p=0.05)", f"lazy(stay={stay})", 12)
    sets = [tv(sample_of(law, source.sample(256, 3, first=256 * i)), 1) for i in range(80)]
    spread = np.std([one.value for one in sets], ddof=1)
    errors = np.sqrt(np.mean([one.se**2 for one in sets]))
    assert 0.8 < errors / spread < 1.25  # the jackknife's: 1.5 and more


def test_the_error_of_pair_tv_is_its_spread_over_independent_sets() -> None:
    world = build_world("hmm(states=4, tokens=6, length=8)")
    sets = [pair_tv(sample_of(world, world.sample(256, 3, first=256 * i))) for i in range(60)]
    spread = np.std([one.value for one in sets], ddof=1)
    assert 0.75 < np.sqrt(np.mean([one.se**2 for one in sets])) / spread < 1.3


def prompted(world: WalkLaw, tokens: torch.Tensor, prompts: Prompts) -> Sample:
    per_prompt = len(tokens) // len(prompts.tokens)
    masked = (prompts.tokens == world.vocab_size).sum(1).repeat_interleave(per_prompt)
    which = torch.arange(len(prompts.tokens)).repeat_interleave(per_prompt)
    return Sample(world, tokens, None, which, masked, prompts)


def test_ranks_between_given_tokens_tell_exact_samples_from_others() -> None:
    """Exact bridges are at the floor; likely tokens only, and one bridge eight times, are not."""
    world = small_law("st_er(nodes=20, p=0.1)", "lazy(stay=0.2)", 10)
    prompts = TASKS.build("endpoints", world=world, prompts=64, seed=1)
    start = prompts.tokens.repeat_interleave(8, 0)
    estimates = []
    for ids, draw in (
        (torch.arange(512), Draw()),
        (torch.arange(512), Draw(top_p=0.6)),
        (torch.arange(512) // 8, Draw()),
    ):
        streams = Streams(5, ids)
        tokens = decode(LeftToRight(), world.oracle(), start, streams=streams, draw=draw).tokens
        estimates.append(rank_tv(prompted(world, tokens, prompts)))
    exact, sharpened, repeated = estimates
    assert abs(exact.extra["excess"]) < 4 * (exact.se + exact.extra["floor_se"])
    assert sharpened.extra["excess"] > 5 * sharpened.se
    assert repeated.extra["excess"] > 8 * repeated.se


@pytest.mark.parametrize("world", ["hmm(states=4, tokens=6, length=8)", "latin(n=4)"])
def test_ranks_of_whole_sequences_tell_exact_samples_from_others(world: str) -> None:
    law = build_world(world)
    start = torch.full((512, law.length), law.vocab_size)
    streams, draws = Streams(5, torch.arange(512)), (Draw(), Draw(temperature=0.6))
    exact, sharpened = (
        rank_tv(
            sample_of(
                law, decode(LeftToRight(), law.oracle(), start, streams=streams, draw=d).tokens
            )
        )
        for d in draws
    )
    repeated = rank_tv(sample_of(law, law.sample(1, 0).repeat(512, 1)))
    assert abs(exact.extra["excess"]) < 5 * (exact.se + exact.extra["floor_se"])
    assert repeated.extra["excess"] > 0.05
    if world.startswith("hmm"):  # in a Latin square all neighbours are as likely
        assert sharpened.extra["excess"] > 5 * sharpened.se


def test_tenths_of_ranks_by_hand() -> None:
    probs = torch.tensor([[0.5, 0.25, 0.25, 0.0]], dtype=torch.float64)
    found = tenths(probs, torch.tensor([[0, 1, 2, 3]]))[0]
    first = [0.2] * 5 + [0.0] * 5
    second, third = [0.0] * 5 + [0.4, 0.4, 0.2, 0.0, 0.0], [0.0] * 7 + [0.2, 0.4, 0.4]
    never = [0.0] * 9 + [1.0]
    for row, expected in zip(found, (first, second, third, never)):
        assert row.tolist() == pytest.approx(expected, abs=1e-12)
    # Under the law itself ranks are uniform, whatever the marginal.
    assert (probs[0] @ found).tolist() == pytest.approx([0.1] * 10, abs=1e-12)


def test_bridge_ranks_against_their_definition() -> None:
    """One prompt by hand: the conditionals of enumerated walks, ranks, tenths, distance."""
    world = small_law("st_er(nodes=4, p=0.3)", "lazy(stay=0.2)", 4)
    prompts = TASKS.build("endpoints", world=world, prompts=1, seed=3)
    tokens = world.sample(6, 7)
    tokens[:, [0, -1]] = prompts.tokens[:, [0, -1]]
    sequences = torch.cartesian_prod(*[torch.arange(4)] * 4)
    probs = world.log_prob(sequences).exp()
    fits = (sequences[:, [0, -1]] == prompts.tokens[0, [0, -1]]).all(1)
    histogram = torch.zeros(10, dtype=torch.float64)
    for position in (1, 2):
        law = torch.bincount(sequences[fits, position], probs[fits], minlength=4)
        histogram += tenths((law / law.sum())[None], tokens[None, :, position])[0].mean(0) / 2
    expected = float((histogram - 0.1).abs().sum() / 2)
    assert rank_tv(prompted(world, tokens, prompts)).value == pytest.approx(expected, abs=1e-9)


def test_exact_bridges_have_the_conditional_law() -> None:
    world = small_law("st_er(nodes=4, p=0.3)", "lazy(stay=0.2)", 4)
    prompt = TASKS.build("endpoints", world=world, prompts=1, seed=3).tokens
    bridges = exact_bridges(world, prompt.repeat(4000, 1), 2)
    outputs, probs = bridge_law(world, prompt[0], world.vocab_size)
    statistic, freedom = goodness_of_fit(bridges, outputs, probs)
    assert chi2.sf(statistic, freedom) > 1e-6


def test_ranks_need_several_samples_of_a_prompt() -> None:
    prompts = TASKS.build("endpoints", world=LAW, prompts=4, seed=3)
    assert rank_tv(prompted(LAW, LAW.sample(4, 0), prompts)) is None
