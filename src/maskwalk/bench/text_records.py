"""The records of a language run, as every reader of one wants them."""

from pathlib import Path

from maskwalk.bench.records import Record, read_records


def text_records(path: str | Path) -> list[Record]:
    """The records of texts in a run, the last of every key."""
    texts = [record for record in read_records(Path(path)) if record.get("kind") == "text"]
    return list({record["key"]: record for record in texts}.values())
