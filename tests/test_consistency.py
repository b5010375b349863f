"""Order consistency: zero for an oracle, closed forms for models that contradict themselves."""

import json
from collections.abc import Callable
from itertools import permutations, product
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
import torch

from maskwalk.analysis.consistency import LAYOUTS, Orders, block_orders, blocks
from maskwalk.analysis.paths import along_paths
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import STANDS
from tests.text_files import own_model

Cli = Callable[..., tuple[int, str, str]]
LAW = STANDS["order-2"]


class Contrary:
    """Two coins: the second agrees with the first by `forward`, the first with it by `back`."""

    vocab_size, mask_id, score_grid = 2, 2, 1e-9

    def __init__(self, forward: float, back: float) -> None:
        self.agree = (back, forward)

    def __call__(self, tokens: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        at = tokens == 2 if at is None else at
        rows = []
        for row, place in at.nonzero().tolist():
            other, share = int(tokens[row, 1 - place]), self.agree[place]
            same = [0.5, 0.5] if other == 2 else [1 - share, share]
            rows.append([same[int(x == other)] for x in (0, 1)])
        return torch.tensor(rows, dtype=torch.float64).log()


def whole_orders(model: object, tokens: torch.Tensor, orders: int) -> Orders:
    rule = SAMPLERS.build("random(block=1)")
    return Orders.of_paths(along_paths(rule, LanguageModel(model, None), tokens, orders))  # type: ignore[arg-type]


def test_an_oracle_gives_every_order_the_laws_own_probability() -> None:
    oracle, walks = oracle_for(LAW), LAW.sample(12, 0)
    found = whole_orders(oracle, walks, 5)
    truth = LAW.log_prob(walks)
    np.testing.assert_allclose(found.nats, -truth.expand(5, -1), atol=1e-10)
    assert found.variance.value < 1e-20 and found.gap.value == pytest.approx(0, abs=1e-10)


def probability(seen: dict[int, int]) -> float:
    """Of these tokens at these places, by listing every sequence."""
    every = torch.tensor(list(product(range(LAW.vocab_size), repeat=LAW.length)))
    fits = torch.stack([every[:, i] == x for i, x in seen.items()]).all(0) if seen else ...
    return float(LAW.log_prob(every)[fits].exp().sum())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("revealed", [0.0, 0.5])
def test_blocks_of_an_oracle_by_listing_every_sequence(layout: str, revealed: float) -> None:
    oracle, walks = oracle_for(LAW), LAW.sample(6, 1)
    given = torch.zeros_like(walks).bool()
    given[:, 0] = True
    how = {"layout": layout, "revealed": revealed}
    found = block_orders(oracle, walks, given, 3, 4, **how, seed=5)  # type: ignore[arg-type]
    shown, chosen = blocks(given, 3, layout, revealed, 5)
    assert found.alone is not None
    for row, walk in enumerate(walks.tolist()):
        known = {i: walk[i] for i in (shown | given)[row].nonzero()[:, 0].tolist()}
        block = {i: walk[i] for i in chosen[row].tolist()}
        joint = log(probability(known | block) / probability(known))
        single = sum(
            log(probability(known | {i: x}) / probability(known)) for i, x in block.items()
        )
        np.testing.assert_allclose(found.nats[:, row], -joint, atol=1e-9)
        assert float(found.alone[row]) == pytest.approx(-single, abs=1e-9)
    assert found.dependence is not None
    each = found.alone - found.nats.mean(0)
    assert found.dependence.value == pytest.approx(float(each.mean()))


def test_a_model_that_contradicts_itself_has_the_variance_of_its_two_orders() -> None:
    model, pair = Contrary(0.9, 0.6), torch.tensor([[0, 0], [0, 1], [1, 1]])
    found = whole_orders(model, pair, 40)
    for row, (forward, back) in enumerate(((0.9, 0.6), (0.1, 0.4), (0.9, 0.6))):
        ends = [-log(0.5 * forward), -log(0.5 * back)]
        share = float((found.nats[:, row] - ends[0]).abs().lt(1e-9).double().mean())
        assert 0.2 < share < 0.8  # both orders occur, and nothing else
        assert all(min(abs(float(x) - end) for end in ends) < 1e-9 for x in found.nats[:, row])
        spread = 40 / 39 * share * (1 - share) * (ends[0] - ends[1]) ** 2
        assert float(found.nats[:, row].var()) == pytest.approx(spread)
    assert found.sd.value == pytest.approx(sqrt(found.variance.value)) and found.sd.value > 0.2
    assert whole_orders(Contrary(0.7, 0.7), pair, 8).variance.value < 1e-20


def test_the_gap_is_what_one_order_loses_to_the_mean_of_all() -> None:
    nats = torch.tensor([[1.0, 2.0], [3.0, 2.0]], dtype=torch.float64)
    mixed = -log((np.exp(-1) + np.exp(-3)) / 2)
    assert Orders(nats).gap.value == pytest.approx((2.0 - mixed + 0.0) / 2)
    assert Orders(nats).variance.value == pytest.approx(1.0)  # (2 + 0) / 2
    with pytest.raises(MaskwalkError, match="at least two"):
        Orders(nats[:1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_lie_in_what_is_free_and_the_rest_is_revealed_by_its_share(layout: str) -> None:
    given = torch.zeros((200, 12)).bool()
    given[:, 0] = given[:, -1] = True
    shown, chosen = blocks(given, 4, layout, 0.5, 0)
    assert not bool((shown & given).any()) and shown.sum(1).tolist() == [3] * 200
    assert not bool(shown.gather(1, chosen).any())
    assert all(len(set(row)) == 4 and min(row) >= 1 and max(row) <= 10 for row in chosen.tolist())
    if layout == "neighbours":
        assert bool((chosen.diff(dim=1) == 1).all())
        assert set(chosen[:, 0].tolist()) == set(range(1, 8))
    for place in range(1, 11):  # every place is chosen and revealed by chance
        assert 0 < int(shown[:, place].sum()) < 200
    again = blocks(given[:50], 4, layout, 0.5, 0)
    assert torch.equal(again[0], shown[:50]) and torch.equal(again[1], chosen[:50])


def test_orders_of_a_block_are_all_of_them() -> None:
    """Three tokens of a model that answers by how many it sees: each order has its own cost."""
    model, walks = oracle_for(LAW), LAW.sample(1, 0).expand(60, -1)

    class Counting:
        vocab_size, mask_id, score_grid = model.vocab_size, model.mask_id, 1e-9

        def __call__(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            row, place = at.nonzero(as_tuple=True)
            seen = (tokens != self.mask_id).double() @ (
                10.0 ** torch.arange(tokens.shape[1])
            ).double()
            first = -(place + 1) * (1 + seen[row]) * 1e-6
            rest = ((1 - first.exp()) / (self.vocab_size - 1)).log()
            table = rest[:, None].repeat(1, self.vocab_size)
            table[torch.arange(len(row)), walks[0, place]] = first
            return table

    given = torch.zeros_like(walks).bool()
    found = block_orders(Counting(), walks, given, 3, 30, layout="scattered", revealed=0.0)
    chosen = blocks(given, 3, "scattered", 0.0, 0)[1]
    for row, block in enumerate(chosen.tolist()):
        costs = set()
        for order in permutations(block):
            seen, cost = 0.0, 0.0
            for place in order:
                cost += (place + 1) * (1 + seen) * 1e-6
                seen += 10.0**place
            costs.add(round(cost, 9))
        assert {round(float(x), 9) for x in found.nats[:, row]} <= costs
    assert len({round(float(x), 9) for x in found.nats[:, 0]}) > 3


def test_the_command_says_how_far_a_model_agrees_with_itself(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "tokens.npy", np.arange(96).reshape(16, 6) * 7 % 4)
    words = ["text", "consistency", f"{own_model(tmp_path)}:model", "--length", "6", "--texts"]
    words += [str(tmp_path / "tokens.npy"), "--count", "5", "--orders", "3", "--block", "2"]
    code, out, err = cli(*words, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["whole"]["sd"]["value"] > 0 and told["whole"]["tokens"] == 6
    assert [b["layout"] for b in told["blocks"]] == list(LAYOUTS)
    code, out, err = cli(*words)
    assert code == 0 and "sd over orders" in out and "2 neighbours" in out, err
    for more, sentence in (
        (("--orders", "1"), "orders"),
        (("--block", "9"), "2 to 6"),
        (("--revealed", "2"), "revealed"),
    ):
        code, _, err = cli(*words, *more)
        assert code == 2 and sentence in err, err
