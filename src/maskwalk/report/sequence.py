"""One setting for a person at a terminal: its numbers, a few sequences, the unmasking of one."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from maskwalk.bench import labels
from maskwalk.bench.kinds import kind_of
from maskwalk.bench.records import Record, TraceRecord
from maskwalk.decoding.draw import decoding_in
from maskwalk.decoding.kinds import MARK, SHAPED
from maskwalk.report.estimates import INTERVAL, Estimate, estimate, floor_of, number, with_interval
from maskwalk.report.frames import Frame, frames
from maskwalk.report.pictures import in_rows
from maskwalk.report.words import SHAPED_MEANS, sample_notes
from maskwalk.specs import Spec
from maskwalk.worlds.metrics import METRICS, Metric

INDENT = (0, 0, 0, 2)
SETTINGS = ("world", "task", "denoiser", "sampler", "mode")


def sample_summary(record: Record, shown: Sequence[str]) -> RenderableType:
    """Settings, every metric with its interval, the sequences as the world shows them, a trace."""
    parts: list[RenderableType] = [_settings(record), Text(), _numbers(record), Text()]
    parts += [Text(f"{MARK} {SHAPED_MEANS}\n")] if kind_of(record) == SHAPED else []
    trace = record.get("trace")
    pictures = frames(trace) if trace else []
    if shown:
        parts += [Text("Sequences:"), *_sequences(shown, bool(pictures))]
    if pictures:
        parts += [Text("\nUnmasking of the first sequence (· is masked):"), in_rows(pictures)]
    elif trace is not None:
        parts += [Text(), *_order(trace)]
    parts += [Text(f"\nNote: {note}", style="dim") for note in sample_notes(record)]
    return Group(*parts)


def _sequences(shown: Sequence[str], pictured: bool) -> list[RenderableType]:
    if pictured and any("\n" in text for text in shown):
        return [in_rows([Frame("", [text]) for text in shown])]
    return [Padding(Text(text or "(empty)"), INDENT) for text in shown]


def _settings(record: Record) -> Table:
    table = Table.grid(padding=(0, 2))
    for name in SETTINGS:
        for title, value in _setting(name, str(record.get(name) or "")):
            table.add_row(Text(title, style="dim"), Text(value))
    kind = kind_of(record)
    table.add_row(Text("kind", style="dim"), Text(kind + MARK * (kind == SHAPED)))
    if line := decoding_in(record):
        table.add_row(Text("as options", style="dim"), Text(line))
    return table


def _setting(name: str, value: str) -> list[tuple[str, str]]:
    """A setting in a line; a world made of other specs, such as a walk's, part by part."""
    spec = labels.read(value)
    if name != "world" or not any(isinstance(part, Spec) for part in spec.kwargs.values()):
        return [(name, value)] if value else []
    parts = [(labels.spoken(key), str(part)) for key, part in spec.kwargs.items()]
    return [(name, spec.name), *((f"  {key}", part) for key, part in parts)]


def _numbers(record: Record) -> Table:
    table = Table.grid(padding=(0, 2))
    described = record.get("described")
    for key in record["metrics"]:
        metric = METRICS.describe(key, described)
        result = estimate(record, metric)
        if result:
            value = with_interval(metric, result)
            table.add_row(Text(metric.title), value, Text(_about(metric, result)))
    seconds = record.get("seconds")
    if seconds is not None:
        table.add_row("seconds", f"{seconds:.2f}", "to decode them all")
    table.add_row("", "", Text(INTERVAL, style="dim"))
    return table


def _about(metric: Metric, result: Estimate) -> str:
    """What the number means, of how many, and what exact sequences get."""
    words = [metric.meaning] if metric.meaning else []
    most, floor = result.more.get("max"), floor_of(result)
    words += [] if most is None else [f"at most {number(metric, most)}"]
    words += [] if result.n is None else [f"n = {result.n:,}"]
    text = "; ".join(words)
    if floor is None:
        return text
    return f"{text}\nexact sequences of this number get {number(metric, floor.value)}"


def _order(trace: TraceRecord) -> list[Text]:
    rounds = trace["rounds"]
    lines = [Text("Order of unmasking of the first sequence (█ now, ░ before; positions):")]
    for turn in range(-1, max(rounds) + 1):
        here = [i for i, r in enumerate(rounds) if r == turn]
        if not here:
            continue
        marks = "".join("█" if r == turn else ("░" if r < turn else " ") for r in rounds)
        name = "given" if turn < 0 else f"round {turn + 1}"
        lines.append(Text(f"  {name:<9}|{marks}|  {', '.join(map(str, here))}"))
    return lines
