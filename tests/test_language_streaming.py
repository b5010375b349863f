"""Weights reach their place whole: in parts, in a precision, on a device; else a sentence says why.

Missing, misshapen, surplus and cut files are told apart; tables that no file carries are computed.
"""

import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwalk.denoisers.language import LanguageModel, load
from maskwalk.denoisers.language.checkpoint import read_config
from maskwalk.denoisers.language.mdlm import load_mdlm
from maskwalk.denoisers.language.native import NATIVE, native_config
from maskwalk.denoisers.language.standins import STAND_INS, write_dream, write_llada, write_mdlm
from maskwalk.denoisers.language.streaming import files_of, streamed, tensors_of
from maskwalk.errors import MaskwalkError
from tests.test_language_published import canvas, copied

transformers = pytest.importorskip("transformers")
WRITERS = {"llada": write_llada, "dream": write_dream}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for name, write in WRITERS.items():
        write(folder / name)
    return folder


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, LanguageModel]:
    return {name: load(folder / name) for name in WRITERS}


def test_weights_in_parts(folder: Path, tmp_path: Path, models: dict[str, LanguageModel]) -> None:
    many = copied(folder / "llada", tmp_path / "many")
    tensors = load_file(many / "model.safetensors")
    (many / "model.safetensors").unlink()
    names, weight_map = sorted(tensors), {}
    for part in range(3):
        file = f"model-0000{part + 1}-of-00003.safetensors"
        save_file({n: tensors[n] for n in names[part::3]}, many / file, {"format": "pt"})
        weight_map |= dict.fromkeys(names[part::3], file)
    index = many / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    tokens = canvas(models["llada"])
    assert torch.equal(load(many).denoiser(tokens), models["llada"].denoiser(tokens))
    (many / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(MaskwalkError, match="lacks model-00002-of-00003"):
        load(many)
    index.write_text("{")
    with pytest.raises(MaskwalkError, match=r"index\.json cannot be read"):
        load(many)


def test_weights_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    broken = copied(folder / "llada", tmp_path / "broken")
    tensors = load_file(broken / "model.safetensors")
    key = "model.transformer.blocks.1.up_proj.weight"
    fewer = {k: v for k, v in tensors.items() if k != key}
    save_file(fewer, broken / "model.safetensors")
    with pytest.raises(MaskwalkError, match=r"lacks model\.layers\.1\.mlp\.up_proj\.weight"):
        load(broken)
    save_file(tensors | {key: tensors[key][:-1].clone()}, broken / "model.safetensors")
    with pytest.raises(MaskwalkError, match=r"up_proj\.weight has shape \(63, 32\)"):
        load(broken)
    save_file(tensors | {"model.more": torch.ones(1)}, broken / "model.safetensors")
    assert load(broken).notes == ("1 weights of the file are not used, such as model.more",)
    whole = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[:-5])
    with pytest.raises(MaskwalkError, match="not a complete safetensors file"):
        load(broken)


def test_weights_go_where_they_are_told(folder: Path, models: dict[str, LanguageModel]) -> None:
    pytest.importorskip("accelerate")
    tokens = canvas(models["dream"])
    expected = models["dream"].denoiser(tokens)
    parts: dict[str, str | int] = {"model.layers.1": "cpu", "model": "cpu", "lm_head": "cpu"}
    for device_map in ("auto", "cpu", parts):
        model = load(folder / "dream", device_map=device_map)
        assert model.denoiser.model.hf_device_map and model.device == "cpu"
        assert torch.equal(model.denoiser(tokens), expected)
    incomplete = "^device_map says nothing of lm_head"
    for wrong, says in (({"model": "cpu"}, incomplete), ("nowhere", "must be")):
        with pytest.raises(MaskwalkError, match=says):
            load(folder / "dream", device_map=wrong)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_classes_of_transformers_are_read_onto_the_device_where_accelerate_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by the device map that `from_pretrained` is given; the answers are the same."""
    pytest.importorskip("accelerate")
    source, told = STAND_INS[name](tmp_path / name), []
    by_class = transformers.PreTrainedModel.from_pretrained.__func__

    def watched(cls: Any, *args: Any, **options: Any) -> Any:
        told.append(options.get("device_map"))
        return by_class(cls, *args, **options)

    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", classmethod(watched))
    model = load(source)
    monkeypatch.setattr("maskwalk.denoisers.language.networks.find_spec", lambda _: None)
    through_memory = load(source)
    assert told == [{"": "cpu"}, None]
    tokens = torch.tensor([[7, 8, 9, model.mask]])
    assert torch.equal(model.denoiser(tokens), through_memory.denoiser(tokens))


def test_mdlm_is_read_onto_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def watched(files: Any, device_of: Any) -> Iterator[tuple[str, torch.Tensor]]:
        asked.append(device_of("any"))
        yield from tensors_of(files, lambda _: "cpu")

    monkeypatch.setattr("maskwalk.denoisers.language.mdlm.tensors_of", watched)
    assert load_mdlm(write_mdlm(tmp_path / "mdlm"), device="cpu:0").device == torch.device("cpu:0")
    assert asked == ["cpu:0"]


@pytest.mark.parametrize("name", ["llada", "mdlm"])
def test_two_models_in_one_folder(name: str, tmp_path: Path) -> None:
    """One beside model.safetensors is none of it; of others none is taken at random."""
    place = STAND_INS[name](tmp_path / "model")
    tokens = canvas(load(place))
    expected = load(place).denoiser(tokens)
    tensors = load_file(place / "model.safetensors")
    save_file({name: 2 * weight for name, weight in tensors.items()}, place / "older.safetensors")
    assert torch.equal(load(place).denoiser(tokens), expected)
    (place / "model.safetensors").rename(place / "newer.safetensors")
    with pytest.raises(MaskwalkError, match=r"has \S+ in newer\.safetensors and in older\.safeten"):
        load(place)


def test_mdlm_has_no_device_map(tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match="lies on one device and has no device_map"):
        load(write_mdlm(tmp_path / "mdlm"), device_map="auto")


def test_never_more_than_one_tensor_beside_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network is built without memory, and what was read is let go before the next is read."""
    read: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []

    def watched(files: Any, device_of: Any) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in tensors_of(files, device_of):
            alive.append(sum(one() is not None for one in read))
            read.append(weakref.ref(tensor))
            yield name, tensor
            del tensor

    monkeypatch.setattr("maskwalk.denoisers.language.streaming.tensors_of", watched)
    source = folder / "llada"
    config = native_config(NATIVE["llada"], read_config(source), source, transformers)
    built: list[Any] = []

    def build() -> Any:
        built.append(transformers.LlamaForCausalLM(config))
        assert all(weight.is_meta for weight in built[0].parameters())
        return built[0]

    names = NATIVE["llada"].renamed
    model, _ = streamed(build, files_of(source), source, renamed=names, dtype=torch.bfloat16)
    assert len(read) == len(model.state_dict()) and max(alive) <= 1


def test_weights_are_brought_to_the_precision_and_tables_are_not(folder: Path) -> None:
    config = native_config(
        NATIVE["dream"], read_config(folder / "dream"), folder / "dream", transformers
    )
    model, extra = streamed(
        lambda: transformers.Qwen2ForCausalLM(config),
        files_of(folder / "dream"),
        folder / "dream",
        dtype=torch.bfloat16,
    )
    given = load_file(folder / "dream" / "model.safetensors")
    assert extra == [] and not model.training
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, given[name].bfloat16())
    rates = 1_000_000.0 ** -(torch.arange(0, 8, 2) / 8)
    torch.testing.assert_close(model.model.rotary_emb.inv_freq, rates)
