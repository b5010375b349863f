"""Files of users in one process: the tables are as before afterwards, and nothing stays cached."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import config

from maskwalk.bench import cell, diagnosis
from maskwalk.cli.catalogue import all_tables
from maskwalk.worlds.metrics import METRICS
from maskwalk.worlds.world import _built

CACHES = (_built, cell._denoiser, cell._prompts, cell._exact_sequences, diagnosis._stage)


@contextmanager
def fresh_tables() -> Iterator[None]:
    """What is registered inside is forgotten at the end."""
    tables = [
        table
        for registry in all_tables().values()
        for table in (registry._members, registry._parts, registry._several, registry._files)
    ]
    tables += [METRICS._described, METRICS._worlds, METRICS._reads]
    before = [dict(table) for table in tables]
    try:
        yield
    finally:
        for table, members in zip(tables, before):
            table.clear()
            table.update(members)
        for cached in CACHES:
            cached.cache_clear()


@contextmanager
def without_type_checks() -> Iterator[None]:
    """As users have it: the tests' own type checks would answer first."""
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)
