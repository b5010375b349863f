"""Pickled models become safetensors without their pickles being run, and MDLM's layouts are one.

The hub's layout, `DIT.save_pretrained`, bare weights and a Lightning checkpoint of one network
give the same answers; the moving average is what a conversion takes; what cannot be known from the
files (heads, time conditioning) is refused, not guessed.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from maskwalk.denoisers.language import load
from maskwalk.denoisers.language.checkpoint import describe_checkpoint
from maskwalk.denoisers.language.convert import convert
from maskwalk.denoisers.language.mdlm import load_mdlm
from maskwalk.errors import MaskwalkError
from tests.test_language_mdlm import BLOCKS, COND, HEADS, HIDDEN, LENGTH, ROWS, checkpoint, plain


def untimed() -> dict[str, Tensor]:
    """As trained without time conditioning: the sines' columns are as they were drawn."""
    weights = checkpoint()
    first = weights["backbone.sigma_map.mlp.0.weight"]
    first[:, 128:] = first[:, 128:].clamp(-1, 1) / 16
    return weights


def written(directory: Path, tensors: dict[str, Tensor], config: Any = None) -> Path:
    directory.mkdir()
    save_file(tensors, directory / "model.safetensors")
    if config is not None:
        (directory / "config.json").write_text(json.dumps(config))
    return directory


def bare(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("backbone."): value for name, value in tensors.items()}


MODEL = {"hidden_size": HIDDEN, "cond_dim": COND, "n_blocks": BLOCKS, "n_heads": HEADS}
MODEL |= {"length": 64, "scale_by_sigma": True, "dropout": 0.1}
TRAINER = {"model": MODEL, "time_conditioning": False, "parameterization": "subs"}


@pytest.fixture
def tokens() -> Tensor:
    tokens = torch.randint(0, ROWS - 1, (3, LENGTH), generator=torch.Generator().manual_seed(1))
    tokens[0, ::2] = tokens[1, 3] = tokens[2, :] = ROWS - 1
    return tokens


def expected(weights: dict[str, Tensor], tokens: Tensor) -> Tensor:
    logits = torch.stack([plain(weights, row) for row in tokens])
    return torch.log_softmax(logits[tokens == ROWS - 1][:, : ROWS - 1], -1)


def same(found: Tensor, want: Tensor) -> None:
    torch.testing.assert_close(found, want, rtol=1e-6, atol=1e-5)


def test_three_layouts_are_one_network(tmp_path: Path, tokens: Tensor) -> None:
    weights = untimed()
    hub = {"model_type": "mdlm", "vocab_size": ROWS, "hidden_dim": HIDDEN, "n_heads": HEADS}
    hub |= {"time_conditioning": False, "model_length": 64}
    layouts = [
        written(tmp_path / "hub", weights, hub),
        written(tmp_path / "dit", bare(weights), {"config": TRAINER, "vocab_size": ROWS}),
        written(tmp_path / "dit2", bare(weights), {"vocab_size": ROWS}),
        written(tmp_path / "none", weights),
    ]
    want = expected(weights, tokens)
    for place in layouts:
        assert describe_checkpoint(place).kind == "mdlm"
        found = load_mdlm(place)
        same(found(tokens), want)
    assert [load_mdlm(place).config.length for place in layouts] == [64, 64, 1024, 1024]


def test_what_the_files_do_not_say_is_not_guessed(tmp_path: Path, tokens: Tensor) -> None:
    weights = untimed()
    without = {k: v for k, v in weights.items() if "inv_freq" not in k}
    with pytest.raises(MaskwalkError, match="Nothing says how many heads"):
        load_mdlm(written(tmp_path / "heads", without))
    told = written(tmp_path / "told", without, {"n_heads": HEADS})
    same(load_mdlm(told)(tokens), expected(weights, tokens))
    with pytest.raises(MaskwalkError, match="seems to be trained with time conditioning"):
        load_mdlm(written(tmp_path / "timed", checkpoint()))
    said = written(tmp_path / "said", checkpoint(), {"time_conditioning": False, "n_heads": HEADS})
    same(load_mdlm(said)(tokens), expected(checkpoint(), tokens))
    for change, says in (
        ({"time_conditioning": True}, "was trained with time conditioning"),
        ({"parameterization": "sedd"}, "parameterization 'sedd'"),
        ({"model": MODEL | {"n_heads": 4}}, "says n_heads = 4"),
    ):
        other = tmp_path / f"{next(iter(change))}"
        config = {"config": TRAINER | change, "vocab_size": ROWS}
        with pytest.raises(MaskwalkError, match=says):
            load_mdlm(written(other, bare(weights), config))


# --- Lightning


def lightning(directory: Path, **more: Any) -> tuple[Path, dict[str, Tensor]]:
    """A checkpoint as the public trainer keeps it, and the averaged weights that count."""
    weights = untimed()
    generator = torch.Generator().manual_seed(9)
    averaged = {
        name: value if "inv_freq" in name else value * 0.9 for name, value in weights.items()
    }
    first = averaged["backbone.sigma_map.mlp.0.weight"]
    first[:, :128] += 0.1 * torch.rand(first[:, :128].shape, generator=generator)
    shadow = [value for name, value in averaged.items() if "inv_freq" not in name]
    ema = {"decay": 0.9999, "num_updates": 5, "shadow_params": shadow}
    found = {"state_dict": weights, "ema": ema, "epoch": 3, "global_step": 7, **more}
    directory.mkdir(parents=True)
    torch.save(found, directory / "last.ckpt")
    return directory / "last.ckpt", averaged


def test_a_lightning_checkpoint_gives_its_moving_average(tmp_path: Path, tokens: Tensor) -> None:
    settings = {"config": TRAINER}
    file, averaged = lightning(tmp_path / "run", hyper_parameters=settings)
    done = convert(file, tmp_path / "out")
    assert done.tensors == len(averaged) and "moving average" in done.notes[0]
    found = load_mdlm(tmp_path / "out")
    same(found(tokens), expected(averaged, tokens))
    assert found.config.length == 64 and found.config.heads == HEADS
    convert(file, tmp_path / "raw", ema=False)
    raw = load_mdlm(tmp_path / "raw")
    same(raw(tokens), expected(untimed(), tokens))
    assert float((raw(tokens) - found(tokens)).abs().max()) > 1e-2
    with pytest.raises(MaskwalkError, match="not empty"):
        convert(file, tmp_path / "out")


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    file, _ = lightning(tmp_path / "run")
    whole = torch.load(file, weights_only=True)
    for name, change, says in (
        ("none", {"ema": None}, "holds no moving average"),
        ("few", {"ema": {"shadow_params": whole["ema"]["shadow_params"][1:]}}, "other shapes"),
        ("other", {"state_dict": {"net.weight": torch.ones(2)}}, r"no weights named backbone\."),
        ("timed", {"hyper_parameters": {"config": {"time_conditioning": True}}}, "time cond"),
    ):
        torch.save(whole | change, tmp_path / f"{name}.ckpt")
        with pytest.raises(MaskwalkError, match=says):
            convert(tmp_path / f"{name}.ckpt", tmp_path / name)
    torch.save([1, 2], tmp_path / "list.ckpt")
    with pytest.raises(MaskwalkError, match="holds a list"):
        convert(tmp_path / "list.ckpt", tmp_path / "list")
    torch.save({"weight": torch.ones(2), "name": "x"}, tmp_path / "mixed.pt")
    with pytest.raises(MaskwalkError, match="name is a str"):
        convert(tmp_path / "mixed.pt", tmp_path / "mixed")
    (tmp_path / "cut.ckpt").write_bytes(file.read_bytes()[:500])
    with pytest.raises(MaskwalkError, match=r"cannot be read as weights alone .* Nothing of it"):
        convert(tmp_path / "cut.ckpt", tmp_path / "cut")
    with pytest.raises(MaskwalkError, match="holds no pickled weights"):
        convert(tmp_path / "absent", tmp_path / "new")


class Touch:
    """A pickle that does something when it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


class DictConfig:
    """Kept in a checkpoint as omegaconf keeps its settings: values under _content and _val."""

    def __init__(self, **content: Any) -> None:
        self._content = {k: v if isinstance(v, DictConfig) else Node(v) for k, v in content.items()}


class Node:
    def __init__(self, value: Any) -> None:
        self._val = value


def test_no_foreign_class_is_ever_run(tmp_path: Path) -> None:
    settings = DictConfig(time_conditioning=True, model=DictConfig(n_heads=HEADS, length=32))
    file, _ = lightning(tmp_path / "run", hyper_parameters={"config": settings})
    with pytest.raises(MaskwalkError, match=r"names classes that are not weights .*DictConfig"):
        convert(file, tmp_path / "out")
    with pytest.raises(MaskwalkError, match="was trained with time conditioning"):
        convert(file, tmp_path / "out", shells=True)  # read off the shell
    settings = DictConfig(time_conditioning=False, model=DictConfig(n_heads=HEADS, length=32))
    file, _ = lightning(tmp_path / "run2", hyper_parameters={"config": settings})
    convert(file, tmp_path / "out", shells=True)
    assert load_mdlm(tmp_path / "out").config.length == 32
    trap = tmp_path / "sprung"
    file, _ = lightning(tmp_path / "run3", hyper_parameters=Touch(str(trap)))
    with pytest.raises(MaskwalkError, match=r"posix\.mkdir|nt\.mkdir"):
        convert(file, tmp_path / "trap")
    with pytest.raises(MaskwalkError, match=r"mkdir.*Nothing of it was run"):
        convert(file, tmp_path / "trap", shells=True)
    assert not trap.exists() and not (tmp_path / "trap").exists()


def test_a_folder_of_transformers(tmp_path: Path, cli: Any) -> None:
    pytest.importorskip("transformers")
    from maskwalk.denoisers.language.standins import write_bert

    source = write_bert(tmp_path / "bert")
    model = load(source)
    tensors = load_file(source / "model.safetensors")
    names = sorted(tensors)
    for part in range(2):
        shard = {name: tensors[name] for name in names[part::2]}
        torch.save(shard, source / f"pytorch_model-0000{part + 1}-of-00002.bin")
    (source / "pytorch_model.bin.index.json").write_text("{}")
    (source / "model.safetensors").unlink()
    code, _, err = cli("generate", "--denoiser", f"hf:{source}")
    assert code == 2 and f"maskwalk convert {source} NEW_FOLDER" in " ".join(err.split())
    code, out, err = cli("convert", str(source), str(tmp_path / "new"))
    assert code == 0 and f"hf:{tmp_path / 'new'}" in "".join(out.split()), err
    tokens = torch.full((2, 9), model.mask)
    tokens[:, ::3] = 7
    assert torch.equal(load(tmp_path / "new").denoiser(tokens), model.denoiser(tokens))
    code, _, err = cli("convert", str(tmp_path / "absent"), str(tmp_path / "no"))
    assert code == 2 and "holds no pickled weights" in " ".join(err.split())
