"""The minute's reading of a report of texts: sentences computed from the records.

Policies are compared within a budget of calls as rules are (rules.py): each at its best setting,
the best against the next, paid for by the number of settings and Holm's correction over all
comparisons of a mode. Standard errors are taken as if texts were independent. Nobody leads by
replay: of a policy that throws dice it is an upper bound, which an exact number does not beat.
No number is given without its interval, and nothing is said to lead that has none.
"""

from collections.abc import Sequence
from math import hypot, sqrt
from typing import NamedTuple

from maskwalk.report.rules import leaders_of
from maskwalk.report.study import Estimate
from maskwalk.report.summary import Finding, Point, listed, plural
from maskwalk.report.tables import span
from maskwalk.report.texts import CALLS, INTERVAL, METRICS, Metric, TextStudy, at_most, half_width
from maskwalk.report.texts_tables import shown

BUDGETS = (8.0, 16.0, 32.0, 64.0, 128.0)
BY = {metric.key: metric for metric in METRICS}
LED = ("mauve",)
MARKS = ("judge_bpb", "own_bpb", "entropy", "rep1")
STANDING = ("mauve", *MARKS, "replay_bpb")


class Known(NamedTuple):
    """A policy's number that has an interval, at so many calls."""

    setting: int
    held: Estimate
    se: float
    calls: float


class Side(NamedTuple):
    """A policy's best setting within a budget, its number in words, and of how many texts."""

    setting: int
    number: str
    n: int | None


class Round(NamedTuple):
    """The best policy within a budget against the next; `level` cannot be told from the best."""

    budget: float
    first: Side
    second: Side
    clear: bool
    level: int


class Contest(NamedTuple):
    """The rounds of one metric."""

    metric: Metric
    rounds: list[Round]

    def at(self, budget: float) -> Round | None:
        """The round of a budget."""
        return next((one for one in self.rounds if one.budget == budget), None)

    @property
    def n(self) -> str:
        """Of how many texts its numbers are."""
        return span([float(s.n) for r in self.rounds for s in (r.first, r.second) if s.n])


def text_intro(study: TextStudy) -> str:
    """What was run, in two sentences."""
    policies = sum(s not in study.causal for s in range(len(study.samplers)))
    ran = [plural(policies, "setting") + " of the masked model"] if policies else []
    ran += ["AR"] * bool(study.causal) + ["held-out text"] * bool(study.held)
    lengths = sorted({float(r["length"]) for r in study.cells.values() if r.get("length")})
    made = sum(int(r.get("count") or 0) for r in study.cells.values())
    long = f" of {span(lengths)} tokens" if lengths else ""
    total = f" {plural(made, 'text')}{long} in all." if made else ""
    on = f" on {study.title}" if study.title else ""
    return f"{listed(ran)}{on}, with {listed(study.modes)}.{total}"


def draws_told(study: TextStudy) -> list[tuple[str, str]]:
    """What each mode means: from which probabilities tokens are drawn."""
    out = []
    for mode, name in enumerate(study.modes):
        first = study.settings(mode)[:1]
        draw = study.cells[mode, first[0]].get("draw") if first else None
        draw = draw if isinstance(draw, dict) else {}
        share, least, heat = (draw.get(key) for key in ("top_p", "min_p", "temperature"))
        said = "from the model’s own probabilities"
        if share not in (None, 1.0):
            said = f"from the likeliest tokens that together hold {share} of the probability"
        said += f", none below {least} of the likeliest" if least else ""
        said += f", at temperature {heat}" if heat not in (None, 1.0) else ""
        said += f", in {draw['precision']}" if draw.get("precision") else ""
        out.append((name, f"tokens drawn {said}" if draw else "draws unknown"))
    return out


def with_interval(metric: Metric, held: Estimate) -> str:
    """ "0.932 ± 0.021"; a dash for an interval that is not known."""
    half = half_width(held)
    error = "–" if half is None else f"{half:.{metric.digits}f}"
    return "≤ " * at_most(metric, held) + f"{shown(metric, held.value)} ± {error}"


def text_findings(study: TextStudy, mode: int) -> list[Finding]:
    """The sentences of one mode."""
    made = _standing(study, mode, None, "Held-out text:")
    for s in study.settings(mode):
        if s in study.causal:
            made += _standing(study, mode, s, f"{study.label(s)} ({_calls(study, mode, s)}):")
    contests = best_policies(study, mode)
    made += [_led(study, one) for one in contests] + _unled(study, mode, contests)
    return [*made, *_against_ar(study, mode), *_nearest(study, mode)]


def _calls(study: TextStudy, mode: int, setting: int) -> str:
    held = study.estimate(mode, setting, "calls")
    return f"{shown(CALLS, held.value)} calls" if held else "calls unknown"


def _standing(study: TextStudy, mode: int, setting: int | None, lead: str) -> list[Finding]:
    said = []
    for key in STANDING:
        held = study.estimate(mode, setting, key)
        if held:
            n = "" if held.n is None else f" (n = {held.n:,})"
            said.append(f"{BY[key].name} {with_interval(BY[key], held)}{n}")
    return [Finding(lead, ", ".join(said) + ".")] if said else []


def _known(study: TextStudy, mode: int, key: str) -> list[Known]:
    """The policies that have this number, an interval for it, and calls."""
    out = []
    for s in study.settings(mode):
        held, calls = study.estimate(mode, s, key), study.estimate(mode, s, "calls")
        if s not in study.causal and held and held.se is not None and calls:
            out.append(Known(s, held, held.se, calls.value))
    return out


def best_policies(study: TextStudy, mode: int) -> list[Contest]:
    """The best policy within every budget, for the metrics of which one can lead."""
    points = [
        Point(one.setting, place, BY[key].better * one.held.value, one.se, one.calls, one.calls)
        for place, key in enumerate(LED)
        for one in _known(study, mode, key)
    ]
    rounds: dict[int, list[Round]] = {}
    for lead in leaders_of(study, points, BUDGETS):
        if lead.second is not None:
            metric = BY[LED[lead.panel]]
            first, second = lead.best.point, lead.second.point
            numbers = [_number(study, mode, metric, point) for point in (first, second)]
            sides = (Side(first.sampler, *numbers[0]), Side(second.sampler, *numbers[1]))
            rounds.setdefault(lead.panel, []).append(
                Round(lead.budget, *sides, lead.clear, len(lead.level))
            )
    return [Contest(BY[LED[place]], found) for place, found in sorted(rounds.items())]


def _number(study: TextStudy, mode: int, metric: Metric, point: Point) -> tuple[str, int | None]:
    held = study.estimate(mode, point.sampler, metric.key)
    assert held is not None  # a point is made of an estimate
    return f"{with_interval(metric, held)} at {shown(CALLS, point.calls)} calls", held.n


def _led(study: TextStudy, contest: Contest) -> Finding:
    """Who is ahead of the next beyond the noise, and where nobody is."""
    won: dict[tuple[Side, Side], list[float]] = {}
    for one in contest.rounds:
        if one.clear:
            won.setdefault((one.first, one.second), []).append(one.budget)
    parts = []
    for (first, second), budgets in won.items():
        ahead = f"{study.label(first.setting)} ({first.number})"
        behind = f"{study.label(second.setting)} ({second.number})"
        parts.append(f"within {_budgets(budgets)} calls {ahead} is ahead of {behind}")
    open_ = [one.budget for one in contest.rounds if not one.clear]
    if open_:
        parts.append(f"within {_budgets(open_)} calls the noise leaves open who leads")
    name = contest.metric.name
    return Finding(f"{name[0].upper()}{name[1:]} at equal calls:", f"{'; '.join(parts)}.")


def _budgets(found: Sequence[float]) -> str:
    return listed([f"{budget:g}" for budget in found])


def _unled(study: TextStudy, mode: int, contests: Sequence[Contest]) -> list[Finding]:
    """Metrics of which policies could lead, had they intervals."""
    out = []
    for metric in (BY[key] for key in LED if BY[key] not in [c.metric for c in contests]):
        held = [study.estimate(mode, s, metric.key) for s in study.settings(mode)]
        if sum(e is not None for e in held) > 1 and all(e is None or e.se is None for e in held):
            text = "the records give no interval, so nothing is said to lead."
            out.append(Finding(f"{metric.name[0].upper()}{metric.name[1:]} at equal calls:", text))
    return out


def _against_ar(study: TextStudy, mode: int) -> list[Finding]:
    """How far the highest policy is below AR's MAUVE."""
    metric, known = BY["mauve"], _known(study, mode, "mauve")
    ar = next((s for s in study.settings(mode) if s in study.causal), None)
    mark = None if ar is None else study.estimate(mode, ar, "mauve")
    if mark is None or mark.se is None or not known:
        return []
    best = max(known, key=lambda k: (k.held.value, -k.calls))
    gap, noise = best.held.value - mark.value, INTERVAL * hypot(mark.se, best.se)
    text = f"the highest policy is {_said(study, metric, best)}, {gap:+.3f} ± {noise:.3f} from it."
    return [Finding(f"To AR’s MAUVE ({with_interval(metric, mark)}):", text)]


def _said(study: TextStudy, metric: Metric, one: Known) -> str:
    number, n = with_interval(metric, one.held), one.held.n
    of = "" if n is None else f", n = {n:,}"
    return f"{study.label(one.setting)} at {shown(CALLS, one.calls)} calls ({number}{of})"


def _nearest(study: TextStudy, mode: int) -> list[Finding]:
    """Where held-out text is the mark: the policy that is nearest to it."""
    parts = []
    for key in MARKS:
        mark, known = study.estimate(mode, None, key), _known(study, mode, key)
        if mark and mark.se is not None and known:
            value = mark.value
            best = min(known, key=lambda k: (abs(k.held.value - value), k.calls))
            theirs = with_interval(BY[key], mark)
            parts.append(f"in {BY[key].name} ({theirs}) {_said(study, BY[key], best)}")
    return [Finding("Nearest to held-out text:", "; ".join(parts) + ".")] if parts else []


def draws_compared(study: TextStudy) -> list[Finding]:
    """What the draws change, over the policies that every mode has a number and interval for."""
    parts = []
    for key in ("mauve", "own_bpb", "entropy"):
        held = [
            {one.setting: one for one in _known(study, mode, key)}
            for mode in range(len(study.modes))
        ]
        both = set.intersection(*(set(mine) for mine in held)) if len(held) > 1 else set()
        if not both:
            continue
        said = []
        for mine, name in zip(held, study.modes):
            mean = sum(mine[s].held.value for s in both) / len(both)
            half = INTERVAL * sqrt(sum(mine[s].se ** 2 for s in both)) / len(both)
            said.append(f"{mean:.3f} ± {half:.3f} with {name}")
        parts.append(f"{BY[key].name} {listed(said)} (over {plural(len(both), 'setting')})")
    return [Finding("Draws compared, means:", "; ".join(parts) + ".")] if parts else []
