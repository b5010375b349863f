"""Somebody's model of text, and the passages it is measured with: names, files, cuts, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from maskwalk.denoisers.language.source import is_text_model, read_options, text_model, text_weights
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.text.held_out import Passages, documents, passages_for
from tests.text_files import LINES, own_model, texts

pytest.importorskip("transformers")
standins = pytest.importorskip("maskwalk.denoisers.language.standins")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins of BERT and MDLM, texts, and a model in a file."""
    folder = tmp_path_factory.mktemp("subjects")
    for name in ("bert", "mdlm"):
        standins.STAND_INS[name](folder / name)
    texts(folder), own_model(folder)
    return folder


def test_a_document_is_cut_into_passages_with_what_the_model_wants_around(folder: Path) -> None:
    model = text_model(f"hf:{folder / 'bert'}")
    file = folder / "two.jsonl"
    rows = [model.encode(text) for text in (LINES[0] * 3, LINES[1] * 3)]
    file.write_text("\n".join(json.dumps({"text": text}) for text in (LINES[0] * 3, LINES[1] * 3)))
    made = passages_for(model, file, 10)
    wanted = [row[at : at + 8] for row in rows for at in range(0, len(row) // 8 * 8, 8)]
    assert made.tokens[:, 1:-1].tolist() == wanted
    assert set(made.tokens[:, 0].tolist()) == {2} and set(made.tokens[:, -1].tolist()) == {3}
    assert made.given[0].tolist() == [True, *[False] * 8, True]
    texts = [model.decode(row) for row in wanted]
    assert made.sizes.tolist() == [len(text) for text in texts] and made.unit == "byte"


def test_passages_of_mdlm_are_joined_documents_between_ends_of_text(folder: Path) -> None:
    model = text_model(f"hf:{folder / 'mdlm'}")
    end = model.end_of_text
    made = passages_for(model, folder / "texts.txt", 16)
    stream = [t for text in documents(folder / "texts.txt") for t in (*model.encode(text), end)]
    assert made.tokens[:, 0].tolist() == made.tokens[:, -1].tolist() == [end] * len(made)
    assert made.tokens[:, 1:-1].flatten().tolist() == stream[: 14 * len(made)]
    assert end in made.tokens[:, 1:-1] and not made.given.any()


def test_the_length_nobody_names_is_that_of_the_longest_document(folder: Path) -> None:
    model = text_model(f"hf:{folder / 'bert'}")
    longest = max(len(model.encode(text)) for text in documents(folder / "texts.txt")) + 2
    assert passages_for(model, folder / "texts.txt").tokens.shape[1] == min(longest, 64)


def test_passages_with_words_nobody_knows_are_left_out(folder: Path) -> None:
    model = text_model(f"hf:{folder / 'bert'}")
    file = folder / "odd.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in (LINES[0], "☃ " + LINES[0])))
    made = passages_for(model, file, 10)
    assert len(made) == 1 and made.notes[0].startswith("1 of 2 passages")
    file.write_text(json.dumps({"text": "☃ ☃ ☃ ☃"}))
    with pytest.raises(MaskwalkError, match="never draws"):
        passages_for(model, file, 4)


def test_tokens_in_a_file_are_taken_as_they_are(folder: Path) -> None:
    model = text_model(f"{folder / 'own.py'}:model")
    tokens = np.arange(24).reshape(4, 6) % 4
    np.save(folder / "tokens.npy", tokens)
    made = passages_for(model, folder / "tokens.npy", 5)
    assert made.tokens.tolist() == tokens[:, :5].tolist()
    assert made.unit == "token" and made.sizes.tolist() == [5] * 4
    tokens[1, 2] = 4  # the mask, which no passage holds
    np.save(folder / "masked.npy", tokens)
    assert len(passages_for(model, folder / "masked.npy")) == 3
    assert "1 of 4" in passages_for(model, folder / "masked.npy").notes[0]


def test_documents_lie_between_empty_lines(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text("one\ntwo\n\n\n  \nthree\n")
    assert documents(file) == ["one\ntwo", "three"]


def test_a_part_of_the_passages() -> None:
    tokens = torch.arange(12).view(6, 2)
    every = Passages(tokens, torch.zeros_like(tokens).bool(), torch.arange(6))
    assert every.part(2, 3).tokens.tolist() == tokens[2:5].tolist()
    assert every.part(2, 3).sizes.tolist() == [2, 3, 4]
    with pytest.raises(MaskwalkError, match="6 held-out passages"):
        every.part(4, 3)


def test_what_is_a_model_of_text() -> None:
    for name in ("hf:somebody/something", "mine.py:load", "zoo:books_mdm"):
        assert is_text_model(name)
    for name in ("oracle", "zoo:two_b1", "leaky(share=0.1)", "mine.py"):
        assert not is_text_model(name)


def test_weights_and_files_tell_models_of_one_name_apart(folder: Path, tmp_path: Path) -> None:
    one, other = (standins.write_bert(tmp_path / str(seed), seed) for seed in (0, 1))
    hashes = [next(iter(text_weights(f"hf:{path}").values())) for path in (one, other)]
    assert hashes[0] != hashes[1] and len(hashes[0]) == 64
    assert set(text_weights(f"{folder / 'own.py'}:model")) == {"own.py"}
    assert text_weights("zoo:books_mdm") != text_weights("zoo:books_ar")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "chat_template.jinja"])
@pytest.mark.parametrize("which", ["model", "tokenizer"])
def test_an_edited_setting_or_tokenizer_is_another_model(
    file: str, which: str, tmp_path: Path
) -> None:
    """As new weights are: what was measured before is not served for it."""
    for name in ("model", "tokenizer"):
        standins.write_llada(tmp_path / name)
    model, options = f"hf:{tmp_path / 'model'}", {"tokenizer": str(tmp_path / "tokenizer")}
    before = text_weights(model, options)
    assert text_weights(model) != before
    place = tmp_path / which / file
    place.write_text((place.read_text() if place.exists() else "") + " ")
    assert text_weights(model, options) != before


def test_options_are_read_by_their_kind() -> None:
    words = ["mask=[MASK]", "shifted=true", "check = false", "rows=8"]
    assert read_options(words) == {"mask": "[MASK]", "shifted": True, "check": False, "rows": 8}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing=1",), "Unknown option of a model"),
        (("shifted",), "Unknown option of a model"),
        (("shifted=perhaps",), "true or false"),
        (("rows=many",), "rows"),
    ],
)
def test_wrong_options_are_sentences(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(MaskwalkError, match=sentence):
        read_options(words)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("missing", "Unknown function in"),
        ("nothing", "it must give a maskwalk.LanguageModel"),
        ("wants", "called without arguments"),
        ("fails", "no weights"),
        ("table", "no function that gives a model|called without arguments"),
    ],
)
def test_a_function_that_gives_no_model_is_a_sentence(
    folder: Path, function: str, sentence: str
) -> None:
    with pytest.raises(MaskwalkError, match=sentence):
        text_model(f"{folder / 'own.py'}:{function}")


def test_options_belong_to_models_that_have_them(folder: Path) -> None:
    with pytest.raises(MaskwalkError, match="makes the model itself"):
        text_model(f"{folder / 'own.py'}:model", options={"rows": 2})
    with pytest.raises(MaskwalkError, match="knows its tokenizer"):
        text_model("zoo:books_mdm", options={"kind": "masked"})


@pytest.mark.parametrize(
    ("name", "content", "length", "sentence"),
    [
        ("a.txt", "\n \n", None, "holds no text"),
        ("a.csv", "x", None, "not from"),
        ("a.jsonl", "{", None, "line 1"),
        ("a.jsonl", '["x"]', None, "line 1: a document is a table"),
        ("a.txt", LINES[0], 2, "at least one more"),
        ("a.txt", LINES[0], 64, "longest document"),
        ("a.txt", LINES[0], 65, "reads at most 64"),
    ],
)
def test_files_of_texts_that_cannot_be_used(
    folder: Path, tmp_path: Path, name: str, content: str, length: int | None, sentence: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(MaskwalkError, match=sentence):
        passages_for(text_model(f"hf:{folder / 'bert'}"), tmp_path / name, length)


def test_a_model_without_passages_or_tokenizer_says_what_to_give(folder: Path) -> None:
    with pytest.raises(MaskwalkError, match="--texts FILE"):
        passages_for(text_model(f"hf:{folder / 'bert'}"), None)
    with pytest.raises(MaskwalkError, match="has no tokenizer"):
        passages_for(text_model(f"{folder / 'own.py'}:model"), folder / "texts.txt")
