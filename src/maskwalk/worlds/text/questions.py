"""Questions with one right answer, from a JSONL file: exact match, as text or as a number.

    {"prompt": "12+34=", "answer": "46"}          the model writes what follows
    {"template": "12+{2}=46", "answer": ["34"]}   … or fills the gaps; any of a list is right

What a model wrote is cut at the first of `until`, a pattern may pick the answer out of it (its last
match, or that match's first group), and blanks around it do not count. Numbers are equal if their
values are: 046 is 46.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError, one_of, shown
from maskwalk.reading import Wrong, json_value
from maskwalk.resources import read_file

COMPARED = ("text", "number")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Question:
    """A prompt, or a template with gaps, and the answers that are right."""

    text: str
    template: bool
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Marking:
    """How an answer is read out of what a model wrote, and compared."""

    compare: str = "text"
    pattern: str | None = None
    until: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("compare", self.compare, COMPARED)
        try:
            re.compile(self.pattern or "")
        except re.error as problem:
            raise MaskwalkError(f"{self.pattern!r} is no pattern: {problem}.") from None

    def answer(self, written: str) -> str:
        """The answer in what was written."""
        cut = cut_at(written, self.until)
        if self.pattern is None:
            return cut.strip()
        matches = list(re.finditer(self.pattern, cut))
        if not matches:
            return ""
        last = matches[-1]
        return (last.group(1) if last.re.groups else last.group(0)) or ""

    def right(self, written: str, answers: Sequence[str]) -> bool:
        """Whether the answer is one of the right ones."""
        given = self.answer(written)
        if self.compare == "text":
            return any(given.strip() == answer.strip() for answer in answers)
        value = _number(given)
        return value is not None and any(value == _number(answer) for answer in answers)


def cut_at(text: str, until: Sequence[str]) -> str:
    """The text up to the first of some endings."""
    ends = [text.index(end) for end in until if end and end in text]
    return text[: min(ends)] if ends else text


def _number(text: str) -> float | int | None:
    plain = text.replace(",", "").strip()
    if not NUMBER.fullmatch(plain):
        return None
    return int(plain) if "." not in plain else float(plain)


def read_questions(file: Path) -> list[Question]:
    """The questions of a JSONL file."""
    try:
        lines = read_file(file).decode("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise MaskwalkError(f"{file} is no text in UTF-8 (byte {problem.start}).") from None
    every = [_question(line, file, n) for n, line in enumerate(lines, 1) if line.strip()]
    if not every:
        raise MaskwalkError(f"{file} holds no questions.")
    return every


def _question(line: str, file: Path, number: int) -> Question:
    try:
        row: Any = json_value(line.encode())
    except Wrong as wrong:
        raise MaskwalkError(f"{file}, line {number}: {wrong.told()}.") from None
    row = row if isinstance(row, dict) else {}
    answers = row.get("answer")
    answers = [answers] if isinstance(answers, str | int | float) else answers
    texts = [row.get(key) for key in ("prompt", "template")]
    one = [text for text in texts if isinstance(text, str)]
    good = isinstance(answers, list) and all(isinstance(a, str | int | float) for a in answers)
    if len(one) != 1 or not good or not answers:
        raise MaskwalkError(
            f'{file}, line {number}: a question is {{"prompt": "…", "answer": "…"}}, or has a '
            f'"template" with gaps; this is {shown(row)}.'
        )
    return Question(one[0], texts[0] is None, tuple(str(answer) for answer in answers))
