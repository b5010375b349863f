"""The kernels of accelerators in Triton's interpreter, on a CPU, against the plain formulas.

    .venv/bin/python -m pip install triton   # 1 GB; without it these tests are skipped
    TRITON_INTERPRET=1 .venv/bin/python -m pytest tests/test_kernels.py -o addopts=-q

(Without the type checker of `addopts`, whose wrappers the interpreter cannot look into.) tests/gpu
runs the compiled kernels on a device.
"""

import os

import pytest
import torch

from maskwalk.decoding.scores import SCORES
from maskwalk.denoisers.network.attention import rotate, rotation
from maskwalk.streams import Purpose, Streams

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs Triton's interpreter: TRITON_INTERPRET=1", allow_module_level=True)
pytest.importorskip("triton")

from maskwalk.kernels.entropy import entropy
from maskwalk.kernels.marginals import log_marginals
from maskwalk.kernels.normalise import normalise
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
