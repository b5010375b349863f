"""The files of a report: one page, tables and figures."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from maskwalk.bench.records import Record
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.report.arrange import arrange
from maskwalk.report.budget_tables import budgets_markdown
from maskwalk.report.budgets import BUDGETS
from maskwalk.report.formats import long_csv, to_csv, to_latex, to_markdown
from maskwalk.report.losses import Row, groups, losses_files, specs
from maskwalk.report.study import Study
from maskwalk.report.tables import tables
from maskwalk.resources import write_file

FORMATS = ("html", "csv", "md", "tex", "svg", "pdf")


def write_report(
    records: Sequence[Record],
    out: Path,
    formats: Sequence[str] = ("html",),
    command: str | None = None,
    losses: Sequence[Row] = (),
    aside: int = 0,
    policies: Sequence[str] = (),
    replayed: float = 0.0,
) -> list[Path]:
    """Writes the report of the records into the folder `out` and returns the files written.

    html: report.html; csv, md, tex: tables/; svg, pdf: figures/. `command` is what the page names
    as the way to make it again; without it, the commands of the experiments. `losses` are the rows
    of `maskwalk diagnose` (bench.diagnosis.load_rows), with or without records. `aside` says how
    many records were left out before (bench.versions.newest). `policies` are those that a verdict
    page beside it is on, in its order. `replayed` is how many seconds may be spent on playing
    sequences again whose records hold no story (player.replays).
    """
    for name in formats:
        if name not in FORMATS:
            raise unknown("report format", name, FORMATS)
    study = arrange(records, specs(losses))
    study = replace(study, superseded=study.superseded + aside)
    lost = groups(study, losses)
    paths: list[Path] = []
    for name in dict.fromkeys(formats):
        if name == "html":
            from maskwalk.report.page import page  # jinja2 and matplotlib take time to import

            paths.append(
                _write(out / "report.html", page(study, command, lost, policies, replayed))
            )
        elif name in ("svg", "pdf"):
            from maskwalk.report.figures import figures

            for stem, image in figures(study, name, lost):
                paths.append(_write(out / "figures" / f"{stem}.{name}", image))
        else:
            files = _tables(study, name) | losses_files(lost, study, name)
            paths += [_write(out / "tables" / n, text) for n, text in files.items()]
    return paths


def front_tables(records: Sequence[Record], budgets: Sequence[float] = BUDGETS) -> str:
    """Pareto fronts, the best rule for every budget, and rules that change places, as Markdown."""
    for budget in budgets:
        if not budget >= 1:
            raise MaskwalkError(f"A budget of {budget:g} calls allows nothing; give 1 or more.")
    return budgets_markdown(arrange(records), budgets)


def _tables(study: Study, name: str) -> dict[str, str]:
    as_text = {"csv": to_csv, "md": to_markdown, "tex": to_latex}[name]
    files = {f"{table.stem}.{name}": as_text(table, study) for table in tables(study)}
    if name == "csv" and study.records:
        files["records.csv"] = long_csv(study)
    return files


def _write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, data)
    except OSError as error:
        raise MaskwalkError(
            f"Cannot write {path}: {error.strerror or error}. "
            "Free some space or choose another folder."
        ) from error
    return path
