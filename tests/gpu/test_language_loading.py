"""Other people's models on a device: the answers of the CPU, in float32 and bfloat16, in one place
or in two, and weights that go straight there."""

from pathlib import Path

import pytest
import torch

from maskwalk.decoding.generation import generate
from maskwalk.denoisers.language import load
from maskwalk.denoisers.language.standins import STAND_INS

pytestmark = pytest.mark.gpu
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, write in STAND_INS.items():
        write(folder / name)
    return folder


def canvas(mask: int) -> torch.Tensor:
    tokens = torch.randint(1, 90, (3, 12), generator=torch.Generator().manual_seed(3))
    tokens[0, ::2] = tokens[1, 4] = tokens[2, 1:] = mask
    return tokens


@pytest.mark.parametrize("name", ["llada", "dream", "bert", "mdlm"])
@pytest.mark.parametrize(("precision", "close"), [("float32", 1e-3), ("bfloat16", 0.1)])
def test_a_device_answers_as_the_cpu(name: str, precision: str, close: float, folder: Path) -> None:
    here, there = load(folder / name), load(folder / name, device="cuda", precision=precision)
    tokens = canvas(here.mask)
    found = there.denoiser(tokens.cuda()).exp().cpu()
    assert float((found - here.denoiser(tokens).exp()).abs().max()) < close
    made = generate(there, "entropy(block=2)", prompt="the cat", length=24, draw="llada")
    assert there.device.startswith("cuda") and made.texts


@pytest.mark.parametrize("name", ["llada", "dream"])
def test_layers_in_two_places(name: str, folder: Path) -> None:
    pytest.importorskip("accelerate")
    here = load(folder / name)
    parts: dict[str, str | int] = {"model": 0, "model.layers.1": "cpu", "lm_head": "cpu"}
    split = load(folder / name, device_map=parts, device="cuda")
    tokens = canvas(here.mask)
    found = split.denoiser(tokens.to(split.device)).exp().cpu()
    assert float((found - here.denoiser(tokens).exp()).abs().max()) < 1e-3
