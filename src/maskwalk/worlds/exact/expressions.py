"""Regular expressions as automata, by derivatives [Brzozowski 1964].

The derivative ∂_a r of an expression is what may follow the letter a; the states are the
expressions that derivatives lead to, and a state accepts if it matches the empty word. Expressions
are nested tuples kept in a normal form, so there are finitely many.

    ab   a|b   a*   a+   a?   a{2,4}   (…)   [abc]   [a-z]   .      \\ before a sign takes it as is
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Int64

from maskwalk.errors import MaskwalkError

LARGEST = 2_000  # states
Node = tuple  # ("empty",) | ("none",) | ("letters", str) | ("then", a, b) | ("or", …) | ("star", a)
NONE, EMPTY = ("none",), ("empty",)


def automaton(pattern: str, alphabet: str) -> tuple[Int64[np.ndarray, "states letters"], list[int]]:
    """(transitions, accepting) of the words a pattern matches; -1 leads nowhere."""
    try:
        return _automaton(pattern, alphabet)
    except RecursionError:
        raise MaskwalkError(
            f"The pattern {pattern!r} is nested too deep; take smaller counts."
        ) from None


def _automaton(pattern: str, alphabet: str) -> tuple[np.ndarray, list[int]]:
    start = _Reader(pattern, alphabet).read()
    states: dict[Node, int] = {start: 0}
    rows: list[list[int]] = []
    todo = [start]
    for state in todo:
        row = []
        for letter in alphabet:
            after = _derivative(state, letter)
            if after != NONE and after not in states:
                states[after] = len(states)
                todo.append(after)
            row.append(states.get(after, -1) if after != NONE else -1)
        rows.append(row)
        if len(states) > LARGEST:
            raise MaskwalkError(f"The pattern {pattern!r} needs more than {LARGEST:,} states.")
    return np.array(rows, dtype=np.int64), [i for node, i in states.items() if _nullable(node)]


@lru_cache(maxsize=100_000)
def _nullable(node: Node) -> bool:
    kind = node[0]
    if kind == "then":
        return _nullable(node[1]) and _nullable(node[2])
    if kind == "or":
        return any(map(_nullable, node[1:]))
    return kind in ("empty", "star")


@lru_cache(maxsize=100_000)
def _derivative(node: Node, letter: str) -> Node:
    kind = node[0]
    if kind == "letters":
        return EMPTY if letter in node[1] else NONE
    if kind == "or":
        return _either(*(_derivative(part, letter) for part in node[1:]))
    if kind == "star":
        return _then(_derivative(node[1], letter), node)
    if kind == "then":
        first = _then(_derivative(node[1], letter), node[2])
        return _either(first, _derivative(node[2], letter)) if _nullable(node[1]) else first
    return NONE


def _then(first: Node, second: Node) -> Node:
    """first second, right-nested."""
    if NONE in (first, second):
        return NONE
    if first == EMPTY or second == EMPTY:
        return second if first == EMPTY else first
    if first[0] == "then":
        return _then(first[1], _then(first[2], second))
    return ("then", first, second)


def _either(*nodes: Node) -> Node:
    """Any of them: flat, sorted, each once."""
    flat = {part for node in nodes for part in (node[1:] if node[0] == "or" else (node,))}
    parts = sorted(flat - {NONE}, key=repr)
    return NONE if not parts else parts[0] if len(parts) == 1 else ("or", *parts)


def _star(node: Node) -> Node:
    return node if node[0] == "star" else EMPTY if node in (NONE, EMPTY) else ("star", node)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str, alphabet: str) -> None:
        self.pattern, self.alphabet, self.at = pattern, alphabet, 0

    def read(self) -> Node:
        """The whole pattern."""
        node = self._either()
        if self.at < len(self.pattern):
            self._fail(f"{self.pattern[self.at]!r} has no partner")
        return node

    def _fail(self, why: str) -> None:
        raise MaskwalkError(
            f"Cannot read the pattern {self.pattern!r} at place {self.at + 1}: {why}. Known are "
            "letters, a|b, a*, a+, a?, a{2,4}, (…), [abc], [a-z] and the dot."
        )

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def _either(self) -> Node:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._take()
            parts.append(self._sequence())
        return _either(*parts)

    def _sequence(self) -> Node:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        node: Node = EMPTY
        for part in reversed(parts):
            node = _then(part, node)
        return node

    def _repeated(self) -> Node:
        node = self._atom()
        while self._peek() and self._peek() in "*+?{":
            sign = self._take()
            if sign == "*":
                node = _star(node)
            elif sign == "+":
                node = _then(node, _star(node))
            elif sign == "?":
                node = _either(node, EMPTY)
            else:
                node = self._counted(node)
        return node

    def _counted(self, node: Node) -> Node:
        end = self.pattern.find("}", self.at)
        low, _, high = self.pattern[self.at : end].partition(",")
        if end < 0 or not low.isdecimal() or not (high.isdecimal() or high == ""):
            self._fail("a count is {2}, {2,} or {2,4}")
        endless = "," in self.pattern[self.at : end] and not high
        least, most = int(low), int(high or low)
        if most > 1000 or most < least:
            self._fail("counts go from 0 to 1000, the lower first")
        self.at = end + 1
        tail = _star(node) if endless else EMPTY
        for _ in range(most - least):
            tail = _either(_then(node, tail), EMPTY)
        for _ in range(least):
            tail = _then(node, tail)
        return tail

    def _atom(self) -> Node:
        sign = self._take()
        if sign == "(":
            node = self._either()
            if self._peek() != ")":
                self._fail("a bracket is not closed")
            self._take()
            return node
        if sign == "[":
            return self._letters(self._set())
        if sign == ".":
            return self._letters(self.alphabet)
        if sign in "*+?{}])":
            self.at -= 1
            self._fail(f"nothing stands before {sign!r}")
        if sign == "\\" and not self._peek():
            self._fail("nothing stands after the backslash")
        return self._letters(self._take() if sign == "\\" else sign)

    def _set(self) -> str:
        end = self.pattern.find("]", self.at)
        if end < 0:
            self._fail("a [ is not closed")
        inside, self.at = self.pattern[self.at : end], end + 1
        letters = ""
        while inside:
            if len(inside) >= 3 and inside[1] == "-":
                letters += "".join(map(chr, range(ord(inside[0]), ord(inside[2]) + 1)))
                inside = inside[3:]
            else:
                letters, inside = letters + inside[0], inside[1:]
        return letters

    def _letters(self, letters: str) -> Node:
        strange = [letter for letter in letters if letter not in self.alphabet]
        if strange:
            self.at -= 1
            self._fail(f"{strange[0]!r} is not in the alphabet {self.alphabet!r}")
        return ("letters", "".join(sorted(set(letters)))) if letters else NONE
