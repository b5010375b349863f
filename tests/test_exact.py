import pytest
import torch

from maskwalk.analysis.law import bridge_law, sampler_law, total_variation
from maskwalk.decoding.draw import Draw
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import STANDS, small_law
from tests.mutants.samplers import NoiseInConfidence

LAW = STANDS["chain"]
ORACLE = oracle_for(LAW)
FULL = torch.full((LAW.length,), ORACLE.mask_id)
NU = bridge_law(LAW, FULL, ORACLE.mask_id)


@pytest.mark.parametrize(
    "spec",
    ["random()", "entropy()", "margin()", "left_to_right", "bisection()", "guided_bisection()"],
)
def test_exact_samplers_have_the_law_of_the_walks(spec: str) -> None:
    law = sampler_law(SAMPLERS.build(spec), ORACLE, FULL)
    assert float(law[1].sum()) == pytest.approx(1, abs=1e-12)
    assert total_variation(law, NU) < 1e-12


def test_random_two_at_a_time_by_hand() -> None:
    """Two tokens, three positions, a chain: all 3 first pairs, then the third given both."""
    law = small_law("st_er(nodes=2, p=0.0)", "lazy(stay=0.25)", 3, 0)
    oracle = oracle_for(law)
    outputs, probs = sampler_law(SAMPLERS.build("random(block=2)"), oracle, torch.full((3,), 2))
    found = {tuple(x): p for x, p in zip(outputs.tolist(), probs.tolist())}
    # Marginals are uniform: the pair is drawn as ¼ each; the third from its exact conditional.
    step, two = {True: 0.25, False: 0.75}, {True: 0.25**2 + 0.75**2, False: 2 * 0.25 * 0.75}
    for (a, b, c), p in found.items():
        last = step[b == c]  # first pair {0, 1}
        first = step[a == b]  # first pair {1, 2}
        middle = step[a == b] * step[b == c] / two[a == c]  # first pair {0, 2}
        assert p == pytest.approx(0.25 * (last + first + middle) / 3, abs=1e-12)


def test_bridges_and_draw_options_are_part_of_the_law() -> None:
    start = FULL.clone()
    walk = LAW.sample(1, 0)[0]
    start[0], start[-1] = walk[0], walk[-1]
    bridge = bridge_law(LAW, start, ORACLE.mask_id)
    bisection = SAMPLERS.build("bisection()")
    assert total_variation(sampler_law(bisection, ORACLE, start), bridge) < 1e-12
    cold = sampler_law(bisection, ORACLE, start, draw=Draw(temperature=0.5))
    assert total_variation(cold, bridge) > 0.01
    with pytest.raises(MaskwalkError, match="bfloat16"):
        sampler_law(bisection, ORACLE, start, draw=Draw(precision="bfloat16"))
    with pytest.raises(MaskwalkError, match="agrees"):
        far = FULL.clone()
        away = (LAW.next_probs(walk[:1][None])[0] == 0).nonzero()[0, 0]
        far[0], far[1] = walk[0], away
        bridge_law(LAW, far, ORACLE.mask_id)


def test_index_ties_are_one_of_the_enumerated_orders() -> None:
    flat = oracle_for(small_law("st_er(nodes=3, p=1.0)", "lazy()", 3))
    one = sampler_law(SAMPLERS.build("entropy(block=2)"), flat, torch.full((3,), 3), ties="index")
    assert len(one[0]) == 27 and torch.allclose(one[1], torch.full((27,), 1 / 27).double())


def test_what_cannot_be_enumerated_says_so() -> None:
    with pytest.raises(MaskwalkError, match="not enumerable"):
        sampler_law(NoiseInConfidence(), ORACLE, FULL)
    with pytest.raises(MaskwalkError, match="too many"):
        sampler_law(SAMPLERS.build("random()"), ORACLE, FULL, limit=10)
