"""`make soak`: kills every command many times and prints what came of it.

    python -m tests.faults.soak --kills 1000

An episode is a directory: a command is killed in it up to five times at random moments (uniform
over the time that an undisturbed run takes), started again each time, and at last left to finish;
then everything it wrote is compared with the undisturbed run. Most runs are forks of a process that
has imported everything; one in ten is a new interpreter. Episodes that are done stand in
DIR/soak.jsonl: the same command goes on after them.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from tests.faults.commands import COMMANDS, NEEDS_TEXT
from tests.faults.kills import Killer, Tally
from tests.faults.server import Server

AT_ONCE = 5  # kills of an episode, at most
COLUMNS = ("kills", "fresh", "lost", "twice", "different", "tracebacks", "seconds")


def main() -> int:
    """Goes through the commands; the exit code is 1 if anything went wrong."""
    wanted = _arguments()
    names = [name for name in COMMANDS if wanted.only is None or name == wanted.only]
    if not _has_text():
        names = [name for name in names if name not in NEEDS_TEXT]
        print("The text run is left out: it needs the extra maskwalk[language].", file=sys.stderr)
    done = _done(wanted.out, wanted.seed)
    server, began, first = Server(), time.monotonic(), sum(tally.kills for tally in done)
    try:
        for place, name in enumerate(names):
            share = wanted.kills // len(names) + (place < wanted.kills % len(names))
            killer = Killer(name, wanted.out, server, wanted.seed)
            before = [tally for tally in done if tally.command == name]
            left, number = share - sum(tally.kills for tally in before), len(before)
            while left > 0:
                tally = killer.episode(number, min(left, AT_ONCE), wanted.fresh)
                done.append(tally)
                _keep(wanted.out, wanted.seed, tally)
                left, number = left - tally.kills, number + 1
                _say(sum(t.kills for t in done), first, wanted.kills, began, done)
    finally:
        server.close()
        print(file=sys.stderr)
    print(table(done))
    return 0 if all(tally.clean for tally in done) else 1


def _arguments() -> argparse.Namespace:
    words = argparse.ArgumentParser(description="Kills commands at random moments.")
    words.add_argument("--kills", type=int, default=1000, help="in all")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--only", choices=list(COMMANDS), help="one command")
    words.add_argument("--fresh", type=float, default=0.1, help="share in a new interpreter")
    words.add_argument("--out", type=Path, default=Path("runs/soak"), help="where to work")
    wanted = words.parse_args()
    wanted.out = wanted.out.resolve()
    return wanted


def _has_text() -> bool:
    from importlib.util import find_spec

    return find_spec("transformers") is not None


def _done(out: Path, seed: int) -> list[Tally]:
    """The episodes of an earlier run with this seed."""
    file = out / "soak.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [Tally(**row["tally"]) for row in rows if row["seed"] == seed]


def _keep(out: Path, seed: int, tally: Tally) -> None:
    with (out / "soak.jsonl").open("a") as file:
        file.write(json.dumps({"seed": seed, "tally": tally.as_json()}) + "\n")


def _say(kills: int, first: int, goal: int, began: float, done: list[Tally]) -> None:
    each = (time.monotonic() - began) / max(1, kills - first)
    bad = sum(not tally.clean for tally in done)
    left = each * (goal - kills) / 60
    line = f"{kills}/{goal} kills, {each:.2f} s each, {left:.0f} min left, {bad} bad episodes"
    print(f"\r{line}: {done[-1].command:<20}", end="", file=sys.stderr, flush=True)


def table(done: list[Tally]) -> str:
    """A row for every command, and their sum."""
    names = list(dict.fromkeys(tally.command for tally in done))
    rows = [(name, [t for t in done if t.command == name]) for name in names] + [("all", done)]
    lines = [f"| command | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    for name, some in rows:
        sums = [sum(getattr(tally, column) for tally in some) for column in COLUMNS]
        lines.append(f"| {name} | {' | '.join(f'{value:,.0f}' for value in sums)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
