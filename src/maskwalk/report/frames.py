"""The pictures of a trace, each with what is new in it, for the terminal and for the page.

New is what differs from the picture before, found in the text alone: word by word within a line,
sign by sign where a word kept its length. A line that cannot be laid beside the one before it, sign
for sign, has nothing new.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

BREAK, BRACKETS = "✗", "()"


class Frame(NamedTuple):
    """A picture: its heading, and its text in parts, old and new by turns, old ones first."""

    title: str
    parts: list[str]


def frames(trace: Mapping[str, Any]) -> list[Frame]:
    """What is given, if anything, and the sequence after every round of which there is a picture.

    Empty for a world that draws none.
    """
    pictures, rounds = trace.get("pictures") or [], trace.get("picture_rounds") or []
    given = any(r < 0 for r in trace["rounds"])
    before = [pictures[0], *pictures[:-1]] if pictures else []
    return [
        Frame(f"round {r + 1}" if r >= 0 else "given", parted(old, now))
        for old, now, r in zip(before, pictures, rounds)
        if r >= 0 or given
    ]


def parted(before: str, now: str) -> list[str]:
    """A picture in parts, old and new by turns; a line added at the top is old."""
    lines, olds = now.split("\n"), before.split("\n")
    olds = [""] * (len(lines) - len(olds)) + olds[-len(lines) :]
    new = [flag for old, line in zip(olds, lines) for flag in (*_new(old, line), False)][:-1]
    runs = groupby(zip(now, new), key=lambda sign: sign[1])
    parts = [(flag, "".join(sign for sign, _ in run)) for flag, run in runs]
    return ["", *(text for _, text in parts)] if new[:1] == [True] else [text for _, text in parts]


def _new(old: str, line: str) -> list[bool]:
    """Which signs of a line are new; spaces and breaks never are."""
    new: set[int] = set()
    for apart in (True, False):  # ✗ stands in a gap between words, or within a word
        before, words = _words(old, apart), _words(line, apart)
        if len(before) == len(words):
            for was, word in zip(before, words):
                new |= _new_in_word([old[i] for i in was], word, line)
            break
    else:
        if len(old) == len(line):
            new = {i for i, sign in enumerate(line) if sign != old[i]}
    return [i in new and sign not in (" ", BREAK) for i, sign in enumerate(line)]


def _new_in_word(was: list[str], word: list[int], line: str) -> set[int]:
    if len(was) == len(word):
        return {i for i, sign in zip(word, was) if line[i] != sign}
    core = [i for i in word if line[i] not in BRACKETS]  # a tree's brackets come with its last word
    same = "".join(was).strip(BRACKETS) == "".join(line[i] for i in core)
    return set() if same else set(core)


def _words(line: str, apart: bool) -> list[list[int]]:
    """Where the signs of each word stand, without breaks."""
    words: list[list[int]] = [[]]
    for i, sign in enumerate(line):
        if sign == " " or (sign == BREAK and apart):
            words.append([])
        elif sign != BREAK:
            words[-1].append(i)
    return [word for word in words if word]
