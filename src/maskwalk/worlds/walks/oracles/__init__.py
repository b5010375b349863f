"""Exact oracles: denoisers that know the law. `oracle_for` picks the one a law allows."""

from maskwalk.resources import available_memory
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw, WalkLaw
from maskwalk.worlds.walks.oracles.base import Oracle
from maskwalk.worlds.walks.oracles.chain import LIMIT, ChainOracle, table_bytes
from maskwalk.worlds.walks.oracles.enumeration import EnumerationOracle
from maskwalk.worlds.walks.oracles.lifted import LiftedOracle
from maskwalk.worlds.walks.oracles.messages import SparseOracle
from maskwalk.worlds.walks.oracles.schedule import LIMIT as SCHEDULE_LIMIT
from maskwalk.worlds.walks.oracles.schedule import ScheduleOracle, schedule_bytes


def oracle_for(law: WalkLaw) -> Oracle:
    """The fastest exact oracle of a law; a sentence if none is possible at its size."""
    free = available_memory()
    if isinstance(law, ChainLaw):
        size = table_bytes(law.vocab_size, law.length)
        if size <= LIMIT and 1.3 * size <= free:
            return ChainOracle(law)
    if isinstance(law, ScheduleLaw):
        size = schedule_bytes(law)
        if size <= SCHEDULE_LIMIT and 1.3 * size <= free:
            return ScheduleOracle(law)
    if isinstance(law, ChainLaw | ScheduleLaw):
        return SparseOracle(law)
    return LiftedOracle(law)


__all__ = [
    "ChainOracle",
    "EnumerationOracle",
    "LiftedOracle",
    "Oracle",
    "ScheduleOracle",
    "SparseOracle",
    "oracle_for",
]
