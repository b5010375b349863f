"""Records of texts arranged for reading: draws × settings, beside held-out text and an AR model.

A setting is a policy and the model it runs on; a mode is a way of drawing tokens. Held-out text has
records too: it makes no calls and is no setting, but the mark that the settings are measured by.
Nothing is computed anew here: an estimate is what a record holds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from maskwalk.bench import labels
from maskwalk.bench.labels import Family, Sampler
from maskwalk.report.study import Estimate, Record, check, check_any, estimate, split_modes

KIND, HELD_OUT, AUTOREGRESSIVE = "text", "held_out", "left_to_right"
NEEDED = ("sampler", "preset", "metrics")
INTERVAL = 1.96  # standard errors either side of a number: 95 %
BISECTIONS = ("bisection", "guided_bisection")


@dataclass(frozen=True)
class Metric:
    """What a column and a figure show; `better` is 1 (higher), -1 (lower), or 0 (as held-out)."""

    key: str
    name: str
    title: str
    meaning: str
    better: int
    drawn: bool = True
    digits: int = 3


REPLAY = "replay_bpb"
METRICS = (
    Metric(
        "mauve", "MAUVE", "MAUVE against held-out text",
        "how much the texts, as a crowd, overlap with held-out ones, 0 to 1; compare equal n", 1,
    ),
    Metric(
        REPLAY, "replay bits/byte", "Bits per byte of held-out text, by replay",
        "bits of held-out text under the policy; exact if its order is fixed, else at most", -1,
    ),
    Metric(
        "judge_bpb", "judge bits/byte", "Bits per byte under the judge",
        "how unlikely the texts are to another language model, the judge", 0,
    ),
    Metric(
        "judge_ppl", "judge perplexity", "Perplexity under the judge",
        "the same, a token of the judge: as unsure as between so many equal choices", 0, False, 1,
    ),
    Metric(
        "own_bpb", "own bits/byte", "Bits per byte under our own AR model",
        "how unlikely the texts are to the AR model trained on the same books", 0,
    ),
    Metric(
        "own_ppl", "own perplexity", "Perplexity under our own AR model",
        "the same, a token: as unsure as between so many equal choices", 0, False, 1,
    ),
    Metric(
        "entropy", "token entropy", "Token entropy of a text, nats",
        "how many different tokens a text has and how evenly, in nats", 0,
    ),
    Metric(
        "rep1", "repeated tokens", "Share of repeated tokens",
        "tokens of a text that have occurred in it before", 0,
    ),
    Metric(
        "rep2", "repeated pairs", "Share of repeated pairs of tokens",
        "the same of pairs of neighbouring tokens", 0,
    ),
    Metric(
        "rep3", "repeated triples", "Share of repeated triples of tokens",
        "the same of three tokens in a row", 0,
    ),
)  # fmt: skip
CALLS = Metric("calls", "calls", "Network calls a text", "network calls a text", -1, False, 1)


@dataclass(frozen=True)
class TextStudy:
    """All the records of a report of texts, addressed by (mode, setting)."""

    title: str
    modes: list[str]
    samplers: list[Sampler]  # the settings, in the order of the legend
    families: list[Family]
    cells: dict[tuple[int, int], Record]
    held: dict[int, Record]  # held-out text, by mode
    causal: set[int]  # the settings that are an AR model
    superseded: int  # records replaced by a later one of the same setting

    @property
    def records(self) -> list[Record]:
        """Every record shown."""
        return [*self.held.values(), *self.cells.values()]

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that some record holds."""
        return [m for m in METRICS if any(estimate(r, m.key) for r in self.records)]

    def settings(self, mode: int) -> list[int]:
        """The settings that have a record in a mode."""
        return [s for s in range(len(self.samplers)) if (mode, s) in self.cells]

    def estimate(self, mode: int, setting: int | None, metric: str) -> Estimate | None:
        """One number; of held-out text where `setting` is None."""
        record = self.held.get(mode) if setting is None else self.cells.get((mode, setting))
        return None if record is None else estimate(record, metric)

    def label(self, setting: int | None) -> str:
        """The name of a setting, or of held-out text."""
        return "held-out text" if setting is None else self.samplers[setting].label


def is_text(record: Record) -> bool:
    """Whether it is a record of texts, not of walks."""
    return record.get("kind") == KIND


def half_width(held: Estimate) -> float | None:
    """Half of the 95 % interval; None where the record has no standard error."""
    return None if held.se is None else INTERVAL * held.se


def at_most(metric: Metric, held: Estimate) -> bool:
    """Whether the number is an upper bound; a record of a replay that does not say may be one."""
    return metric.key == REPLAY and bool(held.more.get("bound", True))


def arrange_texts(records: list[Record]) -> TextStudy:
    """The study of a list of text records; of those with one key the last counts.

    A judge writes a record again, with its own numbers in it.
    """
    check_any(records)
    check(records, NEEDED)
    records = list({r.get("key", i): r for i, r in enumerate(records)}.values())
    titles = list(dict.fromkeys(str(r.get("title") or "") for r in records))
    base = [_mode(r, len(titles) > 1) for r in records]
    places = [_place(r) for r in records]
    modes, mode_of = split_modes(records, base, places, ("length", "draw", "ties", "seed"))
    samplers, number, causal = _settings([p for p in places if p[1] != HELD_OUT])
    cells: dict[tuple[int, int], Record] = {}
    held: dict[int, Record] = {}
    for mode, place, record in zip(mode_of, places, records):
        if place[1] == HELD_OUT:
            held[mode] = record
        else:
            cells[mode, number[place]] = record
    families = labels.families([sampler.family for sampler in samplers])
    policies = {one.family for i, one in enumerate(samplers) if i not in causal}
    families = [f if f.name in policies else replace(f, label="AR") for f in families]
    title = ", ".join(title for title in titles if title)
    superseded = len(records) - len(cells) - len(held)
    return TextStudy(title, modes, samplers, families, cells, held, causal, superseded)


def _mode(record: Record, several: bool) -> tuple[str, ...]:
    """The draws in words, after the corpus if there are several."""
    drawn = str(record["preset"]).replace("_p=", "-p=").replace("=", " ")
    return (str(record.get("title") or "untitled"), drawn) if several else (drawn,)


def _place(record: Record) -> tuple[str, str]:
    """(model, policy); held-out text is one place, whatever its model is called."""
    policy = str(record["sampler"])
    if labels.read(policy).name == HELD_OUT:
        return ("", HELD_OUT)
    return (str(record.get("model") or ""), policy)


def _settings(
    places: Sequence[tuple[str, str]],
) -> tuple[list[Sampler], dict[tuple[str, str], int], set[int]]:
    """Settings with their labels, AR models first; where each place is; which are AR models.

    An AR model knows one order: it runs from left to right, and nothing else runs on it.
    """
    policies = labels.samplers([policy for _, policy in places])
    order = {sampler.spec: i for i, sampler in enumerate(policies)}
    runs = Counter(model for model, _ in set(places))
    ar = {(m, p) for m, p in places if labels.read(p).name == AUTOREGRESSIVE and runs[m] == 1}
    kept = sorted(dict.fromkeys(places), key=lambda place: (place not in ar, order[place[1]]))
    made = []
    for model, policy in kept:
        one = policies[order[policy]]
        one = replace(one, line=f"{model} {one.line}")
        made.append(replace(one, label="AR", short="AR") if (model, policy) in ar else one)
    told = labels.tell_apart([one.label for one in made], [{"model": model} for model, _ in kept])
    made = [
        replace(one, label=full, short=one.short + full.removeprefix(one.label))
        for one, full in zip(made, told)
    ]
    causal = {i for i, place in enumerate(kept) if place in ar}
    return made, {place: i for i, place in enumerate(kept)}, causal


def side_by_side(study: TextStudy, mode: int) -> tuple[int | None, int | None]:
    """The two settings whose texts are shown first: AR, and the best bisection in the middle.

    In the middle: at the median of the bisections' numbers of calls. The best: by MAUVE, and by
    replay where there is no MAUVE. None is held-out text.
    """
    held = [s for s in study.settings(mode) if study.cells[mode, s].get("texts")]
    left = next((s for s in held if s in study.causal), None)
    found = []
    for s in held:
        calls = study.estimate(mode, s, "calls")
        if calls and study.samplers[s].family in BISECTIONS:
            found.append((round(calls.value), _merit(study, mode, s), s))
    if found:
        levels = sorted({calls for calls, *_ in found})
        middle = levels[(len(levels) - 1) // 2]
        return left, max(one for one in found if one[0] == middle)[2]
    return left, next((s for s in held if s != left), None)


def _merit(study: TextStudy, mode: int, setting: int) -> tuple[float, float]:
    mauve, replay = (study.estimate(mode, setting, key) for key in ("mauve", "replay_bpb"))
    return (mauve.value if mauve else -1.0, -replay.value if replay else float("-inf"))
