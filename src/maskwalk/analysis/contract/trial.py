"""The contract, on small laws that anybody can hold in mind: a sampler's entrance examination.

A chain of order 1, a law of order 2 (where one revealed neighbour is not enough), and a flat law
whose marginals are alike everywhere, so that every score ties.
"""

from functools import cache

from maskwalk.analysis.contract.checks import Stand, failures
from maskwalk.decoding.arguments import as_sampler
from maskwalk.decoding.policy import Sampler
from maskwalk.resources import one_thread
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS
from maskwalk.worlds.walks.oracles import Oracle, oracle_for

LENGTH = 5


def _oracle(graph: str, walk: str) -> Oracle:
    return oracle_for(WALKS.build(walk, graph=GRAPHS.build(graph, seed=1), length=LENGTH))


@cache
def stands() -> tuple[Stand, ...]:
    """What `broken_checks` tries a sampler on."""
    flat = _oracle("st_er(nodes=4, p=1.0)", "lazy()")
    return (
        Stand(_oracle("st_er(nodes=5, p=0.2)", "lazy(stay=0.2)"), flat, LENGTH),
        Stand(_oracle("st_er(nodes=4, p=0.3)", "markov(order=2, seed=3)"), flat, LENGTH),
    )


def broken_checks(sampler: Sampler | str) -> dict[str, str]:
    """What a sampler (or the sampler of a spec) breaks: each failed check of the contract, and why.
    Empty if it keeps it."""
    rule = as_sampler(sampler)
    reasons: dict[str, str] = {}
    with one_thread():
        for stand in stands():
            for check, reason in failures(rule, stand):
                reasons.setdefault(check, reason)
    return reasons
