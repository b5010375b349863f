"""Bottleneck DAG: the coherence of two at a time, in closed form [paper, lemma in section 3.2].

K corridors of W parallel two-node paths; q = 1 - 1/W. The walk has 4K positions: 2K bottlenecks,
known from the start, and K dangerous pairs (a_i, b_i). Only a dangerous pair revealed in one round
can go wrong, and does with probability q.

Random-two. The rounds are a uniform perfect matching of the 4K positions, and j given pairs all lie
in it with probability ∏_{i<j} 1/(4K-1-2i). Summing (1-q)^(pairs in it) by inclusion-exclusion,

    R_K = Σ_j C(K,j) (-q)^j / ∏_{i<j} (4K-1-2i) = 1F1(-K; ½-2K; -q/2)  →  e^(-q/4).

The signs alternate but nothing cancels: each term is at most q/(3(j+1)) of the one before. Keeping
j <= 1 is the union bound R_K >= 1 - qK/(4K-1); the paper counts "at least 3K" positions and has
3K-1 there, which is weaker and also true.

Entropy-two. K rounds reveal the bottlenecks. Then all internal positions tie; a round takes one
dangerous pair with probability 1/(2n-1), else one position of each of two corridors, whose partners
have entropy 0 and come next, without risk. With n pairs left,

    E_n = (1/W) E_{n-1} / (2n-1) + (2n-2) E_{n-2} / (2n-1),   E_0 = 1.

Not in the paper: by generating functions this is E_n = 2F1(-n, q/4; ½; 2), and

    E_n ≈ √π [ (2n)^(-q/4) / Γ(½-q/4) + (-1)^n (2n)^(q/4-½) / Γ(q/4) ].

So E_K falls like K^(-q/4), and odd and even K differ by a term that falls faster.
"""

from array import array
from fractions import Fraction
from functools import lru_cache
from math import exp, gamma, log, pi, sqrt

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import brentq

from maskwalk.paper.theory.check import build
from maskwalk.worlds.walks.laws import WalkLaw

TERMS = 16  # the last is below 1/(3^16 16!) = 1e-21


def bottleneck(K: int, W: int) -> WalkLaw:
    """Walks through the bottleneck DAG with K corridors of width W."""
    return build(f"bottleneck_dag(corridors={K}, width={W})", "dag()", 4 * K)


def risk(W: int) -> float:
    """q: the probability that a dangerous pair revealed in one round disagrees."""
    return 1.0 - 1.0 / W


def random_two(K: Int64[np.ndarray, " n"], W: int) -> Float64[np.ndarray, " n"]:
    """R_K for many K at once, to the last digits of a float64."""
    term = np.ones(len(K))
    total = np.ones(len(K))
    for j in range(TERMS):
        # From j = K on the factor K - j has been 0 once, and so has every later term.
        term = term * (-risk(W) * (K - j)) / ((j + 1) * (4 * K - 1 - 2 * j))
        total += term
    return total


def random_two_exactly(K: int, W: int) -> Fraction:
    """R_K as a fraction, by the full sum."""
    q, term, total = 1 - Fraction(1, W), Fraction(1), Fraction(1)
    for j in range(K):
        term *= -q * Fraction(K - j, (j + 1) * (4 * K - 1 - 2 * j))
        total += term
    return total


def random_two_limit(W: int) -> float:
    """The limit e^(-q/4) of R_K."""
    return exp(-risk(W) / 4)


def union_bound(K: Int64[np.ndarray, " n"], W: int, levels: int) -> Float64[np.ndarray, " n"]:
    """1 - qK/(levels·K - 1): the paper's with levels = 3, the walk's own with levels = 4."""
    bound: np.ndarray = 1 - risk(W) * K / (levels * K - 1)
    return bound


@lru_cache(maxsize=8)
def entropy_two(K: int, W: int) -> Float64[np.ndarray, " n"]:
    """E_0, …, E_K by the recurrence; an average of two earlier terms, so errors do not grow."""
    values, before, now = array("d", [1.0]), 0.0, 1.0
    agree = 1.0 / W
    for odd in range(1, 2 * K, 2):  # 2n - 1
        before, now = now, (agree * now + (odd - 1) * before) / odd
        values.append(now)
    result = np.array(values)
    result.flags.writeable = False
    return result


def entropy_two_exactly(K: int, W: int) -> Fraction:
    """E_K as a fraction, by the closed form 2F1(-K, q/4; ½; 2)."""
    q, term, total = 1 - Fraction(1, W), Fraction(1), Fraction(1)
    for j in range(K):
        term *= Fraction(-2 * (K - j), j + 1) * (q / 4 + j) / (Fraction(1, 2) + j)
        total += term
    return total


def entropy_two_asymptote(K: float, W: int, sign: int) -> float:
    """The two leading terms of E_K; sign is +1 for even K and -1 for odd."""
    s = risk(W) / 4
    leading, parity = (2 * K) ** -s / gamma(0.5 - s), (2 * K) ** (s - 0.5) / gamma(s)
    return float(sqrt(pi) * (leading + sign * parity))


def entropy_two_bound(K: Int64[np.ndarray, " n"], W: int) -> Float64[np.ndarray, " n"]:
    """The paper's upper bound on E_K for even K: (2/(K/2 + 1))^(q/4)."""
    return (2 / (K / 2 + 1)) ** (risk(W) / 4)


def paper_bound(W: int) -> float:
    """The paper's lower bound 2/3 + 1/(3W) on the limit inferior of R_K - E_K."""
    return 2 / 3 + 1 / (3 * W)


def first_passing(W: int, limit: int) -> tuple[int | None, bool]:
    """The first even K <= limit with R_K - E_K above the paper's bound; does it stay above?"""
    K = np.arange(2, limit + 1, 2)
    above = random_two(K, W) - entropy_two(limit, W)[K] > paper_bound(W)
    if not above.any():
        return None, False
    first = int(above.argmax())
    return int(K[first]), bool(above[first:].all())


def first_passing_predicted(W: int) -> float:
    """Where the asymptotes of R_K and of E_K for even K differ by the paper's bound."""
    room = random_two_limit(W) - paper_bound(W)  # positive: e^-x > 1 - 4x/3 for 0 < x <= 1/4
    return exp(brentq(lambda t: entropy_two_asymptote(exp(t), W, 1) - room, log(2), log(1e30)))
