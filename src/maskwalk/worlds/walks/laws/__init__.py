"""Walk laws: spec strings such as lazy(stay=0.125) to laws of walks on a graph."""

from maskwalk.worlds.walks.laws.chain import ChainLaw, LazyLaw, dag, lazy, lazy_kernel
from maskwalk.worlds.walks.laws.distant import DistantLaw
from maskwalk.worlds.walks.laws.drift import drift, net_flow
from maskwalk.worlds.walks.laws.law import WALKS, WalkLaw
from maskwalk.worlds.walks.laws.markov import MarkovLaw, markov
from maskwalk.worlds.walks.laws.schedule import ScheduleLaw, schedule

__all__ = [
    "WALKS",
    "ChainLaw",
    "DistantLaw",
    "LazyLaw",
    "MarkovLaw",
    "ScheduleLaw",
    "WalkLaw",
    "dag",
    "drift",
    "lazy",
    "lazy_kernel",
    "markov",
    "net_flow",
    "schedule",
]
