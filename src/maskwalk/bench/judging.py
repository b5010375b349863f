"""Lets a judge read the texts of a run: bits per byte, perplexity, and MAUVE against held-out text.

Everything it needs lies in the run's directory (`run`), so texts made on one machine can be judged
on another. What the judge made of a text is kept in DIR/features, so an interrupted reading goes on
where it stopped, and one machine can read (`Judging.read`) and another compute MAUVE; a judged
record is appended, and the last record of a key counts.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskwalk.analysis.judge import Judge
from maskwalk.bench.records import Record, RecordFile, latest, load_records
from maskwalk.bench.text_experiment import REFERENCES, SAMPLES
from maskwalk.errors import MaskwalkError
from maskwalk.resources import read_file, write_file
from maskwalk.worlds.metrics import METRICS, Sample, measure
from maskwalk.worlds.text.metrics import Reading
from maskwalk.worlds.text.passages import TOKENIZER, read_tokenizer_bytes, read_tokens

CHUNK = 64  # texts read between two savings
ACCELERATOR_CHUNK = 1024  # the same on an accelerator
NAMES = ("nats", "tokens", "bytes", "features")  # of a judge's reading


def texts_of(run: Path) -> Path:
    """Where a run keeps its texts for a judge, or a sentence."""
    if not (run / SAMPLES / REFERENCES).exists():
        raise MaskwalkError(
            f"{run} has no texts to judge; `maskwalk reproduce paper --only figure_language` keeps "
            "them there."
        )
    return run / SAMPLES


@dataclass
class Judging:
    """A run's texts before a judge; iterate over it to do the work."""

    out: Path
    judge: Judge
    told: Callable[[int], object] = lambda _: None  # hears how many more texts were read
    _readings: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def todo(self) -> list[Record]:
        """Records whose texts are there and not yet read by this judge."""
        texts_of(self.out)
        return [
            record
            for record in latest(load_records(self.out))
            if self._file(record["key"]).exists() and not self._has_judged(record)
        ]

    def _has_judged(self, record: Record) -> bool:
        """Whether the record's numbers are of this judge; without a hash its name decides."""
        same = record.get("judge") == self.judge.name
        return same and record.get("judge_weights") in (None, self.judge.weights or None)

    @property
    def total(self) -> int:
        """How many different texts there are, those read before included."""
        names = ["references", *(record["key"] for record in self.todo)] if self.todo else []
        return sum({digest(tokens): len(tokens) for tokens in map(self._tokens, names)}.values())

    def __iter__(self) -> Iterator[Record]:
        if not self.todo:
            return
        references = self._reading("references")
        with RecordFile(self.out / "records.jsonl") as file:
            for record, reading in self.read():
                sample = Sample(
                    world=None,
                    tokens=torch.empty((len(reading.nats), 0), dtype=torch.int64),
                    calls=None,
                    prompts=torch.arange(len(reading.nats)),
                    masked=torch.zeros(len(reading.nats), dtype=torch.int64),
                    readings={"judge": reading, "references": references},
                )
                judged = record.copy()
                judged["judge"] = self.judge.name
                judged.pop("judge_weights", None)
                if self.judge.weights:
                    judged["judge_weights"] = self.judge.weights
                numbers = measure(sample, METRICS.reading("judge"))
                judged["metrics"] = record["metrics"] | numbers
                file.append(judged)
                yield judged

    def read(self) -> Iterator[tuple[Record, Reading]]:
        """Only reads, references first: each record with what the judge makes of its texts."""
        if self.todo:
            self._reading("references")
        for record in self.todo:
            yield record, self._reading(record["key"])

    def _file(self, name: str) -> Path:
        return self.out / SAMPLES / f"{name}.npy"

    def _tokens(self, name: str) -> np.ndarray:
        return read_tokens(read_file(self._file(name)), self._file(name), 2)

    @cached_property
    def _tokenizer(self) -> Any:
        file = self.out / SAMPLES / TOKENIZER
        return read_tokenizer_bytes(read_file(file), file)

    def _reading(self, name: str) -> Reading:
        """What the judge makes of texts; held-out text, the same for every draw, is read once."""
        tokens = self._tokens(name)
        known = digest(tokens)
        if known not in self._readings:
            self._readings[known] = self._read(tokens, self.out / "features" / f"{known}.npz")
        arrays = self._readings[known]
        nats, counts, sizes = (torch.from_numpy(arrays[key]) for key in NAMES[:3])
        return Reading(nats, counts, sizes, arrays["features"].astype(np.float32))

    def _read(self, tokens: np.ndarray, path: Path) -> dict[str, np.ndarray]:
        """Reads on from what is kept, and keeps what was read every few texts."""
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = self._kept(path)
        done = len(arrays["nats"]) if arrays else 0
        self.told(done)
        chunk = ACCELERATOR_CHUNK if self.judge.accelerated else CHUNK
        for first in range(done, len(tokens), chunk):
            rows = tokens[first : first + chunk].tolist()
            texts = [self._tokenizer.decode(row, skip_special_tokens=True) for row in rows]
            texts = [text or "\n" for text in texts]  # nothing but ends of books: an empty line
            read = self.judge.read(texts, self.told)
            more = {name: np.asarray(getattr(read, name)) for name in NAMES}
            # Enough for clusters; what a judge may have beyond it is put on its edge.
            most = np.finfo(np.float16).max
            more["features"] = more["features"].clip(-most, most).astype(np.float16)
            before = arrays or {name: more[name][:0] for name in NAMES}
            arrays = {name: np.concatenate([before[name], more[name]]) for name in NAMES}
            about = {"judge": self.judge.name, "weights": self.judge.weights}
            saved: dict[str, Any] = {**{k: np.array(v) for k, v in about.items()}, **arrays}
            file = io.BytesIO()
            np.savez(file, **saved)
            write_file(path, file.getvalue())
        return arrays

    def _kept(self, path: Path) -> dict[str, np.ndarray]:
        if not path.exists():
            return {}
        try:
            with np.load(path, allow_pickle=False) as file:
                weights = str(file["weights"]) if "weights" in file else self.judge.weights
                if (str(file["judge"]), weights) != (self.judge.name, self.judge.weights):
                    return {}
                arrays = {name: file[name] for name in NAMES}
            if len({len(array) for array in arrays.values()}) > 1 or arrays["features"].ndim != 2:
                raise ValueError("its arrays differ in length")
        except Exception as problem:  # a damaged archive raises what zip, zlib and NumPy like
            raise MaskwalkError(
                f"{path} is not what a judge kept ({str(problem)[:80]}); delete it, and the texts "
                "are read again."
            ) from None
        return arrays


def digest(tokens: np.ndarray) -> str:
    """A name for texts by what they are."""
    return hashlib.sha256(tokens.tobytes()).hexdigest()
