"""Probabilistic grammars in Chomsky normal form: random ones, ones read from text, best trees."""

import re
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase

import numpy as np
from jaxtyping import Float64, Int64

from maskwalk.errors import MaskwalkError, real, whole
from maskwalk.worlds.exact.chance import sparse_rows

TERM = re.compile(r"\s*(?:(\"[^\"]*\"|'[^']*')|([^\s\[\]|]+))")
CHANCE = re.compile(r"\s*\[\s*([0-9.eE+-]+)\s*\]\s*$")
EXAMPLE = "'S -> S S [0.4] | \"a\" [0.6]'"


@dataclass(frozen=True, eq=False)
class Grammar:
    """Rules parent → left right with probabilities, and the words of each nonterminal; 0 starts."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    parent: Int64[np.ndarray, " rules"]
    left: Int64[np.ndarray, " rules"]
    right: Int64[np.ndarray, " rules"]
    probs: Float64[np.ndarray, " rules"]
    lexicon: Float64[np.ndarray, "nonterminals words"]

    @cached_property
    def onto(self) -> Float64[np.ndarray, "rules nonterminals"]:
        """1 where a rule rewrites a nonterminal."""
        return np.asarray(np.eye(len(self.names))[self.parent])

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        both = np.stack([self.left, self.right], 1)
        pairs, inverse = np.unique(both, axis=0, return_inverse=True)
        return pairs, inverse.reshape(-1)

    @property
    def pairs(self) -> Int64[np.ndarray, "pairs two"]:
        """The different pairs of nonterminals that rules have."""
        return self._pairs[0]

    @property
    def pair(self) -> Int64[np.ndarray, " rules"]:
        """Which pair each rule has."""
        return self._pairs[1]

    def best_tree(self, words: list[int]) -> str:
        """The likeliest tree of a sentence in brackets."""
        count, names = len(words), len(self.names)
        best = np.zeros((count, count + 1, names))
        how: dict[tuple[int, int, int], tuple[int, int]] = {}
        best[np.arange(count), 1] = self.lexicon[:, words].T
        for width in range(2, count + 1):
            for i in range(count - width + 1):
                for k in range(1, width):
                    value = self.probs * best[i, k, self.left]
                    value = value * best[i + k, width - k, self.right]
                    for rule in np.nonzero(value > best[i, width, self.parent])[0].tolist():
                        parent = int(self.parent[rule])
                        if value[rule] > best[i, width, parent]:
                            best[i, width, parent] = value[rule]
                            how[i, width, parent] = rule, k

        def tree(i: int, width: int, name: int) -> str:
            if width == 1:
                return self.words[words[i]]
            rule, k = how[i, width, name]
            left = tree(i, k, int(self.left[rule]))
            return f"({left} {tree(i + k, width - k, int(self.right[rule]))})"

        return tree(0, count, 0)


def random_grammar(
    nonterminals: int, words: int, branches: int, lexicon: int, seed: int
) -> Grammar:
    """Each nonterminal has so many pairs and words, with random weights, half of the mass each."""
    whole("nonterminals", nonterminals, 1, 64), whole("words", words, 1, 4096)
    whole("branches", branches, 1, nonterminals**2), whole("lexicon", lexicon, 1, words)
    whole("seed", seed, 0, 2**63 - 1)
    probs = 0.5 * sparse_rows(nonterminals, nonterminals**2, branches, seed, 0)
    parent, pair = np.nonzero(probs)
    letters = len(ascii_lowercase)
    names = [ascii_lowercase[i] if words <= letters else f"w{i}" for i in range(words)]
    return Grammar(
        tuple(f"N{i}" for i in range(nonterminals)),
        tuple(names),
        parent,
        pair // nonterminals,
        pair % nonterminals,
        probs[parent, pair],
        0.5 * sparse_rows(nonterminals, words, lexicon, seed, 1),
    )


def read_grammar(text: str) -> Grammar:
    """A grammar in nltk's notation; lines end at a semicolon or a line break."""
    if not isinstance(text, str):
        raise MaskwalkError(f"grammar must be text such as {EXAMPLE}, not {text!r}.")
    rules: list[tuple[str, list[tuple[str, bool]], float]] = []
    for line in filter(str.strip, re.split(r"[;\n]", text)):
        parent, arrow, options = line.partition("->")
        if not arrow or not parent.strip():
            raise MaskwalkError(f"Cannot read the rule {line.strip()!r}; write {EXAMPLE}.")
        for option in options.split("|"):
            rules.append((parent.strip(), *_option(option, line)))
    names = list(dict.fromkeys(parent for parent, _, _ in rules))
    words = list(dict.fromkeys(s for _, terms, _ in rules for s, word in terms if word))
    if not words:
        raise MaskwalkError(f"This grammar has no words; put them in quotes: {EXAMPLE}.")
    lexicon = np.zeros((len(names), len(words)))
    binary: dict[tuple[int, ...], float] = {}
    for parent, terms, chance in rules:
        if len(terms) == 1 and terms[0][1]:
            lexicon[names.index(parent), words.index(terms[0][0])] += chance
        elif len(terms) == 2 and not terms[0][1] and not terms[1][1]:
            for symbol, _ in terms:
                if symbol not in names:
                    raise MaskwalkError(f"There is no rule for {symbol} in this grammar.")
            rule = tuple(names.index(s) for s in (parent, terms[0][0], terms[1][0]))
            binary[rule] = binary.get(rule, 0.0) + chance
        else:
            shown = " ".join(symbol for symbol, _ in terms)
            raise MaskwalkError(
                f"{parent} -> {shown} is not in Chomsky normal form: a rule leads to two "
                "nonterminals, or to one word in quotes."
            )
    totals = lexicon.sum(1)
    for (above, _, _), chance in binary.items():
        totals[above] += chance
    if not np.allclose(totals, 1.0, atol=1e-6):
        wrong = names[int(np.abs(totals - 1).argmax())]
        raise MaskwalkError(f"The probabilities of the rules of {wrong} do not sum to 1.")
    parents, left, right = np.array(list(binary), dtype=np.int64).reshape(-1, 3).T.copy()
    probs = np.array(list(binary.values()), dtype=np.float64)
    return Grammar(tuple(names), tuple(words), parents, left, right, probs, lexicon)


def _option(option: str, line: str) -> tuple[list[tuple[str, bool]], float]:
    """The symbols of one right-hand side (and whether each is a word), and its probability."""
    chance = CHANCE.search(option)
    if chance is None:
        raise MaskwalkError(f"A rule of {line.strip()!r} has no probability; write {EXAMPLE}.")
    body = option[: chance.start()]
    terms = [(word[1:-1], True) if word else (name, False) for word, name in TERM.findall(body)]
    try:
        return terms, real("a probability", float(chance.group(1)), 0.0, 1.0)
    except ValueError:
        raise MaskwalkError(f"{chance.group(1)!r} is not a probability from 0 to 1.") from None
