"""The paper's claims in other worlds: which carry over, and what is lost where they do not."""

from maskwalk.paper.theory.worlds.claims import world_checks
from maskwalk.paper.theory.worlds.table import COLUMNS, Row, instances, laws

__all__ = ["COLUMNS", "Row", "instances", "laws", "world_checks"]
