from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from maskwalk.decoding import picks
from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import preset
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.decoding.trace import Trace
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.left_to_right import LeftToRight
from maskwalk.samplers.parts.draw_first import DrawFirst
from maskwalk.streams import Streams
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import STANDS

LAW = STANDS["chain"]
ORACLE = oracle_for(LAW)
MASK = ORACLE.mask_id


def test_presets_run_and_differ() -> None:
    tokens = torch.full((256, LAW.length), MASK)
    results = {}
    for name in ("exact", "as_published"):
        draw, ties = preset(name)
        sampler = SAMPLERS.build("entropy()")
        results[name] = decode(
            sampler, ORACLE, tokens, streams=Streams(0, 256), draw=draw, ties=ties
        ).tokens
        assert LAW.valid(results[name]).all()
    assert not torch.equal(results["exact"], results["as_published"])


class ChoosesAll(UnmaskingPolicy):
    """Everything, what is given too."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        return torch.ones_like(view.masked), state


def test_a_choice_of_what_is_revealed_already_is_refused() -> None:
    tokens = torch.full((2, LAW.length), MASK)
    tokens[1, 0] = 2
    with pytest.raises(MaskwalkError, match="nothing else; it did not in round 0"):
        decode(ChoosesAll(), ORACLE, tokens, streams=Streams(0, 2))


class KeepsAll(DrawFirst):
    """Every draw, and what was there before."""

    def keep(self, view: View, drawn: Tensor, state: State) -> tuple[Tensor, State]:
        return torch.ones_like(view.masked), state


@pytest.mark.parametrize("rows", [2, 8_000])  # numpy's canvas, and torch's
def test_to_keep_what_is_revealed_changes_nothing(rows: int) -> None:
    tokens = torch.full((rows, LAW.length), MASK)
    tokens[1, 0] = 2
    done = decode(KeepsAll(), ORACLE, tokens, seed=0)
    assert done.tokens[1, 0] == 2 and (done.calls == 1).all() and (done.tokens != MASK).all()
    one = decode("random(block=5)", ORACLE, tokens, seed=0)
    assert torch.equal(done.tokens, one.tokens)


def test_counts_stop_when_a_row_is_complete() -> None:
    tokens = torch.full((3, LAW.length), MASK)
    walk = LAW.sample(1, 0)[0]
    tokens[0] = walk
    tokens[1, :3] = walk[:3]
    result = decode(SAMPLERS.build("left_to_right"), ORACLE, tokens, streams=Streams(0, 3))
    assert result.calls.tolist() == [0, LAW.length - 3, LAW.length]
    assert torch.equal(result.tokens[0], walk)


def test_trace_replays_and_survives_the_disk(tmp_path: Path) -> None:
    tokens = torch.full((4, LAW.length), MASK)
    tokens[0, 0] = 2
    ids = torch.tensor([9, 3, 12, 5])
    result = decode(
        SAMPLERS.build("entropy(block=2)"), ORACLE, tokens, streams=Streams(1, ids), trace=True
    )
    assert result.trace is not None
    result.trace.save(tmp_path / "t.parquet")
    loaded = Trace.load(tmp_path / "t.parquet")
    canvases = list(loaded.replay())
    assert torch.equal(canvases[0], tokens)
    assert torch.equal(canvases[-1], result.tokens)
    assert all(((b == a) | (a == MASK)).all() for a, b in pairwise(canvases))
    assert torch.equal(loaded.reveal_rounds(), result.trace.reveal_rounds())
    drawn = loaded.events["round"] >= 0
    assert (loaded.events["log_prob"][drawn] <= 0).all()
    assert (loaded.events["entropy"][drawn] >= 0).all()
    # log_prob is the probability with which the token was drawn: check the first round by hand.
    first = loaded.events["round"] == 0
    answer = ORACLE(tokens)
    at = (tokens == MASK).flatten().cumsum(0) - 1
    row = torch.searchsorted(*(lambda s: (s.values, loaded.events["sequence"][first]))(ids.sort()))
    place = ids.sort().indices[row] * LAW.length + loaded.events["position"][first]
    expected = answer[at[place], loaded.events["token"][first]]
    assert torch.equal(loaded.events["log_prob"][first], expected)


def test_a_foreign_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(MaskwalkError, match="not a maskwalk trace"):
        Trace.load(tmp_path / "x.parquet")
    with pytest.raises(MaskwalkError, match="not a maskwalk trace"):
        Trace.load(tmp_path / "missing.parquet")


@pytest.mark.parametrize("bad", [-1, 6, 99])
def test_tokens_outside_the_vocabulary_are_refused(bad: int) -> None:
    tokens = torch.full((2, LAW.length), MASK)
    tokens[1, 2] = bad
    with pytest.raises(MaskwalkError, match=f"Token {bad} is not in the vocabulary"):
        decode(SAMPLERS.build("random()"), ORACLE, tokens, streams=Streams(0, 2))


def test_bad_calls_are_refused() -> None:
    tokens = torch.full((2, LAW.length), MASK)
    with pytest.raises(MaskwalkError, match="stream ids"):
        decode(SAMPLERS.build("random()"), ORACLE, tokens, streams=Streams(0, 3))
    with pytest.raises(MaskwalkError, match="uniform"):
        decode(SAMPLERS.build("random()"), ORACLE, tokens, streams=Streams(0, 2), ties="first")
    with pytest.raises(MaskwalkError, match="nothing to decode"):
        decode(SAMPLERS.build("random()"), ORACLE, tokens[:0], streams=Streams(0, 0))


def test_the_widest_round_is_remembered_row_by_row() -> None:
    """Two a round of five positions: the last round is narrower, and rows leave before it."""
    walk = LAW.sample(1, 0)[0]
    tokens = torch.full((3, LAW.length), MASK)
    tokens[0, 1:], tokens[1] = walk[1:], walk
    result = decode("random(block=2)", ORACLE, tokens, streams=Streams(0, 3))
    assert LAW.length == 5
    assert result.widest.tolist() == [1, 0, 2]
    assert result.rounds.tolist() == [1, 0, 3]


@pytest.mark.parametrize("many", [1, 3, "each"])
def test_small_and_large_canvases_pick_the_same(many: int | str, monkeypatch) -> None:
    """numpy's picks and torch's, with ties, with rows that have nothing to pick."""
    random = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 4, (200, 9), generator=random).double()
    scores[torch.rand(scores.shape, generator=random) < 0.3] = torch.inf
    scores[:3] = torch.inf
    keys = torch.rand(scores.shape, generator=random, dtype=torch.float64)
    count = torch.randint(0, 5, (200,), generator=random) if isinstance(many, str) else many
    few, first = picks.pick(scores, keys, count), picks.pick(scores, None, count)
    monkeypatch.setattr(picks, "small", lambda tensor: tensor)
    assert torch.equal(few, picks.pick(scores, keys, count))
    assert torch.equal(first, picks.pick(scores, None, count))  # without keys by position
    places = torch.arange(9, dtype=torch.float64).expand(scores.shape)
    assert torch.equal(first, picks.pick(scores, places, count))
    asked = count if isinstance(count, Tensor) else torch.full((200,), count)
    assert torch.equal(few.sum(1), torch.minimum(asked, scores.isfinite().sum(1)))
    monkeypatch.undo()
    for row in range(0, 200, 9):  # a row alone, where scalars do it
        one = count[row : row + 1] if isinstance(count, Tensor) else count
        alone = scores[row : row + 1], keys[row : row + 1], one
        assert torch.equal(picks.pick(*alone), few[row : row + 1])
        assert torch.equal(picks.pick(alone[0], None, one), first[row : row + 1])


class GivesUp(LeftToRight):
    """Says in its first round that nothing was given, and changes it in the next."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        after = super().step(canvas, denoise, rng)
        changed = after.tokens.masked_fill(canvas.given & (canvas.round > 0), 0)
        return replace(after, tokens=changed, given=torch.zeros_like(canvas.given))


def test_what_was_given_stays_given_whatever_a_sampler_says() -> None:
    tokens = torch.full((1, LAW.length), MASK)
    tokens[0, -1] = 1
    with pytest.raises(MaskwalkError, match="changed the given token at position 4 of row 0 in"):
        decode(GivesUp(), ORACLE, tokens, seed=0)
