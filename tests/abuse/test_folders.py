"""Zoo files, tokenizers, passages and folders of other people's models that are not what they say.

Each row changes one file of a good folder; in a zoo the manifest is then signed anew, since whoever
changes a file can do that too.
"""

import hashlib
import io
import json
import lzma
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from maskwalk.denoisers.files import Pretrained, encode, save_pretrained
from maskwalk.denoisers.language.standins import write_bert, write_gpt2, write_mdlm
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.resources import ZOO
from maskwalk.worlds.text.corpus import train_tokenizer
from tests.abuse.case import Case, refused

WORDS = ["the old fox saw a red door\n", "my sister lost seven keys\n"] * 40
Change = bytes | Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of text in a directory and in a zoo, and three folders as the hub has them."""
    folder = tmp_path_factory.mktemp("good")
    tokenizer = train_tokenizer(WORDS, 300)
    shape = DDiTConfig(
        vocab_size=tokenizer.get_vocab_size(), length=8, hidden=16, cond=8, blocks=1, heads=1
    )
    model = Pretrained(shape, layout(shape).initial([0])[0], {"text": {"length": 8}})
    save_pretrained(model, folder / "books")
    (folder / "books" / "tokenizer.json").write_text(tokenizer.to_str())
    np.save(folder / "books" / "held_out.npy", np.ones((4, 8), dtype=np.uint16))
    files = {
        "file": ("t.safetensors.xz", encode(model, torch.bfloat16)),
        "tokenizer": ("t.tokenizer.json.xz", tokenizer.to_str().encode()),
        "held_out": ("t.held_out.npy.xz", (folder / "books" / "held_out.npy").read_bytes()),
    }
    (folder / "zoo").mkdir()
    for name, data in files.values():
        (folder / "zoo" / name).write_bytes(lzma.compress(data))
    entry: dict[str, Any] = {"file": files["file"][0], "sha256": "", "config": shape.to_json()}
    entry |= {key: {"file": files[key][0], "sha256": ""} for key in ("tokenizer", "held_out")}
    manifest = {"format": ZOO, "models": {"t": entry}}
    (folder / "zoo" / "manifest.json").write_text(json.dumps(manifest))
    sign(folder / "zoo")
    for name, write in (("bert", write_bert), ("gpt2", write_gpt2), ("mdlm", write_mdlm)):
        write(folder / name)
    return folder


def sign(zoo: Path) -> None:
    """Writes the hashes that the files have into the manifest."""
    manifest = json.loads((zoo / "manifest.json").read_text())
    entry = manifest["models"]["t"]
    for part in (entry, entry["tokenizer"], entry["held_out"]):
        part["sha256"] = hashlib.sha256((zoo / part["file"]).read_bytes()).hexdigest()
    (zoo / "manifest.json").write_text(json.dumps(manifest))


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def setting(name: str, value: Any) -> Callable[[bytes], bytes]:
    """The JSON file with another value of a setting."""
    return lambda data: json.dumps({**json.loads(data), name: value}).encode()


def packed(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


def array(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def shaped(shape: str) -> bytes:
    """An array whose head says it has another shape."""
    return array(np.ones((4, 8), dtype=np.uint16)).replace(b"(4, 8), }", shape.encode() + b", }")


EVIL = pickle.dumps({"a": 1})
OBJECTS = array(np.array([{"a": 1}], dtype=object))
TOKENIZERS: dict[str, Change] = {
    "empty": b"",
    "not-json": b"hello",
    "a-list": b"[]",
    "a-pickle": EVIL,
    "odd-bytes": b"\xff\xfe\x00",
    "cut": cut,
    "another-thing": b'{"version": "1.0", "model": 3}',
    "deep": b"[" * 100_000,
}
PASSAGES: dict[str, tuple[Change, str]] = {
    "empty": (b"", "is not a file of tokens"),
    "a-pickle": (EVIL, "is not a file of tokens"),
    "objects": (OBJECTS, "must hold whole numbers with 2 axes, not object"),
    "floats": (array(np.ones((2, 8))), "must hold whole numbers with 2 axes, not float64"),
    "one-axis": (array(np.ones(8, dtype=np.uint16)), "with 2 axes, not uint16 of shape (8,)"),
    "no-rows": (array(np.ones((0, 8), dtype=np.uint16)), "not uint16 of shape (0, 8)"),
    "cut": (cut, "held_out.npy"),
    "absurd": (shaped("(999999999999, 8)"), "held_out.npy"),
    "foreign": (array(np.full((2, 8), 60_000, dtype=np.uint16)), "has tokens that are not in 0.."),
    "negative": (array(np.full((2, 8), -1, dtype=np.int64)), "has tokens that are not in 0.."),
}
BOMB = packed(b"\0" * 30_000_000)
ROWS: list[tuple[str, tuple[str, ...], str, str, Change]] = []  # name, argv, says, file, change
GENERATE = ("generate", "--length", "8", "--denoiser")
for name, change in TOKENIZERS.items():
    says = "tokenizer.json is not a tokenizer"
    ROWS.append(
        (f"tokenizer-{name}", (*GENERATE, "{dir}/books"), says, "books/tokenizer.json", change)
    )
for name, (change, says) in PASSAGES.items():
    argv = ("text", "replay", "{dir}/books", "--count", "2", "--paths", "1")
    ROWS.append((f"passages-{name}", argv, says, "books/held_out.npy", change))
for name, change, says in (
    ("not-safetensors", b"hello", "model.safetensors is not a complete safetensors file"),
    ("a-pickle", EVIL, "model.safetensors is not a complete safetensors file"),
    ("cut", cut, "model.safetensors is not a complete safetensors file"),
    ("absurd-head", (10**18).to_bytes(8, "little") + b"{}", "is not a complete safetensors file"),
):
    argv = (*GENERATE, "{dir}/books")
    ROWS.append((f"weights-{name}", argv, says, "books/model.safetensors", change))
for name, file, change, says in (
    ("not-xz", "t.safetensors.xz", b"hello", "t.safetensors.xz is not a complete xz file"),
    ("cut", "t.safetensors.xz", cut, "t.safetensors.xz is not a complete xz file"),
    ("empty", "t.safetensors.xz", b"", "t.safetensors.xz is not a complete xz file"),
    ("bomb", "t.safetensors.xz", BOMB, "t.safetensors.xz unpacks to more than"),
    ("a-pickle", "t.safetensors.xz", packed(EVIL), "is not a complete safetensors file"),
    ("tokenizer-not-xz", "t.tokenizer.json.xz", b"hello", "is not a complete xz file"),
    ("tokenizer-a-pickle", "t.tokenizer.json.xz", packed(EVIL), "is not a tokenizer"),
    ("tokenizer-a-bomb", "t.tokenizer.json.xz", BOMB, "is not a tokenizer"),
    ("passages-cut", "t.held_out.npy.xz", cut, "t.held_out.npy.xz is not a complete xz file"),
    ("passages-objects", "t.held_out.npy.xz", packed(OBJECTS), "must hold whole numbers"),
):
    ROWS.append((f"zoo-{name}", (*GENERATE, "zoo:t"), says, f"zoo/{file}", change))
LAYERS = "num_hidden_layers"
for model, name, file, change, says in (
    ("bert", "a-list", "config.json", b"[1]", "config.json describes no model: it must be a table"),
    ("bert", "cut", "config.json", cut, "config.json describes no model: it must be JSON"),
    ("bert", "type", "config.json", setting("model_type", 3), "model_type must be a text, not 3"),
    ("bert", "built", "config.json", setting("architectures", "a"), "architectures must be a list"),
    ("bert", "mapped", "config.json", setting("auto_map", [1]), "auto_map must be a table"),
    (
        "bert",
        "causal",
        "config.json",
        setting("is_causal", "no"),
        "is_causal must be true or false",
    ),
    ("bert", "mask", "config.json", setting("mask_token_id", "x"), "mask_token_id must be a whole"),
    ("bert", "layers", "config.json", setting(LAYERS, 10**6), f"{LAYERS} must be a whole number"),
    ("bert", "some-layers", "config.json", setting(LAYERS, 9), "lacks bert.encoder.layer"),
    ("bert", "width", "config.json", setting("hidden_size", 10**6), "do not belong together"),
    ("bert", "tokens", "config.json", setting("vocab_size", 10**8), "do not belong together"),
    ("bert", "heads", "config.json", setting("num_attention_heads", "two"), "num_attention_heads"),
    ("bert", "no-heads", "config.json", setting("num_attention_heads", 0), "cannot be loaded"),
    ("bert", "weights-cut", "model.safetensors", cut, "cannot be loaded as a masked model"),
    ("bert", "weights-pickled", "model.safetensors", EVIL, "cannot be loaded as a masked model"),
    ("bert", "tokenizer", "tokenizer.json", b"{}", "brings no tokenizer that can be read"),
    ("bert", "tokenizer-cut", "tokenizer.json", cut, "brings no tokenizer that can be read"),
    ("mdlm", "heads", "config.json", setting("n_heads", "two"), "n_heads must be a whole number"),
    ("mdlm", "length", "config.json", setting("model_length", -4), "model_length must be a whole"),
    (
        "mdlm",
        "blocks",
        "config.json",
        setting("n_blocks", 10**7),
        "n_blocks must be a whole number",
    ),
    ("mdlm", "weights", "model.safetensors", cut, "is not a complete safetensors file"),
):
    ROWS.append(
        (f"{model}-{name}", (*GENERATE, f"hf:{{dir}}/{model}"), says, f"{model}/{file}", change)
    )
TEMPLATES = {
    "loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "end",
    ),
    "escapes": ("{{ messages.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
    "does-not-parse": ("{% for m in messages %}", "TemplateSyntaxError"),
}
for name, (template, says) in TEMPLATES.items():
    argv = (*GENERATE, "hf:{dir}/gpt2", "--chat", "--prompt", "the")
    ROWS.append((f"chat-{name}", argv, says, "gpt2/chat_template.jinja", template.encode()))
PROCESSES = {"zoo-bomb", "bert-layers"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_bad_folder_is_a_sentence(
    row: tuple[str, tuple[str, ...], str, str, Change],
    good: Path,
    tmp_path: Path,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, argv, says, file, change = row
    folder = file.partition("/")[0]
    shutil.copytree(good / folder, tmp_path / folder)
    before = (good / file).read_bytes() if (good / file).exists() else b""
    (tmp_path / file).write_bytes(change(before) if callable(change) else change)
    if folder == "zoo":
        sign(tmp_path / "zoo")
        monkeypatch.setenv("MASKWALK_ZOO", str(tmp_path / "zoo"))
    refused(Case(name, argv, says, process=name in PROCESSES), tmp_path, capsys, monkeypatch)


def test_the_table_is_long_enough() -> None:
    names = [row[0] for row in ROWS]
    assert len(names) >= 50 and len(set(names)) == len(names) and set(names) >= PROCESSES


@pytest.mark.parametrize("model", ["{dir}/books", "zoo:t", "hf:{dir}/bert", "hf:{dir}/mdlm"])
def test_the_good_folders_are_read(
    model: str, good: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWALK_ZOO", str(good / "zoo"))
    code, _, err = cli(*GENERATE, model.replace("{dir}", str(good)))
    assert code == 0, err
