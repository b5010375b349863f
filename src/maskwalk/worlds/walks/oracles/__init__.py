"""Exact oracles: denoisers that know the law. `oracle_for` picks the one a law allows."""

from typing import Any

from maskwalk.errors import MaskwalkError, shown
from maskwalk.resources import available_memory
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw, WalkLaw
from maskwalk.worlds.walks.oracles.base import Oracle
from maskwalk.worlds.walks.oracles.chain import LIMIT, ChainOracle, table_bytes
from maskwalk.worlds.walks.oracles.enumeration import EnumerationOracle
from maskwalk.worlds.walks.oracles.lifted import LiftedOracle
from maskwalk.worlds.walks.oracles.messages import SparseOracle
from maskwalk.worlds.walks.oracles.schedule import LIMIT as SCHEDULE_LIMIT
from maskwalk.worlds.walks.oracles.schedule import ScheduleOracle, schedule_bytes
from maskwalk.worlds.world import as_world


def oracle_for(law: WalkLaw | str) -> Oracle:
    """The fastest exact oracle of a law of walks, or of the spec of a world of them; a sentence if
    none is possible at its size."""
    law = _law(law)
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


def _law(given: Any) -> WalkLaw:
    world = given if isinstance(given, WalkLaw) else as_world(given)
    if isinstance(world, WalkLaw):
        return world
    raise MaskwalkError(
        f"{shown(given)} is no law of walks; the oracle of any world is "
        "maskwalk.as_denoiser('oracle', world=…)."
    )


__all__ = [
    "ChainOracle",
    "EnumerationOracle",
    "LiftedOracle",
    "Oracle",
    "ScheduleOracle",
    "SparseOracle",
    "oracle_for",
]
