import numpy as np
import pytest
import torch

from maskwalk.errors import MaskwalkError
from maskwalk.stats import mean
from maskwalk.worlds.metrics import Sample, coherence, first_invalid, measure
from maskwalk.worlds.tasks import Prompts
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.walks.metrics import transition_tv, tv
from tests.conftest import STANDS, small_law

LAW = small_law("st_er(nodes=6, p=0.2)", "lazy(stay=0.2)", 8)


def sample_of(law: WalkLaw, walks: torch.Tensor, conditional: bool = False) -> Sample:
    n = len(walks)
    calls = torch.full((n,), 4)
    task = Prompts(walks, conditional)
    return Sample(law, walks, calls, torch.arange(n), torch.full((n,), 8), task)


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
