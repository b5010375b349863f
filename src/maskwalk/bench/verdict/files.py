"""What `evaluate --out DIR` leaves: nothing that was in DIR is lost.

DIR/evaluation.json                 the last evaluation
DIR/evaluations/FILE.Class-SUITE.json   every policy's own; the next of the same policy replaces it
DIR/records.jsonl                   the records of all policies and baselines, only appended
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from maskwalk.bench.records import Record, RecordFile, as_written
from maskwalk.bench.verdict.result import Evaluation
from maskwalk.decoding.policy import Sampler
from maskwalk.resources import write_file
from maskwalk.specs.sources import code_of

FILE, FOLDER = "evaluation.json", "evaluations"
BESIDE = ("seconds", "cell", "commit")  # differ between two runs of the same thing


def write_evaluation(directory: Path, result: Evaluation, samplers: Iterable[Sampler]) -> None:
    """Appends the records that are new, and writes the evaluation under its own name, too."""
    data = (json.dumps(result.as_dict(), indent=1) + "\n").encode()
    records = _records(result)
    if records:
        _append(directory / "records.jsonl", records)
    own = directory / FOLDER / f"{_name(result, samplers)}.json"
    own.parent.mkdir(parents=True, exist_ok=True)
    write_file(own, data)
    write_file(directory / FILE, data)


def _append(path: Path, records: list[Record]) -> None:
    """Adds what is not there yet; a cell that gives something else now gets a newer record."""
    with RecordFile(path) as file:
        written = {record["key"]: _said(record) for record in as_written(path)}
        for number, record in enumerate(records):
            if written.get(record["key"]) != _said(record):
                file.append({**record, "cell": number})


def _records(result: Evaluation) -> list[Record]:
    """The policy's records and the baselines', scene by scene, as `maskwalk report` reads them."""
    records: list[Record] = []
    for scene, outcomes in result.baselines.items():
        own = [c.outcome for c in result.comparisons if c.scene == scene]
        for one in (*own, *outcomes):
            record = one.record.copy()
            record["experiment"], record["title"] = "evaluate", scene.structure
            record["commit"] = None
            records.append(record)
    return records


def _said(record: Record) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in BESIDE}


def _name(result: Evaluation, samplers: Iterable[Sampler]) -> str:
    """my_file.MyPolicy-quick: policies of one name in two files are two."""
    own = [type(one) for one in samplers if code_of(type(one))]
    file = getattr(sys.modules.get(own[0].__module__), "__file__", None) if own else None
    words = f"{Path(file).stem}.{result.name}" if file else result.name
    return re.sub(r"[^\w.-]+", "_", f"{words}-{result.suite}").lstrip(".")
