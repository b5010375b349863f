"""Records in, pages out: tables, figures, one self-contained HTML page; nothing is recomputed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwalk.report.budgets import BUDGETS
    from maskwalk.report.terminal import terminal_table
    from maskwalk.report.write import FORMATS, front_tables, write_report

__all__ = ["BUDGETS", "FORMATS", "front_tables", "terminal_table", "write_report"]

HOMES = {  # imported when first asked for: a summary in the terminal needs no page
    "BUDGETS": "budgets",
    "FORMATS": "write",
    "front_tables": "write",
    "terminal_table": "terminal",
    "write_report": "write",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"maskwalk.report.{HOMES[name]}"), name)
