"""Heads and the samplers that read them (benchmarks/heads.py): information, verifier, training."""

import pytest
import torch
import torch.nn.functional as F
from benchmarks import heads

from maskwalk.decoding.decode import decode
from maskwalk.denoisers.files import Pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.parts.runs import runs
from maskwalk.streams import Streams
from tests.conftest import small_law
from tests.test_self_correct import Ladder

for name in ("read_bisection", "looked_bisection", "verified"):
    del SAMPLERS._members[name]  # registered by the import; other tests are not to meet them


def informations(law: object, tokens: torch.Tensor, place: int, run: range, mask: int) -> float:
    """Σ_i I(i; place) over a run, from the oracle's conditionals: KL summed over every token."""
    oracle = law.oracle()  # type: ignore[attr-defined]
    before = oracle(tokens[None])
    masked = (tokens == mask).nonzero()[:, 0].tolist()
    total = 0.0
    for value in range(law.vocab_size):  # type: ignore[attr-defined]
        weight = float(before[masked.index(place), value].exp())
        if weight == 0:
            continue
        at = torch.zeros(1, len(tokens), dtype=torch.bool)
        at[0, [i for i in run if i != place]] = True
        after = oracle(tokens.index_fill(0, torch.tensor([place]), value)[None], at)
        rows = before[[masked.index(i) for i in run if i != place]]
        nats = torch.where(after.exp() > 0, after.exp() * (after - rows), 0.0)
        total += weight * float(nats.sum())
    return total


def test_what_candidates_tell_is_their_mutual_information() -> None:
    """Two runs of three; the mean over drawn tokens against the sum over all tokens."""
    law = small_law(length=7)
    mask, count = law.oracle().mask_id, 4000
    walk = law.sample(1, seed=5)[0]
    tokens = torch.where(torch.arange(7) == 3, walk, mask)
    wanted = [
        informations(law, tokens, place, run, mask)
        for place, run in ((1, range(3)), (5, range(4, 7)))
    ]
    assert min(wanted) > 0.1
    told = []

    class Told(heads.LookedBisection):
        def _told(self, *given: object) -> torch.Tensor:
            told.append(super()._told(*given))  # type: ignore[arg-type]
            return told[-1]

    decode(Told(draws=2), law.oracle(), tokens.expand(count, 7).clone(), streams=Streams(1, count))
    for place, exact in zip((1, 5), wanted):
        some = told[0][:, place]
        error = float(some.std() / count**0.5)
        assert abs(float(some.mean()) - exact) < 4 * error, (place, float(some.mean()), exact)


def test_a_candidate_is_told_by_its_own_run_only() -> None:
    law = small_law(length=7)
    oracle, walk = law.oracle(), law.sample(1, seed=5)
    masked = torch.arange(7)[None] != 3
    tokens = walk.masked_fill(masked, oracle.mask_id)
    start, _ = runs(masked)
    asked: list[torch.Tensor] = []

    def denoise(tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        asked.append(at)
        return oracle(tokens, at)

    tried = torch.arange(7)[None] == 1
    told = heads.informed(denoise, tokens, masked, oracle(tokens), start, tried, walk)  # type: ignore[arg-type]
    assert asked[0].tolist() == [[True, False, True, False, False, False, False]]
    assert bool((told[~tried] == 0).all()) and float(told[tried]) > 0


@pytest.mark.parametrize(("draws", "calls"), [(0, {2, 3}), (1, {4, 6}), (2, {6, 9})])
def test_every_try_is_a_call(draws: int, calls: set[int]) -> None:
    """Two runs of three, two candidates each, tried together. After the middle one place is left
    on either side, and there is nothing to try; after the first, a run of two with one candidate.
    """
    law = small_law(length=7)
    middle = torch.arange(7) == 3
    start = torch.where(middle, law.sample(200, seed=5), law.oracle().mask_id)
    made = decode(heads.LookedBisection(draws=draws), law.oracle(), start, streams=Streams(0, 200))
    assert bool(law.valid(made.tokens).all())  # bisection is exact on first-order walks
    assert set(made.calls.tolist()) == calls


def first_pick(rule: object, law: object, count: int) -> torch.Tensor:
    """Where each of the sequences is revealed first."""
    shown: list[torch.Tensor] = []
    start = torch.full((count, 7), law.oracle().mask_id)  # type: ignore[attr-defined]
    decode(
        rule,  # type: ignore[arg-type]
        law.oracle(),  # type: ignore[attr-defined]
        start,
        streams=Streams(3, count),
        on_round=lambda rows, tokens: shown.append(tokens != start[rows]),
    )
    assert bool((shown[1].sum(1) == 1).all())  # the first look is at the start
    return shown[1].long().argmax(1)


def test_the_most_informative_candidate_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the centre (four of seven places), whatever is told of the others."""
    law, told = small_law(length=7), []

    class Told(heads.LookedBisection):
        def _told(self, *given: object) -> torch.Tensor:
            told.append(super()._told(*given))  # type: ignore[arg-type]
            return told[-1]

    picked = first_pick(Told(draws=1), law, 64)
    assert torch.equal(picked, told[0].argmax(1)) and len(set(picked.tolist())) > 1
    nats = torch.tensor([9.0, 1.0, 2.0, 4.0, 3.0, 9.0, 9.0]).double()
    monkeypatch.setattr(heads, "reader", lambda *_: lambda tokens: nats.expand(tokens.shape))
    assert first_pick(heads.ReadBisection(head="x"), law, 8).tolist() == [3] * 8


def test_the_head_takes_back_what_it_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `self_correct` with a denoiser that doubts: a look that fills costs no call of its own."""

    def ladder(file: str, kind: str, device: str) -> object:
        assert (file, kind) == ("x", "replaced")
        return lambda tokens: 4.0 * (tokens != torch.arange(tokens.shape[1])) - 1.0

    monkeypatch.setattr(heads, "reader", ladder)
    for wrong, calls in (((2, 5), 3 + 2), ((), 3 + 1)):
        denoiser = Ladder(wrong)
        made = decode(
            heads.Verified(head="x", bar=0.9),
            denoiser,
            torch.full((1, 6), 8),
            streams=Streams(0, 1),
            draw="draw(temperature=0)",
        )
        assert made.tokens.tolist() == [[0, 1, 2, 3, 4, 5]] and int(made.calls) == calls
    made = decode(
        heads.Verified(head="x", bar=0.96),  # above what the head ever says
        Ladder((2,)),
        torch.full((1, 6), 8),
        streams=Streams(0, 1),
        draw="draw(temperature=0)",
    )
    assert made.tokens.tolist() == [[0, 1, 7, 3, 4, 5]]


def tiny() -> Pretrained:
    config = DDiTConfig(vocab_size=4, length=8, hidden=16, cond=8, blocks=1, heads=1)
    return Pretrained(config, layout(config).initial([0])[0])


@pytest.mark.parametrize("kind", ["information", "broken"])
def test_a_head_learns_what_can_be_known(kind: str) -> None:
    """Which tokens equal their right neighbour: nothing the tokens alone would tell."""
    tokens = torch.randint(4, (2000, 8), generator=torch.Generator().manual_seed(0))
    target = (tokens == tokens.roll(-1, 1)).float() * (3 if kind == "information" else 1)
    data = heads.Examples(tokens, torch.ones_like(tokens, dtype=torch.bool), target)
    _, about = heads.train(kind, heads.States(tiny(), "cpu"), data, 150, 64)
    assert about["held_out"] < 0.3 * about["knowing_nothing"]
    assert about.get("auc", 1.0) > 0.97


def test_examples_are_what_they_say() -> None:
    law = small_law(length=8)
    oracle, walks, streams = law.oracle(), law.sample(400, seed=3), Streams(0, 400)
    drafts = heads.drafted(oracle, law, walks, streams)
    kept = drafts.target == 0
    assert torch.equal(drafts.tokens[kept], walks[kept]) and float(kept.float().mean()) > 0.2
    assert bool(law.valid(drafts.tokens).all())
    wrong = heads.replaced(oracle, law, walks, streams)
    assert torch.equal(wrong.target > 0, wrong.tokens != walks)
    assert 0.02 < float(wrong.target.mean()) < 0.25
    nats = heads.informing(oracle, law, walks, streams)
    assert bool((nats.counted.sum(1) == 1).all())
    assert bool((nats.tokens[nats.counted] == oracle.mask_id).all())
    assert float(nats.target.max()) > 0.1 and bool((nats.target >= 0).all())
    assert float(heads.broken(oracle, law, walks, streams).target.sum()) == 0
    whole = heads.broken(tiny().denoiser(), Alternating(), walks % 4, streams)
    odd = whole.tokens[:, 1:] == whole.tokens[:, :-1]  # the two ends of every repetition
    assert torch.equal(whole.target[:, :-1] > 0, odd | F.pad(odd[:, :-1], (1, 0)))


class Alternating:
    """No token twice in a row."""

    def valid(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.pad(tokens[:, 1:] != tokens[:, :-1], (1, 0), value=True)


def test_auc_by_hand() -> None:
    score, yes = torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True])
    assert heads.auc(score, yes) == pytest.approx(0.75)


def test_a_missing_head_is_a_sentence() -> None:
    with pytest.raises(MaskwalkError, match="There is no head nowhere"):
        heads.reader("nowhere.safetensors", "drafted", "cpu")
