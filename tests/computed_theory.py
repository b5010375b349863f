"""The paper's theory, and that of other worlds, computed once for all tests of a process."""

from functools import cache

from maskwalk.paper.theory import Check, Row, check_all, check_worlds, world_laws


@cache
def computed_lemmas() -> list[Check]:
    return list(check_all())


@cache
def computed_laws() -> list[Row]:
    return list(world_laws())


@cache
def computed_claims() -> list[Check]:
    return list(check_worlds(computed_laws()))
