"""model.json and the manifest of a zoo: a wrong type, a missing key, absurd sizes."""

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwalk.denoisers.files import Pretrained, encode, load_pretrained, save_pretrained
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.resources import ZOO
from tests.abuse.case import Case, refused
from tests.abuse.corrupt import Keys, changed, field, without

SHAPE = DDiTConfig(vocab_size=5, length=5, hidden=16, cond=8, blocks=1, heads=1)
MODEL = Pretrained(
    SHAPE,
    layout(SHAPE).initial([0])[0],
    {"graph": "st_er(nodes=5, p=0.2)", "walk": "lazy(stay=0.2)", "length": 5, "graph_seed": 0},
)
PACKED = lzma.compress(encode(MODEL, torch.bfloat16))
ENTRY = {
    "file": "tiny.safetensors.xz",
    "sha256": hashlib.sha256(PACKED).hexdigest(),
    "config": SHAPE.to_json(),
    **MODEL.about,
    "bound": 1.5,
    "floor": 1.4,
}
ABOUT = {"format": "maskwalk-model/1", "config": SHAPE.to_json(), "about": MODEL.about}
MANIFEST = {"format": ZOO, "models": {"tiny": ENTRY}}
SAMPLE = ("sample", "--denoiser", "{dir}/model", "--count", "2")
FROM_ZOO = ("sample", "--denoiser", "zoo:tiny", "--count", "2")
HUGE = 10**400


def of_model(path: Keys, new: Any) -> Case:
    name = f"model-{field(path)}-{'huge' if new == HUGE else repr(new)[:20]}"
    return Case(
        name, SAMPLE, field(path), {"model/model.json": json.dumps(changed(ABOUT, path, new))}
    )


def of_zoo(path: Keys, new: Any, argv: tuple[str, ...] = FROM_ZOO) -> Case:
    at: Keys = ("models", "tiny", *path)
    says = field(path) if path[0] == "config" else field(at)
    name = f"{argv[0]}-{field(path)}-{'huge' if new == HUGE else repr(new)[:20]}"
    return Case(name, argv, says, {"zoo/manifest.json": json.dumps(changed(MANIFEST, at, new))})


CONFIG: list[tuple[Keys, Any]] = [
    (("config",), 3),
    (("config",), [1]),
    (("config",), None),
    (("config", "hidden"), "wide"),
    (("config", "hidden"), 1.5),
    (("config", "hidden"), -16),
    (("config", "hidden"), HUGE),
    (("config", "hidden"), 10**9),
    (("config", "blocks"), 10**9),
    (("config", "blocks"), True),
    (("config", "blocks"), [1]),
    (("config", "vocab_size"), 10**12),
    (("config", "vocab_size"), None),
    (("config", "length"), 10**12),
    (("config", "length"), {"a": 1}),
    (("config", "heads"), 0),
    (("config", "tied"), "no"),
    (("config", "causal"), 1),
    (("config", "ends"), None),
    (("config", "output"), 3),
    (("config", "output"), None),
    (("config", "width"), 16),
]
ROWS = [of_model(path, new) for path, new in CONFIG]
ROWS += [of_zoo(path, new) for path, new in CONFIG]
ROWS += [
    of_model(path, new)
    for path, new in (
        (("about",), 3),
        (("about",), [1]),
        (("about", "graph"), 3),
        (("about", "graph"), {"nodes": 5}),
        (("about", "walk"), None),
        (("about", "length"), "five"),
        (("about", "length"), HUGE),
        (("about", "graph_seed"), -1),
        (("format",), 3),
        (("format",), [1]),
    )
]
ROWS += [
    of_zoo(path, new)
    for path, new in (
        (("file",), 3),
        (("file",), "../outside.xz"),
        (("file",), "/etc/passwd"),
        (("file",), ""),
        (("sha256",), 3),
        (("sha256",), "abc"),
        (("graph",), ["a"]),
        (("length",), 1.5),
        (("tokenizer",), "tokenizer.json"),
        (("tokenizer",), {"file": "../x", "sha256": "0" * 64}),
        (("held_out",), {"file": "x"}),
    )
]
ROWS += [
    of_zoo(path, new, ("zoo",))
    for path, new in (
        (("bound",), "low"),
        (("floor",), [1]),
        (("test_bpb",), 3),
        (("test_bpb",), {"value": "low"}),
        (("world",), 3),
    )
]
ROWS += [
    Case(
        f"model-without-{key}",
        SAMPLE,
        says,
        {"model/model.json": json.dumps(without(ABOUT, (key,)))},
    )
    for key, says in (
        ("config", "there is no config"),
        ("about", "there is no about"),
        ("format", "its format is null"),
    )
]
ROWS += [
    Case(
        f"zoo-without-{key}",
        FROM_ZOO,
        f"there is no models.tiny.{key}",
        {"zoo/manifest.json": json.dumps(without(MANIFEST, ("models", "tiny", key)))},
    )
    for key in ("file", "sha256", "config")
]
TEXTS: dict[str, tuple[str | bytes, str]] = {
    "nan": (json.dumps(changed(ABOUT, ("about", "bound"), float("nan"))), "model.json is not JSON"),
    "deep": ('{"a":' * 50_000 + "1" + "}" * 50_000, "not nested so deeply"),
    "a-list": ("[]", "is not a maskwalk model: its format is null"),
    "cut": (json.dumps(ABOUT)[:-20], "it may be cut short"),
    "odd-bytes": (b'{"format": "\xff"}', "model.json is not JSON: it must be JSON in UTF-8"),
    "a-pickle": (b"\x80\x04\x95\x0b\x00\x00", "model.json is not JSON"),
    "empty": ("", "model.json is not JSON"),
}
ROWS += [
    Case(f"model-{name}", SAMPLE, says, {"model/model.json": bad})
    for name, (bad, says) in TEXTS.items()
]
ROWS += [
    Case("manifest-a-list", ("zoo",), "is not a zoo manifest", {"zoo/manifest.json": "[]"}),
    Case(
        "manifest-models-a-list",
        ("zoo",),
        "models must be a table of models",
        {"zoo/manifest.json": json.dumps({"format": ZOO, "models": [1]})},
    ),
    Case(
        "manifest-model-a-number",
        ("zoo",),
        "models.tiny must be a table",
        {"zoo/manifest.json": json.dumps({"format": ZOO, "models": {"tiny": 3}})},
    ),
]
PROCESSES = {"manifest-model-a-number", "model-config.blocks-1000000000", "model-deep"}


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_bad_model_is_a_sentence(
    case: Case, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pretrained(MODEL, tmp_path / "model")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "tiny.safetensors.xz").write_bytes(PACKED)
    (tmp_path / "zoo" / "manifest.json").write_text(json.dumps(MANIFEST))
    monkeypatch.setenv("MASKWALK_ZOO", str(tmp_path / "zoo"))
    process = case.name in PROCESSES
    row = Case(case.name, case.argv, case.says, case.files, process=process)
    refused(row, tmp_path, capsys, monkeypatch)


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 70 and len({case.name for case in ROWS}) == len(ROWS)
    assert sum(case.name in PROCESSES for case in ROWS) == len(PROCESSES)


def test_the_good_model_is_read(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    save_pretrained(MODEL, tmp_path / "model")
    assert load_pretrained(tmp_path / "model").config == SHAPE
    (tmp_path / "tiny.safetensors.xz").write_bytes(PACKED)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    monkeypatch.setenv("MASKWALK_ZOO", str(tmp_path))
    code, _, err = cli("sample", "--denoiser", "zoo:tiny", "--count", "2")
    assert code == 0, err
