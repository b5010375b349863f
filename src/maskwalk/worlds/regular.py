"""Regular languages: words of a fixed length that an automaton or a regular expression accepts."""

from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, real, whole
from maskwalk.worlds.exact.automaton import AutomatonWorld
from maskwalk.worlds.exact.expressions import automaton
from maskwalk.worlds.world import WORLDS

PATTERN = "((a|b)c*(a|b)d*)*"  # what a letter may be depends on a parity far to its left


@WORLDS.register("regular")
class Regular(AutomatonWorld):
    """Words that a regular expression matches, or an automaton accepts; uniform, or weighted.

    `dfa` is a list of rows, the state each letter leads to (-1: none), state 0 first; `accepting`
    lists the states a word may end in. `weights`, a number per letter, make a word as likely as the
    product of its letters' weights; without them all words are equally likely.
    """

    def __init__(
        self,
        pattern: str = PATTERN,
        alphabet: str = "abcd",
        length: int = 16,
        dfa: list[list[int]] | None = None,
        accepting: list[int] | None = None,
        weights: list[float] | None = None,
    ) -> None:
        self.alphabet = _alphabet(alphabet)
        whole("length", length, 1, 65_535)
        if dfa is None and accepting is not None:
            raise MaskwalkError("accepting lists states of a dfa; give dfa=[[…], …] with it.")
        if dfa is None:
            if not isinstance(pattern, str):
                raise MaskwalkError(f"pattern must be a regular expression, not {pattern!r}.")
            transitions, ends = automaton(pattern, alphabet)
            words = f"match {pattern!r}"
        else:
            transitions, ends = _checked(dfa, accepting, len(alphabet))
            words = "are accepted by this automaton"
        if weights is not None:
            weights = _weights(weights, len(alphabet))
        try:
            super().__init__(transitions, ends, length, weights)
        except MaskwalkError:
            raise MaskwalkError(
                f"No words of length {length} over {alphabet!r} {words}; change the length or the "
                "language."
            ) from None

    def show(self, tokens: Int[Tensor, " length"]) -> str:
        """The word; · is masked, ✗ stands before the first letter that cannot go on."""
        tokens = tokens.cpu()
        letters = [self.alphabet[t] if t < self.vocab_size else "·" for t in tokens.tolist()]
        if bool((tokens < self.vocab_size).all()):
            fine = self.valid(tokens[None])[0].tolist()
            letters = [sign if right else f"✗{sign}" for sign, right in zip(letters, fine)]
        return "".join(letters)


def _alphabet(alphabet: Any) -> str:
    if isinstance(alphabet, str) and alphabet and len(set(alphabet)) == len(alphabet):
        return alphabet
    raise MaskwalkError(f"alphabet must be different letters, such as 'abc', not {alphabet!r}.")


def _checked(dfa: Any, accepting: Any, letters: int) -> tuple[np.ndarray, list[int]]:
    """A user's automaton as arrays, or a sentence."""
    rows = isinstance(dfa, list | tuple) and all(isinstance(row, list | tuple) for row in dfa)
    if not rows or not dfa or any(len(row) != letters for row in dfa):
        raise MaskwalkError(
            f"dfa must be a list of rows with {letters} states each (one per letter), such as "
            f"[[1, 0], [0, 1]]; not {dfa!r}."
        )
    for state in [s for row in dfa for s in row]:
        whole("a state of dfa", state, -1, len(dfa) - 1)
    if not isinstance(accepting, list | tuple) or not accepting:
        raise MaskwalkError("accepting must list the states a word may end in; now none does.")
    ends = [whole("an accepting state", state, 0, len(dfa) - 1) for state in accepting]
    return np.array(dfa, dtype=np.int64), ends


def _weights(weights: Any, letters: int) -> list[float]:
    if not isinstance(weights, list | tuple) or len(weights) != letters:
        raise MaskwalkError(f"weights must be a list of {letters} numbers, not {weights!r}.")
    return [real("a weight", weight, 0.0, 1e6) for weight in weights]
