"""Walk laws: spec strings such as lazy(stay=0.125) to laws of walks on a graph."""

from maskwalk.walks.chain import ChainLaw, LazyLaw, dag, lazy, lazy_kernel
from maskwalk.walks.distant import DistantLaw
from maskwalk.walks.law import WALKS, WalkLaw
from maskwalk.walks.markov import MarkovLaw, markov

__all__ = [
    "WALKS",
    "ChainLaw",
    "DistantLaw",
    "LazyLaw",
    "MarkovLaw",
    "WalkLaw",
    "dag",
    "lazy",
    "lazy_kernel",
    "markov",
]
