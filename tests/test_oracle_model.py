"""OracleModel answers with a world's exact conditionals, in the form each style of code expects."""

import pytest
import torch

from maskwalk import WORLDS, MaskwalkError, OracleModel
from maskwalk.testing.laws import WORLD, Independent
from maskwalk.testing.model import FLOOR

TRUTH = WORLDS.build(WORLD)
ORACLE = TRUTH.oracle()
assert ORACLE is not None
M, PAD, BOS = 4, 5, 6  # four nodes, then mask, pad, bos, eos
CANVAS = torch.tensor([[M, M, M, M, M], [2, M, M, 1, M], [0, 1, M, M, M]])


def truth(canvas: torch.Tensor) -> torch.Tensor:
    """The oracle's own answers, certain where something is revealed."""
    assert ORACLE is not None
    probs = torch.nn.functional.one_hot(canvas.clamp(max=3), 4).double()
    probs[canvas == M] = ORACLE(canvas).exp()
    return probs


def probs_of(logits: torch.Tensor) -> torch.Tensor:
    return logits.double().softmax(-1)


def test_llada_face() -> None:
    model = OracleModel(dtype=torch.float64)
    out = model(CANVAS)
    assert out.logits is out["logits"] and out[0] is out.logits and out.past_key_values is None
    found = probs_of(out.logits)
    assert found.shape == (3, 5, 8) and torch.allclose(found[..., :4], truth(CANVAS), atol=1e-12)
    assert float(found[..., 4:].sum()) == 0.0 and float(out.logits.min()) == FLOOR
    assert model.config.vocab_size == 8 and model.config.mask_token_id == M
    assert model.device.type == "cpu" and model.dtype == torch.float64 and not model.training
    assert (model.forward_passes, model.rows) == (1, 3)
    assert torch.equal(model.asked[0].tokens, CANVAS)
    model.reset()
    assert model.forward_passes == 0 and model.asked == []
    assert model.to(torch.bfloat16)(CANVAS).logits.dtype == torch.bfloat16


def test_dream_face_is_one_to_the_left() -> None:
    wide = torch.cat([torch.full((3, 1), BOS), CANVAS], 1)
    shifted = probs_of(OracleModel(like="dream", dtype=torch.float64)(wide).logits)
    assert torch.allclose(shifted[:, :-1, :4], truth(CANVAS), atol=1e-12)


def test_mdlm_face_gives_log_probabilities() -> None:
    found = OracleModel(like="mdlm", dtype=torch.float64)(CANVAS, torch.ones(3))
    assert torch.allclose(found.exp().sum(-1), torch.ones(3, 5, dtype=torch.float64))
    assert torch.allclose(found.exp()[..., :4], truth(CANVAS), atol=1e-12)


def test_padding_is_hidden_by_the_attention_mask_and_leaks_without() -> None:
    model = OracleModel(dtype=torch.float64)
    ids = torch.tensor([[PAD, PAD, BOS, 2, M, M, 1, M]])
    mask = (ids != PAD).long()
    want = truth(CANVAS[1:2])
    both = mask[:, None, None, :].bool() & mask[:, None, :, None].bool()
    additive = (1.0 - mask.double()) * -1e9
    for given in (mask, mask.bool(), both, additive):
        found = probs_of(model(ids, attention_mask=given).logits)
        assert torch.allclose(found[:, 3:, :4], want, atol=1e-12)
        assert model.asked[-1].pads == 0
    leaked = probs_of(model(ids).logits)[:, 3:, :4]
    assert model.asked[-1].pads == 2 and torch.allclose(leaked, want.roll(1, -1), atol=1e-12)


def test_a_shorter_sequence_is_the_beginning_of_one() -> None:
    found = probs_of(OracleModel(dtype=torch.float64)(CANVAS[:, :3]).logits)[..., :4]
    start = torch.cat([CANVAS[:, :3], torch.full((3, 2), M)], 1)
    assert torch.allclose(found, truth(start)[:, :3], atol=1e-12)


def test_answers_do_not_depend_on_the_batch() -> None:
    model = OracleModel()
    together = model(CANVAS.repeat(50, 1)).logits
    for row in range(3):
        assert torch.equal(together[row], model(CANVAS[row : row + 1]).logits[0])


def test_a_law_too_large_for_a_table_answers_too() -> None:
    law = Independent([[0.5] + [0.1] * 5] * 8)
    found = probs_of(OracleModel(law, dtype=torch.float64)(torch.full((1, 8), 6)).logits)
    assert torch.allclose(found[0, 3, :6], law.log_probs[3].exp())


def test_odd_questions_are_answered_by_a_sentence() -> None:
    model = OracleModel()
    for ids, says in (
        (torch.zeros(5, dtype=torch.int64), "as a table"),
        (torch.zeros(1, 5), "torch.float32"),
        ("text", "not 'text'"),
        (torch.full((1, 5), 8), "was shown token 8; its vocabulary is 0..7, its mask 4"),
        (torch.full((1, 6), M), "shown 6 tokens; its world has 5"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            model(ids)
    with pytest.raises(MaskwalkError, match="no key-value cache"):
        model(CANVAS, use_cache=True)
    with pytest.raises(MaskwalkError, match="attention_mask has shape"):
        model(CANVAS, attention_mask=torch.ones(3, 4))
    with pytest.raises(MaskwalkError, match="without token ids"):
        model()
    with pytest.raises(MaskwalkError, match="Unknown like 'gpt'"):
        OracleModel(like="gpt")
