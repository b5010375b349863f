"""Which of the paper's claims carry over to other worlds, each by computation.

Any order is exact one position at a time, in every world. Bisection in the line is exact only where
neighbours in the line are a separator:

    a strip of cells     column by column from order = height, row by row from order = width
    sums of n digits     plain from 2n + 1, reversed from n + 1, interleaved from 5: any five
                         neighbours hold a whole digit column (less where the blocks fall well)
    a hidden chain/tree  from no order, short of one position at a time

Bisection along a world's own separators is exact in any writing. It is not always the shortest way:
operands first, then the sum, is exact in two calls.
"""

from collections.abc import Iterable, Iterator, Sequence

from maskwalk.paper.theory.check import EXACT, Check, other_law, same_law
from maskwalk.paper.theory.exactness import SEQUENTIAL
from maskwalk.paper.theory.worlds.counterexamples import counterexamples
from maskwalk.paper.theory.worlds.instance import Instance, between_ends, instance
from maskwalk.paper.theory.worlds.plans import shortest_exact_plan
from maskwalk.paper.theory.worlds.table import PLAN, InRounds, Row, even, instances, number
from maskwalk.samplers import Bisection, GuidedBisection, Planned

STRIPS = ((2, 3), (2, 4), (2, 5), (3, 4))
DIGITS = range(1, 5)
WIDE = "potts(height=2, width=7, order='rows')"
INTERLEAVED = "addition(digits={digits}, base=2, order='interleaved')"
LUCKY = "dyck(kinds=2, depth=2, length=8)"
TELLING = "hmm(states=4, tokens=3, length=7, successors=2, emissions=1)"
SHORTEST = {  # calls of the shortest exact plan; None: one at a time
    "addition, plain": 2,
    "addition, reversed": 2,
    "addition, interleaved": 2,
    "hmm": None,
    "pcfg": None,
    "hierarchy, shown": 4,
    "potts, rows": 4,
    "potts, columns": 4,
}


def world_checks(rows: Sequence[Row]) -> Iterator[Check]:
    """Every claim; some are about the table's rows."""
    every = instances()
    yield from one_at_a_time(every)
    yield from along(every)
    yield from strips()
    yield from sums()
    yield from no_order(every)
    yield from by_luck()
    yield from shortest(every, rows)
    yield from certainty(every, rows)
    yield from counterexamples()


def one_at_a_time(every: Iterable[Instance]) -> Iterator[Check]:
    """Every order of revealing gives the law, in every world."""
    for at in every:
        tv = max(at.distance(policy) for policy in SEQUENTIAL.values())
        yield same_law(f"one at a time: {at.label}", tv)


def along(every: Iterable[Instance]) -> Iterator[Check]:
    """Revealing a world's own separators gives the law, from scratch and between given ends."""
    for at in [*every, instance(WIDE)]:
        if at.separators is not None:
            policy = Bisection(along="world", world=at.world)
            tv = max(at.distance(policy), between_ends(at).distance(policy))
            size = ", 2x7" if at.name == WIDE else ""
            yield same_law(f"along the world: {at.label}{size}", tv)


def strips() -> Iterator[Check]:
    """A whole column (row) of cells separates a strip written by columns (rows); less does not."""
    for height, width in STRIPS:
        for order, enough in (("columns", height), ("rows", width)):
            at = instance(f"potts(height={height}, width={width}, order='{order}')")
            yield exact_from(f"{at.label}, {height}x{width}", at, enough)
    at = instance("potts(height=2, width=4, order='columns')")
    yield same_law("guided k=2: potts, columns, 2x4", at.distance(GuidedBisection(2)))


def sums() -> Iterator[Check]:
    """How wide a block must be grows with the digits, unless their columns are written together."""
    for order, each, more in (("plain", 2, 1), ("reversed", 1, 1)):
        for digits in DIGITS:
            at = instance(f"addition(digits={digits}, base=2, order='{order}')")
            yield exact_from(f"{at.label}, n={digits}", at, each * digits + more)
    for digits, enough in ((4, 5), (3, 2)):
        at = instance(INTERLEAVED.format(digits=digits))
        yield exact_from(f"{at.label}, n={digits}", at, enough)
    yield same_law(f"guided k=5: {at.label}, n=3", at.distance(GuidedBisection(5)))
    at = instance("addition(digits=2, base=2, order='reversed')")
    yield other_law(f"guided k=3: {at.label}, n=2", at.distance(GuidedBisection(3)))


def no_order(every: Iterable[Instance]) -> Iterator[Check]:
    """Where dependence runs through what is never shown, only one at a time is exact.

    Two neighbouring tokens may name the state of a hidden chain: then there is an order.
    """
    for at in every:
        if at.label in ("hmm", "pcfg", "hierarchy, hidden"):
            yield exact_from(at.label, at, len(at.masked) - 1)
    yield exact_from("hmm that shows its states", instance(TELLING), 2)


def by_luck() -> Iterator[Check]:
    """A narrow block may fall well where a wider one does not."""
    for at, narrow in ((instance(LUCKY), 1), (instance(INTERLEAVED.format(digits=2)), 2)):
        short = "dyck of depth 2" if at.label == "dyck" else f"{at.label}, n=2"
        yield same_law(f"by luck k={narrow}: {short}", at.distance(Bisection(narrow)))
        yield other_law(f"not so k={narrow + 1}: {short}", at.distance(Bisection(narrow + 1)))


def shortest(every: Iterable[Instance], rows: Iterable[Row]) -> Iterator[Check]:
    """How many calls an exact plan needs: separators are not always the shortest way."""
    found = {row.world: row.calls for row in rows if row.sampler == PLAN}
    for at in every:
        if at.label in SHORTEST and at.name in found:
            predicted, computed = SHORTEST[at.label] or len(at.masked), found[at.name]
            claim, right = f"shortest exact plan: {at.label}", predicted == computed
            yield Check(claim, f"{predicted} calls", f"{computed} calls", right)
    strip = instance("potts(height=2, width=4, order='rows')")
    columns = Bisection(along="world", world=strip.world)
    said = f"{strip.calls(columns)}, {max(shortest_exact_plan(strip))} calls"
    yield Check("along the world, shortest: potts, 2x4", "6, 4 calls", said, said == "6, 4 calls")
    tv = 0.0
    for digits in DIGITS:
        at = instance(f"addition(digits={digits}, base=2, order='plain')")
        tv = max(tv, at.distance(Planned((0,) * 2 * digits + (1,) * (digits + 1))))
    yield same_law(f"operands, then the sum: n={DIGITS[0]}-{DIGITS[-1]}", tv)


def certainty(every: Iterable[Instance], rows: Sequence[Row]) -> Iterator[Check]:
    """Certainty first against random at equal calls: neither always; and calls may do harm."""
    kls = {(row.world, row.calls, row.sampler.split()[0]): row.kl for row in rows}
    pairs = [(kls[w, c, "random"], kl) for (w, c, name), kl in kls.items() if name == "entropy"]
    ahead = sum(certain < random for random, certain in pairs)
    said = f"{ahead} of {len(pairs)}"
    yield Check("entropy ahead of random, by KL", "some", said, 0 < ahead < len(pairs))
    latin = next(at for at in every if at.label == "latin")
    fewer = next(r for r in rows if r.world == latin.name and r.sampler.startswith("entropy"))
    more = latin.distance(InRounds(even(len(latin.masked), fewer.calls + 2), "entropy"))
    yield Check(
        f"entropy, {latin.label}: {fewer.calls}, {fewer.calls + 2} calls",
        "TV rises",
        f"{number(fewer.tv)}, {number(more)}",
        more > fewer.tv + EXACT,
    )


def exact_from(name: str, at: Instance, enough: int) -> Check:
    """The check that bisection in the line is exact for exactly the orders from `enough` on."""
    last = len(at.masked) - 1  # one position at a time
    found = [k for k in range(1, last + 1) if at.distance(Bisection(k)) < EXACT]
    holds = found == list(range(enough, last + 1))
    return Check(f"exact orders: {name}", f"k >= {enough}", _spans(found, last), holds)


def _spans(orders: list[int], last: int) -> str:
    """k >= 5 if these are all from 5 on; else one by one."""
    if orders == list(range(orders[0], last + 1)):
        return f"k >= {orders[0]}"
    return "k = " + ", ".join(map(str, orders))
