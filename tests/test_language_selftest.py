"""A model that cannot be meant is not given out: each way a wrong one answers is caught.

Rotary tables that nobody computed, attention one way, no positions, answers that are no numbers or
change with the batch, networks that fail when they are called: a sentence each.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from maskwalk.denoisers.language import Causal, Masked, load
from maskwalk.denoisers.language.base import TextDenoiser
from maskwalk.denoisers.language.selftest import check_tables, self_test
from maskwalk.denoisers.language.standins import write_bert, write_dream, write_gpt2
from maskwalk.errors import MaskwalkError

transformers = pytest.importorskip("transformers")
VOCAB = 12


def made(function: Callable[[Tensor], Tensor], **told: Any) -> Masked:
    return Masked(function, mask_id=VOCAB - 1, vocab_size=VOCAB, **told)


TABLE = torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(0))


def sound(tokens: Tensor) -> Tensor:
    """Reads every token, and where it stands."""
    place = torch.arange(1, tokens.shape[1] + 1).float()
    words = TABLE[tokens] * (1 / place)[:, None]
    return (words.sum(1, keepdim=True) + TABLE[tokens].roll(1, 1)).expand(*tokens.shape, VOCAB)


def one_way(tokens: Tensor) -> Tensor:
    place = torch.arange(1, tokens.shape[1] + 1).float()
    return (TABLE[tokens] * (1 / place)[:, None]).cumsum(1)


def backwards(tokens: Tensor) -> Tensor:
    return one_way(tokens.flip(1)).flip(1)


def no_positions(tokens: Tensor) -> Tensor:
    return TABLE[tokens].sum(1, keepdim=True).expand(*tokens.shape, VOCAB)


def of_the_batch(tokens: Tensor) -> Tensor:
    return sound(tokens) + sound(tokens).mean(0, keepdim=True) * (len(tokens) > 1)


def lost(tokens: Tensor) -> Tensor:
    return sound(tokens) * torch.nan


def test_a_sound_model_passes() -> None:
    for rows in (1, 3):
        self_test(made(sound, rows=rows), "it", "cpu")
        self_test(made(sound, rows=rows, forbidden=range(2, 11)), "it", "cpu")  # two tokens left


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (one_way, "a later token changes nothing before it"),
        (backwards, "an earlier token changes nothing after it"),
        (no_positions, "does not know positions"),
        (of_the_batch, "one sequence alone and two together"),
        (lost, "not finite"),
    ],
)
def test_a_wrong_model_is_caught(function: Callable[[Tensor], Tensor], says: str) -> None:
    with pytest.raises(MaskwalkError, match=says):
        self_test(made(function), "it", "cpu")


def test_marginals_must_sum_to_one() -> None:
    class Half(Masked):
        def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
            return super().__call__(tokens, at) - 0.7

    with pytest.raises(MaskwalkError, match="do not sum to 1"):
        self_test(Half(sound, mask_id=11, vocab_size=12), "it", "cpu")


@pytest.mark.parametrize(
    "table",
    [
        torch.tensor([0.0, 0.0, 0.0]),
        torch.tensor([1.0, 0.1, 0.2]),
        torch.tensor([1e30, 1.0, 0.1]),
        torch.tensor([1.0, 0.5, -0.1]),
        torch.tensor([1.0, torch.nan, 0.1]),
        torch.empty(3, device="meta"),
    ],
)
def test_tables_that_nobody_computed(table: Tensor) -> None:
    model = nn.Module()
    model.register_buffer("inv_freq", table, persistent=False)
    with pytest.raises(MaskwalkError, match="never computed"):
        check_tables(model, "it")
    model.register_buffer("inv_freq", torch.tensor([1.0, 0.1, 0.01]), persistent=False)
    check_tables(model, "it")


def test_a_rotary_table_left_as_found_is_caught_on_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As transformers 5 leaves Dream's where its own code is run: log p was off by 17.6."""
    source = write_dream(tmp_path / "dream")
    right = load(source)

    def left(model: Any, device: str | None, _: Path) -> None:
        model.model.rotary_emb.to_empty(device=device)
        with torch.no_grad():
            model.model.rotary_emb.inv_freq.fill_(3.1e21)

    monkeypatch.setattr("maskwalk.denoisers.language.streaming._compute_buffers", left)
    with pytest.raises(MaskwalkError, match=r"rotary frequencies .*inv_freq were never computed"):
        load(source)
    unchecked = load(source, check=False)
    tokens = torch.full((1, 9), right.mask)
    tokens[0, ::2] = 5
    gap = (unchecked.denoiser(tokens) - right.denoiser(tokens)).abs()
    assert float(gap[gap.isfinite()].max()) > 0.1  # what would have been given out


def test_a_decoder_that_looks_one_way_is_caught_on_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_dream(tmp_path / "dream")

    def causal(model: Any) -> None:
        model.config.is_causal = True

    monkeypatch.setattr("maskwalk.denoisers.language.streaming.both_ways", causal)
    with pytest.raises(MaskwalkError, match="reads from left to right only"):
        load(source)


def test_an_autoregressive_model_is_asked_what_it_can_answer(tmp_path: Path) -> None:
    model = load(write_gpt2(tmp_path / "gpt2"))
    assert isinstance(model.denoiser, Causal)
    self_test(model.denoiser, "it", "cpu")
    with torch.no_grad():
        model.denoiser.model.transformer.wpe.weight.zero_()
        for block in model.denoiser.model.transformer.h:
            block.attn.c_attn.weight.zero_()
    model.denoiser.forget()
    with pytest.raises(MaskwalkError, match="changes nothing"):
        self_test(model.denoiser, "it", "cpu")


def test_a_network_that_fails_when_called_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_bert(tmp_path / "bert")

    def forward(self: Any, tokens: Tensor, *, sigma: Tensor) -> Tensor:
        raise AssertionError("never reached")

    monkeypatch.setattr(transformers.BertForMaskedLM, "forward", forward)
    with pytest.raises(MaskwalkError, match=r"then failed \(TypeError: .*sigma"):
        load(source)


def test_no_check_is_on_the_command_line(cli: Any, tmp_path: Path) -> None:
    source = write_gpt2(tmp_path / "gpt2")
    code, out, _ = cli("generate", "--denoiser", f"hf:{source}", "--length", "5", "--no-check")
    assert code == 0 and out
    assert issubclass(Causal, TextDenoiser)
