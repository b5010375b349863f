"""What a piece of work would take, said before it begins: memory and time, or a sentence.

Estimates are rough (a factor of two), and only what is far out of reach is refused: more memory
than this process may have (free memory, a control group's or ulimit's limit, shared by the worker
processes of a run), or hours where somebody expects an answer.
"""

from maskwalk.errors import MaskwalkError
from maskwalk.resources import available_memory, processes

HOURS = 4.0  # the longest single step that is begun without asking
DAY = 24.0  # the same of a whole decoding, whose calls get shorter as rows finish
CALLS = 8  # of the denoiser in a decoding, where nothing else is known
NODES = 5_000_000  # of a graph
# Figures of benchmarks/worlds_size.py, on one core:
COINS = 2e8  # tossed in a second
STEPS = 2e4  # steps of messages along a sequence in a second
ENTRIES = 4e8  # multiplications of a sparse product in a second
DRAWN = 3e7  # nodes that a draw looks at in a second
NODE, ARC = 100.0, 150.0  # bytes of a graph and the law of its walks


def fits(what: str, size: float, remedy: str) -> None:
    """Refuses what needs more memory than there is."""
    free = available_memory()
    if size > free:
        shared = f" for each of {processes()} processes" if processes() > 1 else ""
        raise MaskwalkError(
            f"{what} would take about {gigabytes(size)} of memory; this machine has "
            f"{gigabytes(free)} free{shared}. {remedy}"
        )


def in_time(what: str, seconds: float, remedy: str, hours: float = HOURS) -> None:
    """Refuses what would take far too long."""
    if seconds > 3600 * hours:
        units = ((2 * 86400, "days", 86400), (2 * 3600, "hours", 3600), (0, "minutes", 60))
        unit, size = next((unit, size) for least, unit, size in units if seconds >= least)
        raise MaskwalkError(f"{what} would take {seconds / size:,.0f} {unit} or more. {remedy}")


def gigabytes(size: float) -> str:
    """A size for people."""
    return f"{size / 1e9:,.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def check_graph(nodes: int, coins: float, edges: float) -> None:
    """A graph of so many nodes, drawn with so many coins, that will have about so many edges."""
    what, remedy = f"A graph of {nodes:,} nodes", "Use fewer nodes, or a smaller p."
    if nodes > NODES:
        raise MaskwalkError(f"{what} is too large to walk on here; at most {NODES:,} are.")
    fits(what, NODE * nodes + ARC * edges, remedy)
    in_time(what, coins / COINS, remedy, hours=120 / 3600)


def check_sequences(count: int, length: int) -> None:
    """So many sequences in memory, with what is made of them."""
    what = f"{count:,} sequences of {length:,} tokens"
    fits(what, 8.0 * 6 * count * length, "Use a smaller count, or shorter sequences.")


def fits_table(what: str, length: int, vocab: int) -> None:
    """A table of a number for every token at every position."""
    fits(what, 8.0 * 2 * length * vocab, "Use shorter sequences, or fewer nodes.")


def check_messages(rows: int, length: int, vocab: int, entries: int, calls: int = CALLS) -> None:
    """Messages along so many sequences over a kernel of so many entries, in so many calls."""
    seconds = rows * length * (8 / STEPS + 8.0 * entries / ENTRIES + vocab / DRAWN)
    what = f"Exact conditionals of {rows:,} sequences of {length:,} tokens"
    in_time(what, seconds, "Use a smaller count, shorter sequences, or fewer nodes.")
    remedy = "Use a sampler with fewer calls, a smaller count, or shorter sequences."
    in_time(f"{what}, {calls:,} times,", seconds * calls / CALLS, remedy, hours=DAY)
