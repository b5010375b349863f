"""Self-correction and verifiers: what is taken back, what is kept, and what it costs."""

import pytest
import torch
from torch import Tensor

from maskwalk.decoding.decode import decode
from maskwalk.decoding.policy import Sampler
from maskwalk.denoisers.files import Pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.corrected import Corrected
from maskwalk.samplers.self_correct import SelfCorrect
from maskwalk.streams import Streams
from tests.conftest import small_law


class Ladder:
    """The only right sequence is 0 1 2 3 …; drafts are wrong at `wrong` the first time round.

    It doubts: at a revealed token it says which one belongs there, with probability .98.
    """

    vocab_size, mask_id, score_grid, doubts = 8, 8, 1e-9, True

    def __init__(self, wrong: tuple[int, ...], stubborn: bool = False) -> None:
        self.wrong, self.stubborn, self.seen = wrong, stubborn, 0

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        self.seen += 1
        at = tokens == 8 if at is None else at
        row, place = at.nonzero(as_tuple=True)
        right = place.clone()
        # While anything but one of the wrong places is masked, a wrong place is drafted wrong.
        first = (tokens == 8).sum(1) > len(self.wrong)
        for wrong in self.wrong:
            drafting = (tokens[row, place] == 8) & (first[row] | torch.tensor(self.stubborn))
            right = torch.where((place == wrong) & drafting, 7, right)
        answer = torch.full((len(row), 8), 0.02 / 7).scatter(1, right[:, None], 0.98)
        return answer.double().log()


class Distracted(Ladder):
    """While place 2 is masked, it takes the token at place 4 for wrong."""

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        answer = super().__call__(tokens, at)
        row, place = (tokens == 8 if at is None else at).nonzero(as_tuple=True)
        fooled = (place == 4) & (tokens[row, 2] == 8) & (tokens[row, 4] != 8)
        return torch.where(fooled[:, None], answer.roll(3, 1), answer)


def run(sampler: Sampler, denoiser: Ladder, start: list[int]) -> tuple[list[int], int]:
    made = decode(
        sampler,
        denoiser,
        torch.tensor([start]),
        streams=Streams(0, 1),
        draw="draw(temperature=0)",
    )
    return made.tokens[0].tolist(), int(made.calls)


def test_what_does_not_fit_is_filled_again_by_the_same_calls() -> None:
    """Six positions: bisection takes three calls. One check finds 2 and 5, the next call mends."""
    found, calls = run(SelfCorrect(), Ladder((2, 5)), [8] * 6)
    assert found == [0, 1, 2, 3, 4, 5] and calls == 3 + 2
    found, calls = run(SelfCorrect(), Ladder(()), [8] * 6)
    assert found == [0, 1, 2, 3, 4, 5] and calls == 3 + 1  # nothing found: one look


def test_the_last_call_only_fills() -> None:
    """A token that is drafted wrong for ever: look, fill and look, fill; never a mask left."""
    found, calls = run(SelfCorrect(passes=4), Ladder((2,), stubborn=True), [8] * 6)
    assert found == [0, 1, 7, 3, 4, 5] and calls == 3 + 4
    found, calls = run(SelfCorrect(passes=1), Ladder((2,)), [8] * 6)
    assert found == [0, 1, 7, 3, 4, 5] and calls == 3  # one pass, which may mask nothing: no look

    # The last call fills place 2. It would also take back place 4, and nothing could fill that.
    found, calls = run(SelfCorrect(passes=2), Distracted((2,)), [8] * 6)
    assert found == [0, 1, 2, 3, 4, 5] and calls == 3 + 2


def test_given_tokens_are_never_doubted() -> None:
    found, _ = run(SelfCorrect(), Ladder(()), [8, 7, 8, 8, 6, 8])
    assert found == [0, 7, 2, 3, 6, 5]


def test_the_floor_is_relative_to_the_likeliest() -> None:
    """A token at .02/7 against .98: below a floor of .005, above one of .001."""
    for floor, mended in ((0.005, 2), (0.001, 7)):
        found, _ = run(SelfCorrect(floor=floor), Ladder((2,)), [8] * 6)
        assert found[2] == mended


def test_corrected_by_itself_asks_once_where_support_asks_twice() -> None:
    """One look that finds a fault and a refill; two halves that find none."""
    inner = SAMPLERS.build("bisection()")
    assert run(Corrected(inner, check="self"), Ladder((2,)), [8] * 6) == ([0, 1, 2, 3, 4, 5], 5)
    assert run(Corrected(inner, check="support"), Ladder(()), [8] * 6) == ([0, 1, 2, 3, 4, 5], 5)


def test_a_verifier_finds_every_break_and_costs_no_call() -> None:
    """With the world's own `valid`, rows that are right are left alone, and all end right that a
    second and third try can mend."""
    law = small_law(length=8)
    oracle, streams = law.oracle(), Streams(3, torch.arange(400))
    start = torch.full((400, 8), oracle.mask_id)
    inner = "random(block=8)"
    plain = decode(inner, oracle, start, streams=streams)
    valid = law.valid(plain.tokens).all(1)
    assert 0.05 < float(valid.double().mean()) < 0.9
    verified = SAMPLERS.build(f"corrected(inner={inner}, check='world', passes=20)").in_world(law)
    made = decode(verified, oracle, start, streams=streams)
    assert bool(law.valid(made.tokens).all())
    assert torch.equal(made.tokens[valid], plain.tokens[valid])
    assert bool((made.calls[valid] == 1).all()) and bool((made.calls[~valid] > 1).all())
    with pytest.raises(MaskwalkError, match="needs a world"):
        decode(SAMPLERS.build("corrected(check='world')"), oracle, start, streams=streams)


def test_only_models_trained_on_mistakes_doubt() -> None:
    config = DDiTConfig(vocab_size=5, length=4, hidden=16, cond=4, blocks=1, heads=2)
    weights = layout(config).initial([0])[0]
    assert not Pretrained(config, weights).denoiser().doubts
    assert not Pretrained(config, weights, {"masking": "coarse(share=0.5)"}).denoiser().doubts
    assert Pretrained(config, weights, {"masking": "mistakes(share=0.25)"}).denoiser().doubts
