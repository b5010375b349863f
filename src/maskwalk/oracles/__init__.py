"""Exact oracles: denoisers that know the law. `oracle_for` picks the one a law allows."""

from maskwalk.oracles.base import Oracle
from maskwalk.oracles.chain import LIMIT, ChainOracle, table_bytes
from maskwalk.oracles.enumeration import EnumerationOracle
from maskwalk.oracles.lifted import LiftedOracle
from maskwalk.walks import ChainLaw, WalkLaw


def oracle_for(law: WalkLaw) -> Oracle:
    """The fastest exact oracle of a law; a sentence if none is possible at its size."""
    if isinstance(law, ChainLaw) and table_bytes(law.vocab_size, law.length) <= LIMIT:
        return ChainOracle(law)
    return LiftedOracle(law)


__all__ = ["ChainOracle", "EnumerationOracle", "LiftedOracle", "Oracle", "oracle_for"]
