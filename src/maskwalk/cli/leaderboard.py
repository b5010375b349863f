"""`maskwalk leaderboard`: rules on one scale, from records; and records run again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwalk.cli import common, complete
from maskwalk.cli.common import bring_in, check_device, err, out, say_notes, say_written
from maskwalk.errors import MaskwalkError, whole

if TYPE_CHECKING:
    from maskwalk.bench.records import Record

SHIPPED = (Path("results/atlas"), Path("results/worlds"))


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
    cells: Annotated[int, typer.Option(help="With --check: how many records, evenly.")] = 12,
    device: common.Device = "cpu",
    include: common.Include = None,
) -> None:
    """Rank rules by what they reach within 4, 8, 12 and 24 calls: leaderboard.json and a page.

    Rules are ranked where they have the same scenes; an evaluation brings the baselines of its own.
    Prints the first five of every ranking and your own; the page has all.

    Exit code 1: a number did not come out again.

    Example: maskwalk evaluate my_policy.py:MyPolicy --out runs/mine

    Example: maskwalk leaderboard runs/mine

    Example: maskwalk leaderboard results/atlas

    Example: maskwalk leaderboard runs/mine --check --policy my_policy.py:MyPolicy
    """
    from maskwalk.bench.verdict.read import read_evaluations
    from maskwalk.bench.versions import load_newest
    from maskwalk.paper.tables import attach
    from maskwalk.report.leaderboard.board import tracks
    from maskwalk.report.leaderboard.page import write_board
    from maskwalk.report.leaderboard.replayed import with_replayed
    from maskwalk.report.leaderboard.terminal import board_lines
    from maskwalk.report.words import typed
    from maskwalk.resources import at_hand, shipped

    bring_in(include)
    whole("cells", cells, 1)
    records: list[Record] = []
    named = directories or list(SHIPPED)
    places = [at_hand(directory, "results") for directory in named]
    if not directories:  # those that came with this version, wherever one is
        places = [shipped("results") / directory.name for directory in named]
    for directory in places:
        some, aside = load_newest(directory, lean=True)
        say_notes(aside.lines())
        # What is run again is what was recorded, and nothing that was worked out from it.
        records += some if check else with_replayed(some, read_evaluations(directory))
    if check:
        _check(records, policy, cells, check_device(device))
        return
    if policy is not None:
        raise MaskwalkError("--policy names what --check runs; add --check or leave it out.")
    beside = named[0] if places[0] == named[0] else Path("leaderboard")
    found = tracks(attach(records))
    for line in board_lines(found):
        out.print(line, soft_wrap=True)
    for path in write_board(found, to or beside, typed(sys.argv[1:])):
        say_written(path)


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
    for found in rerun(some, samplers, device):
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
