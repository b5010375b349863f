"""Records in, pages out: tables, figures, one self-contained HTML page; nothing is recomputed."""

from collections.abc import Sequence
from pathlib import Path

from maskwalk.errors import MaskwalkError, unknown
from maskwalk.report.fronts import fronts_markdown
from maskwalk.report.ledger import Row, groups, ledger_tables, read_ledger, specs
from maskwalk.report.page import page
from maskwalk.report.rules import BUDGETS
from maskwalk.report.study import Record, Study, arrange
from maskwalk.report.tables import long_csv, tables, to_csv, to_latex, to_markdown
from maskwalk.report.terminal import terminal_table, text_table
from maskwalk.report.texts import arrange_texts, is_text
from maskwalk.report.texts_page import text_page
from maskwalk.report.texts_tables import (
    text_tables,
    texts_csv,
    texts_latex,
    texts_long_csv,
    texts_markdown,
)

__all__ = [
    "BUDGETS",
    "FORMATS",
    "front_tables",
    "is_text",
    "read_ledger",
    "terminal_table",
    "text_table",
    "write_report",
    "write_text_report",
]

FORMATS = ("html", "csv", "md", "tex", "svg", "pdf")


def write_report(
    records: list[Record],
    out: Path,
    formats: tuple[str, ...] | list[str] = ("html",),
    command: str | None = None,
    ledger: Sequence[Row] = (),
) -> list[Path]:
    """Writes the report of the records into the folder `out` and returns the files written.

    html: report.html; csv, md, tex: tables/; svg, pdf: figures/. `command` is what the page names
    as the way to make it again; without it, the bench and report commands of the experiments.
    `ledger` are the rows of `maskwalk diagnose` (read_ledger), with or without records.
    """
    _check_formats(formats)
    study = arrange(records, specs(ledger))
    told = groups(study, ledger)
    made: list[Path] = []
    for name in dict.fromkeys(formats):
        if name == "html":
            made.append(_write(out / "report.html", page(study, command, told)))
        elif name in ("svg", "pdf"):
            from maskwalk.report.figures import figures  # matplotlib takes a second to import

            for stem, image in figures(study, name, told):
                made.append(_write(out / "figures" / f"{stem}.{name}", image))
        else:
            files = _tables(study, name) | ledger_tables(told, study, name)
            made += [_write(out / "tables" / n, text) for n, text in files.items()]
    return made


def write_text_report(
    records: list[Record],
    out: Path,
    formats: tuple[str, ...] | list[str] = ("html",),
    command: str | None = None,
) -> list[Path]:
    """The same for records of texts (`kind` is "text"); files and folders have the same names."""
    _check_formats(formats)
    study = arrange_texts(records)
    sheets, made = text_tables(study), []
    for name in dict.fromkeys(formats):
        if name == "html":
            made.append(_write(out / "report.html", text_page(study, command)))
        elif name in ("svg", "pdf"):
            from maskwalk.report.texts_figures import text_figures  # as above

            for stem, image in text_figures(study, name):
                made.append(_write(out / "figures" / f"{stem}.{name}", image))
        elif name == "csv":
            made += [_write(out / "tables" / f"{t.stem}.csv", texts_csv(t, study)) for t in sheets]
            made.append(_write(out / "tables" / "records.csv", texts_long_csv(study)))
        else:
            as_text = {"md": texts_markdown, "tex": texts_latex}[name]
            made += [_write(out / "tables" / f"{t.stem}.{name}", as_text(t)) for t in sheets]
    return made


def front_tables(records: list[Record], budgets: Sequence[float] = BUDGETS) -> str:
    """Pareto fronts, the best rule for every budget of calls, and rules that change places."""
    for budget in budgets:
        if not budget >= 1:
            raise MaskwalkError(f"A budget of {budget:g} calls allows nothing; give 1 or more.")
    return fronts_markdown(arrange(records), budgets)


def _check_formats(formats: Sequence[str]) -> None:
    for name in formats:
        if name not in FORMATS:
            raise unknown("report format", name, FORMATS)


def _tables(study: Study, name: str) -> dict[str, str]:
    shown = {"csv": to_csv, "md": to_markdown, "tex": to_latex}[name]
    files = {f"{table.stem}.{name}": shown(table) for table in tables(study)}
    if name == "csv" and study.cells:
        files["records.csv"] = long_csv(study)
    return files


def _write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise MaskwalkError(
            f"Cannot write {path}: {error.strerror or error}. "
            "Free some space or choose another folder."
        ) from error
    return path
