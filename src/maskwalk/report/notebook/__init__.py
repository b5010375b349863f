"""The library in a notebook: `maskwalk.run`, and results that show themselves."""

from maskwalk.report.notebook.result import Number, Result
from maskwalk.report.notebook.results import Paired, Results
from maskwalk.report.notebook.runs import run

__all__ = ["Number", "Paired", "Result", "Results", "run"]
