"""A corpus on disk: nothing of the text is lost, counts are true, mistakes get sentences."""

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.text.corpus import Corpus, prepare
from maskwalk.worlds.text.passages import END, read_tokenizer_bytes, token_bytes
from tests.tiny_books import LENGTH, TinyBooks, for_session, written

pytest.importorskip("tokenizers")

ODD = (
    f"the sign {END} itself\n"
    "naïve — “quoted” ☕ 𝔘𝔫𝔦 👩‍👩‍👧 e\u0301 שלום\n"
    "  two spaces in front, a tab\tand some behind  \n"
    "line\u2028separator, next\x85line, form\x0cfeed, nul\x00, \ufeffmark, \u00a0space, return\r\n"
    "zażółć gęślą jaźń \U0010ffff 漢字かな交じり文"
)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> TinyBooks:
    return for_session(tmp_path_factory)


def tokenizer_of(corpus: Corpus) -> Any:
    return read_tokenizer_bytes((corpus.path / "tokenizer.json").read_bytes())


def tokens_of(corpus: Corpus, split: str) -> list[int]:
    return [int(token) for token in np.load(corpus.path / f"{split}.npy")]


def books_of(text: str) -> list[str]:
    return [book.strip("\n") + "\n" for book in text.split("\n\n")]


def cut(tokens: list[int], end: int) -> list[list[int]]:
    """Tokens of each book; every book has its end."""
    found: list[list[int]] = [[]]
    for token in tokens:
        if token == end:
            found.append([])
        else:
            found[-1].append(token)
    assert found[-1] == []
    return found[:-1]


def source_with(folder: Path, **splits: str) -> Path:
    """The tiny books with other text in some splits."""
    written(folder)
    for split, text in splits.items():
        (folder / f"{split}.txt").write_bytes(text.encode())
    return folder


def test_books_come_back_byte_for_byte_and_are_counted(books: TinyBooks) -> None:
    tokenizer = tokenizer_of(books.corpus)
    end, sizes = tokenizer.convert_tokens_to_ids(END), token_bytes(tokenizer)
    assert len(sizes) == len(tokenizer) <= 512 and sizes[end] == 0
    for split, told in books.corpus.splits.items():
        given = books_of((books.source / f"{split}.txt").read_bytes().decode())
        tokens = tokens_of(books.corpus, split)
        assert np.load(books.corpus.path / f"{split}.npy").dtype == np.uint16
        assert [tokenizer.decode(book) for book in cut(tokens, end)] == given
        size = sum(len(book.encode()) for book in given)
        assert told == {"books": len(given), "bytes": size, "tokens": len(tokens)}
        assert int(sizes[torch.tensor(tokens)].sum()) == size
    assert books.corpus.splits["test"]["books"] == 3
    again = Corpus.load(str(books.corpus.path))
    assert again.splits == books.corpus.splits
    about = json.loads((books.corpus.path / "corpus.json").read_text())
    assert about["vocab"] == len(tokenizer)


def test_unusual_characters_come_back_too(tmp_path: Path) -> None:
    """Also those that the tokenizer has not seen in training."""
    source = source_with(tmp_path / "source", test=f"\n\n{ODD}\n\n\n\nplain\n\n\n{ODD}{ODD}\n")
    corpus = prepare(source, tmp_path / "data", 512)
    tokenizer = tokenizer_of(corpus)
    end, tokens = tokenizer.convert_tokens_to_ids(END), tokens_of(corpus, "test")
    found = [tokenizer.decode(book).encode() for book in cut(tokens, end)]
    assert found == [text.encode() + b"\n" for text in (ODD, "plain", ODD + ODD)]
    size = sum(map(len, found))
    assert corpus.splits["test"] == {"books": 3, "bytes": size, "tokens": len(tokens)}
    sizes = token_bytes(tokenizer)
    for book, data in zip(cut(tokens, end), found):
        assert int(sizes[torch.tensor(book)].sum()) == len(data)


def test_packed_and_plain_sources_give_the_same_files(books: TinyBooks, tmp_path: Path) -> None:
    source, told = tmp_path / "source", []
    source.mkdir()
    for split in ("train", "valid", "test"):
        data = (books.source / f"{split}.txt").read_bytes()
        (source / f"{split}.txt.xz").write_bytes(lzma.compress(data))
    prepare(source, tmp_path / "data", 512, lambda *what: told.append(what))
    names = sorted(file.name for file in books.corpus.path.iterdir())
    assert names == ["corpus.json", "test.npy", "tokenizer.json", "train.npy", "valid.npy"]
    for name in names:
        assert (tmp_path / "data" / name).read_bytes() == (books.corpus.path / name).read_bytes()
    assert told[:2] == [("tokenizer", 0, 1), ("tokenizer", 1, 1)]
    assert told[2:] == [(s, n, of) for s, of in (("train", 5), ("valid", 2), ("test", 3))
                        for n in range(of + 1)]  # fmt: skip


def test_the_tokenizer_knows_the_training_split_only(books: TinyBooks, tmp_path: Path) -> None:
    source = source_with(tmp_path / "source", valid=ODD, test="zyzzyva " * 500)
    corpus = prepare(source, tmp_path / "data", 512)
    assert tokenizer_of(corpus).get_vocab() == tokenizer_of(books.corpus).get_vocab()


def test_vocab_is_the_most_tokens_there_are(tmp_path: Path) -> None:
    letters = "abcdefghij"
    words = " ".join(a + b + c for a in letters for b in letters for c in letters)
    source = source_with(tmp_path / "source", train=words)
    for vocab in (512, 600):
        corpus = prepare(source, tmp_path / str(vocab), vocab)
        assert len(tokenizer_of(corpus)) == vocab
        assert max(tokens_of(corpus, "train")) < vocab


def test_passages_are_the_split_in_order(books: TinyBooks) -> None:
    tokens = tokens_of(books.corpus, "test")
    for length in (LENGTH, 7, len(tokens)):
        found = books.corpus.passages("test", length)
        assert found.shape == (len(tokens) // length, length) and found.dtype == torch.int32
        assert found.flatten().tolist() == tokens[: found.numel()]
    with pytest.raises(MaskwalkError, match=f"{len(tokens)} tokens: not one passage of 10000"):
        books.corpus.passages("test", 10_000)


def test_chosen_passages_differ_and_are_in_random_order(books: TinyBooks) -> None:
    every = books.corpus.passages("test", LENGTH).tolist()
    where = {tuple(row): place for place, row in enumerate(every)}
    assert len(where) == len(every) > 100  # no two alike here, so places can be told apart

    def places(count: int, seed: int = 0) -> list[int]:
        found = books.corpus.chosen("test", LENGTH, count, seed)
        assert found.dtype == torch.int64
        return [where[tuple(row)] for row in found.tolist()]

    some = places(20)
    assert len(set(some)) == len(some) == 20 and some != sorted(some)
    assert some == places(20) == places(40)[:20]  # the same again, and a beginning of more
    assert max(some) > len(every) // 2 > min(some)  # from all over the split
    assert places(20, seed=1) != some
    assert sorted(places(10_000)) == list(range(len(every)))  # all of them, each once


def test_sources_that_cannot_be_prepared(tmp_path: Path) -> None:
    source, out = written(tmp_path / "source"), tmp_path / "data"
    for vocab in (511, 65_537):
        with pytest.raises(MaskwalkError, match=rf"vocab .* from 512 to 65536, not {vocab}"):
            prepare(source, out, vocab)
    with pytest.raises(MaskwalkError, match=r"nowhere has no train\.txt \(nor train\.txt\.xz\)"):
        prepare(tmp_path / "nowhere", out, 512)
    (source / "valid.txt").unlink()
    with pytest.raises(MaskwalkError, match=r"has no valid\.txt .* one paragraph a line"):
        prepare(source, out, 512)
    whole = lzma.compress(b"one\n" * 1000)
    for broken in (b"no xz at all", whole[: len(whole) // 2], whole[:-20] + bytes(20)):
        (source / "valid.txt.xz").write_bytes(broken)
        with pytest.raises(MaskwalkError, match=r"valid\.txt\.xz cannot be read: "):
            prepare(source, out, 512)
    (source / "valid.txt.xz").write_bytes(lzma.compress("café".encode("latin-1")))
    with pytest.raises(MaskwalkError, match=r"valid\.txt\.xz cannot be read: 'utf-8' codec"):
        prepare(source, out, 512)
    assert not out.exists()  # everything is read before anything is written
    (source / "valid.txt").write_text("\n\n \n")
    with pytest.raises(MaskwalkError, match=r"The valid split of .* is empty"):
        prepare(source, out, 512)
    assert not (out / "corpus.json").exists()


def test_a_corpus_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(MaskwalkError, match=r"there is no corpus\.json.*maskwalk text prepare"):
        Corpus.load(tmp_path)
    (tmp_path / "corpus.json").write_text('{"format": "something/1"}')
    with pytest.raises(MaskwalkError, match="is not a prepared corpus"):
        Corpus.load(tmp_path)
    (tmp_path / "corpus.json").write_text('{"format": "maskwalk-corpus/1", "spl')
    with pytest.raises(MaskwalkError, match="cut short"):
        Corpus.load(tmp_path)
