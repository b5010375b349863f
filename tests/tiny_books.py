"""Books of invented sentences and two tiny models of them, made once however many tests ask."""

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from maskwalk.training.fit_text import RATES, SIZES, Plan, fit_text
from maskwalk.worlds.text.corpus import Corpus, prepare

LENGTH = 16
SHAPE = {"hidden": 16, "cond": 8, "blocks": 1, "heads": 2}
WHO = ("the fox", "an old man", "the queen", "my sister", "a ship", "the clerk", "no one")
DID = ("saw", "lost", "followed", "painted", "forgot", "carried", "heard", "sold")
WHAT = ("the river", "a lamp", "seven keys", "the winter", "her letter", "a red door", "nothing")
SIZE = {"train": (5, 60), "valid": (2, 20), "test": (3, 40)}  # books, paragraphs


@dataclass(frozen=True)
class TinyBooks:
    """Where everything is."""

    source: Path
    corpus: Corpus
    models: Path  # with mdm and ar


def small(patch: pytest.MonkeyPatch) -> None:
    """Makes the size `small` tiny while the patch lasts."""
    patch.setitem(SIZES, "small", SHAPE)
    patch.setitem(RATES, "small", 1e-2)


def plan(kind: str, steps: int = 40) -> Plan:
    return Plan(kind, "small", LENGTH, steps, batch=16, dropout=0.1, seed=1, tested=6)


def written(folder: Path) -> Path:
    """train, valid and test as the command wants them: a paragraph a line, books apart."""
    folder.mkdir(parents=True)
    chance = random.Random(0)
    for split, (books, paragraphs) in SIZE.items():
        text = "\n\n".join(_book(chance, paragraphs) for _ in range(books)) + "\n"
        (folder / f"{split}.txt").write_text(text, "utf-8")
    return folder


def _book(chance: random.Random, paragraphs: int) -> str:
    return "\n".join(
        f"{chance.choice(WHO).capitalize()} {chance.choice(DID)} {chance.choice(WHAT)}, "
        f"and {chance.choice(WHO)} {chance.choice(DID)} {chance.choice(WHAT)}."
        for _ in range(paragraphs)
    )


@cache
def tiny_books(folder: Path) -> TinyBooks:
    source = written(folder / "source")
    corpus = prepare(source, folder / "data", 512)
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        for kind, name in (("masked", "mdm"), ("causal", "ar")):
            fit_text(corpus, plan(kind), folder / "models" / name)
    return TinyBooks(source, corpus, folder / "models")


def for_session(factory: pytest.TempPathFactory) -> TinyBooks:
    """The same for all tests of a session."""
    return tiny_books(factory.getbasetemp() / "tiny_books")
