"""One cell for a person at a terminal: the numbers, a few walks, and one order of unmasking."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from maskwalk.bench.records import Record


def walk_summary(record: Record, walks: list[list[int]], valid: list[list[bool]]) -> RenderableType:
    """Settings, estimates with errors, walks with impossible steps marked, and one trace."""
    parts: list[RenderableType] = [_settings(record), Text(), _numbers(record), Text()]
    parts.append(Text("Walks (an impossible step is marked ✗):"))
    parts += [_walk(*pair) for pair in zip(walks, valid)]
    if record["trace"] is not None:
        parts += [Text(), *_order(record["trace"])]
    parts += [Text(f"\nNote: {note}.", style="dim") for note in record["notes"]]
    return Group(*parts)


def _settings(record: Record) -> Table:
    table = Table.grid(padding=(0, 2))
    for name in ("graph", "walk", "task", "denoiser", "sampler", "preset"):
        table.add_row(Text(name, style="dim"), Text(str(record[name])))
    return table


def _numbers(record: Record) -> Table:
    metrics, table = record["metrics"], Table.grid(padding=(0, 2))
    found = metrics["coherence"]
    table.add_row("coherence", _value(found), f"of {found['n']} walks are possible")
    table.add_row("valid steps", _value(metrics["transition_validity"]), "")
    tv = metrics["tv1"]
    if tv:
        about = f"exact walks of this number get {tv['floor']:.3f}"
        table.add_row("transition TV", _value(tv), about)
    calls = metrics["calls"]
    table.add_row("calls", f"{calls['value']:.2f}", f"a sequence, at most {calls['max']}")
    table.add_row("seconds", f"{record['seconds']:.2f}", "to decode them all")
    return table


def _value(found: dict[str, float]) -> str:
    error = "" if found["se"] is None else f" ± {found['se']:.3f}"
    return f"{found['value']:.3f}{error}"


def _walk(tokens: list[int], valid: list[bool]) -> Text:
    line = Text("  ")
    for i, (token, fine) in enumerate(zip(tokens, valid)):
        if i:
            line.append(" " if fine else "✗", style="" if fine else "bold red")
        line.append(str(token), style="" if fine else "red")
    return line


def _order(trace: Record) -> list[Text]:
    rounds = trace["rounds"]
    lines = [
        Text("Order of unmasking of the first walk (█ now, ░ before; positions at the right):")
    ]
    for number in range(-1, max(rounds) + 1):
        here = [i for i, r in enumerate(rounds) if r == number]
        if not here:
            continue
        marks = "".join("█" if r == number else ("░" if r < number else " ") for r in rounds)
        name = "given" if number < 0 else f"round {number + 1}"
        lines.append(Text(f"  {name:<9}|{marks}|  {', '.join(map(str, here))}"))
    return lines
