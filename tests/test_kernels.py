"""The kernels of accelerators in Triton's interpreter, on a CPU, against the plain formulas.

    .venv/bin/python -m pip install triton   # 1 GB; without it these tests are skipped
    TRITON_INTERPRET=1 .venv/bin/python -m pytest tests/test_kernels.py -o addopts=-q

(Without the type checker of `addopts`, whose wrappers the interpreter cannot look into.) tests/gpu
runs the compiled kernels on a device.
"""

import os
from importlib import import_module

import pytest
import torch

from maskwalk.decoding.scores import SCORES
from maskwalk.denoisers.network.attention import rotate, rotation
from maskwalk.streams import Purpose, Streams
from maskwalk.streams import inverse_cdf as by_definition

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs Triton's interpreter: TRITON_INTERPRET=1", allow_module_level=True)
pytest.importorskip("triton")

from maskwalk.denoisers.network.attention import attend
from maskwalk.denoisers.network.ddit import Modulation
from maskwalk.denoisers.network.ddit import residual_norm as plain_residual_norm
from maskwalk.denoisers.network.dropout import Dropout
from maskwalk.kernels.attention import short_attention
from maskwalk.kernels.entropy import entropy
from maskwalk.kernels.gelu import gelu
from maskwalk.kernels.inverse_cdf import inverse_cdf
from maskwalk.kernels.marginals import log_marginals
from maskwalk.kernels.normalise import normalise
from maskwalk.kernels.residual_norm import residual_norm
from maskwalk.kernels.rotary import rotary
from maskwalk.kernels.streams import philox, uniform
from maskwalk.kernels.top2 import top2

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of -inf and NaN


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("vocab", [1, 5, 1024, 1025, 9000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores(vocab: int, dtype: torch.dtype) -> None:
    marginals = numbers(4, vocab).to(dtype)
    if vocab > 5:
        marginals[0, 3] = marginals[0, 3 + 1024 if vocab > 1027 else 4] = 9.0  # the same, one lane
        marginals[1, 5:] = -torch.inf
    marginals = marginals.log_softmax(-1)
    torch.testing.assert_close(entropy(marginals), SCORES["entropy"](marginals))
    count = min(2, vocab)
    assert torch.equal(top2(marginals)[:, :count], marginals.topk(count, -1).values)
    assert top2(marginals[:0]).shape == (0, 2) and entropy(marginals[:0]).shape == (0,)


@pytest.mark.parametrize(("vocab", "width"), [(5, 5), (5, 8), (4096, 4099), (9000, 9000)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turned", [False, True])
def test_logits_on_their_way_into_the_table(
    vocab: int, width: int, dtype: torch.dtype, turned: bool
) -> None:
    logits, shift = numbers(3, width).to(dtype), numbers(vocab, seed=1)
    shift[[0, vocab - 1]] = -torch.inf
    want = (logits[:, :vocab].float() + shift).log_softmax(-1)
    logits[1, 0], logits[2, vocab - 1] = torch.nan, torch.inf  # of tokens that are never drawn
    logits[:, vocab:] = torch.nan
    given = logits.t().contiguous().t() if turned else logits
    out, lost = torch.empty(3, vocab), torch.zeros((), dtype=torch.int32)
    normalise(given, shift, out, lost)
    torch.testing.assert_close(out, want)
    assert not bool(lost)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_logits_that_are_no_numbers(bad: float) -> None:
    logits, lost = numbers(3, 7), torch.zeros((), dtype=torch.int32)
    logits[1, slice(None) if bad < 0 else 2] = bad
    normalise(logits, torch.zeros(7), torch.empty(3, 7), lost)
    assert bool(lost)


def test_marginals_of_the_rows_asked_for() -> None:
    logits, bias, rows = numbers(6, 24), numbers(24, seed=1), torch.tensor([4, 0, 4])
    want = (logits[rows, :21] + bias[:21]).double().log_softmax(-1)
    torch.testing.assert_close(log_marginals(logits, bias, rows, 21), want)


@pytest.mark.parametrize("shape", [(3, 100, 6, 32), (2, 7, 3, 10), (1, 1, 1, 2), (0, 7, 1, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_turned_in_place(shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    rows, length, heads, width = shape
    qkv, angles = numbers(rows, length, 3 * heads * width).to(dtype), rotation(length, width // 2)
    q, k, v = qkv.view(rows, length, 3, heads, width).unbind(2)
    want = torch.stack([rotate(q, angles), rotate(k, angles), v], 2).view(qkv.shape)
    rotary(qkv, heads, angles)
    torch.testing.assert_close(qkv, want)
    with pytest.raises(AssertionError):
        rotary(qkv, heads, rotation(length + 1, width // 2)[:, :length])


def test_streams() -> None:
    ids, key = torch.tensor([0, 5, 2**40 + 3]), (7, 9)
    streams = Streams(7 + (9 << 32), ids)
    want = streams.uniform(Purpose.TIE, 3, 33)
    assert torch.equal(uniform(ids, key, int(Purpose.TIE), 3, 33), want)
    rows, places = torch.tensor([2, 0]), torch.tensor([30, 1])
    spots = uniform(ids, key, int(Purpose.TIE), 3, 0, (rows, places))
    assert torch.equal(spots, want[rows, places])
    counter = [ids & 0xFFFFFFFF, ids * 0 + 3, ids * 0 + 1, ids * 0 + 4]
    from maskwalk.streams import philox as plain

    assert all(map(torch.equal, philox(counter, key), plain(counter, key)))


def gradients(made: list[torch.Tensor], leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Of a sum of everything made, weighted so that nothing cancels."""
    total = sum((x.float() * numbers(*x.shape, seed=n)).sum() for n, x in enumerate(made))
    assert isinstance(total, torch.Tensor)
    return list(torch.autograd.grad(total, leaves))


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as an accelerator has take minutes here; and a few have several tiles each."""
    for name in ("gelu", "residual_norm"):
        module = import_module(f"maskwalk.kernels.{name}")
        monkeypatch.setattr(module, "PROGRAMS", 6)
        monkeypatch.setattr(module, "TILE", 128)


@pytest.mark.usefixtures("few_programs")
@pytest.mark.parametrize("rows", [1, 70])
def test_gelu_and_its_gradient(rows: int) -> None:
    """Two models whose biases are views into a larger tensor."""
    z, biases = numbers(2, rows, 64).requires_grad_(), numbers(2, 100, seed=1).requires_grad_()
    bias = biases[:, 10:74]
    plain = torch.nn.functional.gelu(z + bias[:, None], approximate="tanh")
    fused = gelu(z, bias)
    torch.testing.assert_close(fused, plain, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(gradients([fused], [z, biases]), gradients([plain], [z, biases])):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [5, 16, 24])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 4e-3)])
def test_short_attention_and_its_gradient(length: int, dtype: torch.dtype, close: float) -> None:
    heads, half = 2, 16
    qkv = numbers(3, length, 6 * heads * half).to(dtype)
    angles = rotation(length, half)
    wide, narrow = qkv.double().requires_grad_(), qkv.clone().requires_grad_()
    plain = attend(wide, heads, angles.double())
    fused = short_attention(narrow, angles, heads)
    torch.testing.assert_close(fused.double(), plain, rtol=close, atol=close)
    (mine,), (theirs,) = gradients([fused], [narrow]), gradients([plain], [wide])
    torch.testing.assert_close(mine.double(), theirs, rtol=4 * close, atol=4 * close)


def test_equal_values_come_back_from_attention_to_the_last_bit() -> None:
    qkv = numbers(1, 24, 6 * 32).half()
    qkv[:, :, 4 * 32 :] = qkv[:, :1, 4 * 32 :]  # one value everywhere, whatever the scores
    fused = short_attention(qkv, rotation(24, 32), 1)
    assert torch.equal(fused, qkv[:, :, 4 * 32 :])


@pytest.mark.usefixtures("few_programs")
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_residual_norm_and_its_gradient(biased: bool, dropped: bool) -> None:
    """Two models, 3 sequences of 5 tokens, 64 wide: not a whole number of tiles."""
    models, batch, length, hidden = 2, 3, 5, 64
    x = numbers(models, batch, length, hidden).requires_grad_()
    y = numbers(models, batch * length, hidden, seed=1).requires_grad_()
    bias = numbers(models, hidden, seed=2).requires_grad_()
    gate, factor, offset = (numbers(models, 1, hidden, seed=n).requires_grad_() for n in (3, 4, 5))
    keys = torch.tensor([[7, -123456789], [99, 2_000_000_000]], dtype=torch.int32)
    rates = Dropout.of_rates([0.3, 0.1], torch.device("cpu"))
    drop = Dropout(keys, *rates, first=4) if dropped else None
    modulation = Modulation((factor, factor), (offset, offset), (gate,))
    plain = plain_residual_norm(x, y, bias if biased else None, modulation, 1, drop, torch.float32)
    made = residual_norm(
        x.view(models, -1, hidden),
        y,
        bias if biased else None,
        gate[:, 0],
        factor[:, 0],
        offset[:, 0],
        *((keys, *rates) if dropped else (None,) * 3),
        4 * length * hidden,
        0,
        False,
        torch.float32,
    )
    leaves = [x, y, gate, factor, offset, *([bias] if biased else [])]
    fused = [made[0].view(x.shape), made[1]]
    for mine, theirs in zip(fused, plain):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    for mine, theirs in zip(gradients(fused, leaves), gradients(list(plain), leaves)):
        torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.usefixtures("few_programs")
def test_a_norm_without_a_branch_and_its_gradient() -> None:
    x = numbers(2, 1, 7, 64).requires_grad_()
    factor, offset = (numbers(2, 64, seed=n).requires_grad_() for n in (1, 2))
    plain = torch.nn.functional.layer_norm(x, (64,)) * factor[:, None, None] + offset[:, None, None]
    _, fused = residual_norm(
        x.view(2, -1, 64), *(None,) * 3, factor, offset, *(None,) * 3, 0, -1, False, torch.float32
    )
    leaves = [x, factor, offset]
    torch.testing.assert_close(fused.view(x.shape), plain, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(gradients([fused.view(x.shape)], leaves), gradients([plain], leaves)):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("vocab", [1, 21, 500])
def test_draws_by_inverse_cdf(vocab: int) -> None:
    table = numbers(64, vocab).double()
    if vocab > 1:
        table[:, 1::3] = -torch.inf  # of probability zero
    table = table.log_softmax(-1)
    u = Streams(0, 64).uniform(Purpose.TOKEN, 0, 1)[:, 0].contiguous()
    u[0], u[1] = 0.0, 1 - 2.0**-53
    assert torch.equal(inverse_cdf(table, u), by_definition(table, u))
