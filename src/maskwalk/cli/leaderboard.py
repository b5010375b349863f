"""`maskwalk leaderboard`: rules on one scale, from records; and records run again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwalk.cli import common, complete
from maskwalk.cli.common import (
    bring_in,
    check_device,
    err,
    out,
    run_jobs,
    say_notes,
    say_written,
    watched,
)
from maskwalk.errors import MaskwalkError, whole

if TYPE_CHECKING:
    from maskwalk.bench.records import Record
    from maskwalk.bench.run import Engine

SHIPPED = (Path("results/atlas"), Path("results/worlds"))
EVALUATED = "evaluate"  # the experiment of an evaluation's records


def leaderboard(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Where `maskwalk evaluate --out` or `maskwalk bench` wrote, or the name of "
            "shipped records \\[results/atlas and results/worlds].",
            autocompletion=complete.results,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=common.path,
            help="Where the two files go \\[the first directory; leaderboard for shipped records].",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; run records again and compare their numbers."),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(help="With --check: FILE.py:Class whose records to run (the file is run)."),
    ] = None,
    replay: Annotated[
        bool | None,
        typer.Option(
            "--replay/--no-replay",
            help="Measure the KL per token that records do not hold, and keep it beside the page "
            "\\[of evaluations; elsewhere it takes long].",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes that measure it.", rich_help_panel=common.MACHINES)
    ] = 2,
    cells: Annotated[int, typer.Option(help="With --check: how many records, evenly.")] = 12,
    device: common.Device = "cpu",
    include: common.Include = None,
) -> None:
    """Rank rules by what they reach within 4, 8, 12 and 24 calls: leaderboard.json and a page.

    Rules are ranked where they have the same scenes; an evaluation brings the baselines of its own.
    Prints the first five of every ranking and your own; the page has all. The KL per token of an
    evaluation's baselines is measured the first time (half a minute).

    Exit code 1: a number did not come out again.

    Example: maskwalk evaluate my_policy.py:MyPolicy --out runs/mine

    Example: maskwalk leaderboard runs/mine

    Example: maskwalk leaderboard results/atlas

    Example: maskwalk leaderboard runs/mine --check --policy my_policy.py:MyPolicy
    """
    from maskwalk.bench.replays import load_replays, with_rows
    from maskwalk.bench.run import engine
    from maskwalk.bench.verdict.read import read_evaluations
    from maskwalk.bench.versions import load_newest
    from maskwalk.paper.tables import attach
    from maskwalk.report.leaderboard.board import tracks
    from maskwalk.report.leaderboard.page import write_board
    from maskwalk.report.leaderboard.replayed import with_replayed
    from maskwalk.report.leaderboard.terminal import board_lines
    from maskwalk.report.words import typed
    from maskwalk.resources import at_hand, shipped

    plugins = bring_in(include)
    whole("cells", cells, 1)
    whole("workers", workers, 1)
    records: list[Record] = []
    named = directories or list(SHIPPED)
    places = [at_hand(directory, "results") for directory in named]
    if not directories:  # those that came with this version, wherever one is
        places = [shipped("results") / directory.name for directory in named]
    for directory in places:
        some, aside = load_newest(directory, lean=True)
        say_notes(aside.lines())
        # What is run again is what was recorded, and nothing that was worked out from it.
        if not check:
            some = with_replayed(some, read_evaluations(directory))
            some = with_rows(some, load_replays(directory))
        records += some
    if check:
        _check(records, policy, cells, check_device(device))
        return
    if policy is not None:
        raise MaskwalkError("--policy names what --check runs; add --check or leave it out.")
    beside = named[0] if places[0] == named[0] else Path("leaderboard")
    to = to or beside
    if replay is not False:
        records = _replayed(records, to, engine(workers, check_device(device), plugins), replay)
    found = tracks(attach(records))
    for line in board_lines(found):
        out.print(line, soft_wrap=True)
    for path in write_board(found, to, typed(sys.argv[1:])):
        say_written(path)


def _replayed(
    records: "list[Record]", to: Path, place: "Engine", every: bool | None
) -> "list[Record]":
    """The records with the KL per token that they do not hold: of evaluations, or of all."""
    from maskwalk.bench.replays import FILE, load_replays, replay_jobs, with_rows
    from maskwalk.bench.run import Run, Unfinished
    from maskwalk.report.leaderboard.board import KL_BUDGET

    records = with_rows(records, load_replays(to))
    some = [r for r in records if every or r.get("experiment") == EVALUATED]
    if jobs := replay_jobs(some, KL_BUDGET):
        try:
            run_jobs(Run(jobs, to / FILE, place, load_replays), "KL per token")
        except Unfinished as problem:  # the board is true without them
            say_notes([str(problem)])
    return with_rows(records, load_replays(to))


def _check(records: "list[Record]", policy: str | None, cells: int, device: str) -> None:
    """A line for each record that differs, then a sentence."""
    from maskwalk.bench.labels import read, task_label
    from maskwalk.bench.rerun import chosen, rerun
    from maskwalk.bench.verdict.policy import candidate, setting_spec
    from maskwalk.samplers import SAMPLERS

    samplers = {}
    if policy is not None:
        mine = candidate(policy)
        samplers = {setting_spec(mine.name, label): one for label, one in mine.settings.items()}
    some, wrong, edited = chosen(records, cells, list(samplers)), 0, False
    for name in (read(record["sampler"]).name for record in some):
        if not samplers and name not in SAMPLERS:
            raise MaskwalkError(
                f"These records hold a sampler that is not shipped, {name}. Name its file, which "
                f"is run: --policy FILE.py:{name} for records of `maskwalk evaluate`, --include "
                "FILE.py for those of `maskwalk bench`."
            )
    for found in watched(rerun(some, samplers, device), "records", len(some)):
        edited |= found.edited
        wrong += not found.same
        for key, (before, now) in found.different.items():
            record = found.record
            where = record.get("title", ""), task_label(record["task"]), record["denoiser"]
            place = ", ".join(word for word in (record["sampler"], *where) if word)
            out.print(f"{place}: {key} {before} in the record, {now} now", soft_wrap=True)
    if edited:
        err.print("The records name another version of the policy's file.", style="yellow")
    if wrong:
        out.print(f"{wrong} of {len(some)} records did not come out again.")
        raise typer.Exit(1)
    out.print(f"{len(some)} of {len(some)} records came out again, every number the same.")
