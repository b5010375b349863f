"""The job of `maskwalk text score`: questions answered with one sampler, and how many are right.

Its record is one of any run: `maskwalk report DIR` draws accuracy against calls.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from maskwalk import __version__, resources
from maskwalk.bench.plan import Job
from maskwalk.bench.records import SCHEMA
from maskwalk.bench.subject import short
from maskwalk.decoding.draw import DRAWS, mode_name
from maskwalk.decoding.generation import Generated, generate
from maskwalk.decoding.kinds import result_kind
from maskwalk.denoisers.digits import Digits, digit_model, of_sums
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.source import is_text_model, text_model, text_weights
from maskwalk.denoisers.resolve import own_weights
from maskwalk.errors import MaskwalkError
from maskwalk.resources import read_file
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec
from maskwalk.specs.sources import sources
from maskwalk.worlds.metrics import METRICS, Sample, measure
from maskwalk.worlds.text.prompts import canvas
from maskwalk.worlds.text.questions import Marking, Question, read_questions
from maskwalk.worlds.world import WORLDS

SHOWN = 5  # answers a record carries
READING = "score"
APART = 1_000_003  # between the seeds of questions


@dataclass(frozen=True)
class Exam:
    """A model, a file of questions, and how they are asked and marked."""

    model: str
    questions: str
    count: int
    options: Mapping[str, Any] = field(default_factory=dict)
    world: str | None = None  # of a denoiser of sums that brings none
    new: int | None = None  # tokens to write; None: what fits, or 32
    chat: bool = False
    draw: str = "draw()"
    ties: str = "uniform"
    seed: int = 0
    compare: str = "text"
    pattern: str | None = None
    until: tuple[str, ...] = ()

    @property
    def marking(self) -> Marking:
        """How answers are read."""
        return Marking(self.compare, self.pattern, tuple(self.until))

    @property
    def sources(self) -> dict[str, str]:
        """What its numbers depend on beside the package."""
        known = text_weights(self.model) if is_text_model(self.model) else own_weights(self.model)
        content = hashlib.sha256(read_file(Path(self.questions))).hexdigest()
        return {short(k): v for k, v in known.items()} | {Path(self.questions).name: content}

    @property
    def about(self) -> dict[str, Any]:
        """What a key is made of: everything but names of folders."""
        told = {k: v for k, v in vars(self).items() if k not in ("model", "questions")}
        return told | {"options": dict(self.options), "sources": sorted(self.sources.values())}

    def load(self, device: str) -> LanguageModel:
        """The model; a denoiser of sums speaks in digits."""
        told = tuple(sorted(self.options.items()))
        return _model(self.model, self.world, told, device, tuple(sorted(self.sources.items())))

    def asked(self) -> list[Question]:
        """The first `count` questions."""
        return read_questions(Path(self.questions))[: self.count]


@lru_cache(maxsize=1)
def _model(
    name: str, world: str | None, options: tuple[Any, ...], device: str, version: tuple[Any, ...]
) -> LanguageModel:
    if not is_text_model(name) and of_sums(name, world):
        if options:
            raise MaskwalkError(f"{name} is a denoiser of sums: it takes no --model-option.")
        return digit_model(name, world, device)
    return text_model(name, device=device, options=dict(options))


def length_for(
    model: LanguageModel, text: Mapping[str, Any], new: int | None, template: bool = False
) -> int | None:
    """Tokens of the canvas: what is given and `new` more; all that fits where sums are asked."""
    if template:
        return None
    if new is None:
        return model.longest if isinstance(model.tokenizer, Digits) else None
    given = int((canvas(model, **text) != model.mask).sum())
    return given + new


def written_by(model: LanguageModel, made: Generated) -> str:
    """What was drawn of the first text, up to its end."""
    row, drawn = made.tokens[0], ~made.given[0]
    tokens = row[drawn][: int(made.new[0])]  # what is drawn after the text's end is not counted
    return model.decode(tokens.tolist())


def exam_jobs(exam: Exam, samplers: list[str]) -> list[Job]:
    """A job for every sampler."""
    commit = resources.commit()
    jobs = []
    for cell, spec in enumerate(samplers):
        files = sources(spec, exam.draw)
        about = ["score", exam.about, spec, sorted(files.values())]
        key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
        told = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(exam).items()}
        told["options"] = dict(exam.options)
        says = {"sampler": spec, "draw": exam.draw, "ties": exam.ties, "seed": exam.seed}
        place = {"experiment": "score", "title": Path(exam.questions).stem, "cell": cell}
        jobs.append(
            Job(
                key,
                "score",
                {"exam": told, "sampler": spec},
                place | {"commit": commit},
                says=says,
                sources=files | exam.sources,
            )
        )
    return jobs


def score_record(exam: dict[str, Any], sampler: str, device: str) -> dict[str, Any]:
    """The job: every question answered once."""
    e = Exam(**exam | {"until": tuple(exam["until"])})
    model, questions, rule = e.load(device), e.asked(), SAMPLERS.build(sampler)
    draw, began = DRAWS.build(e.draw), time.perf_counter()
    right, calls, masked, answers, widest, length = [], [], [], [], 1, 0
    for number, question in enumerate(questions):
        text: dict[str, Any] = {"template" if question.template else "prompt": question.text}
        text["chat"] = e.chat
        made = generate(
            model,
            rule,
            **text,
            length=length_for(model, text, e.new, question.template),
            seed=(e.seed + APART * number) % 2**63,
            draw=draw,
            ties=e.ties,
        )
        written = written_by(model, made)
        answers.append(written)
        right.append(e.marking.right(written, question.answers))
        calls.append(int(made.calls[0]))
        masked.append(int((~made.given[0]).sum()))
        widest = max(widest, -(-masked[-1] // max(1, calls[-1])))
        length = max(length, made.tokens.shape[1])
    seconds = time.perf_counter() - began
    sample = Sample(
        world=None,
        tokens=torch.zeros((len(right), 1), dtype=torch.int64),
        calls=torch.tensor(calls),
        prompts=torch.arange(len(right)),
        masked=torch.tensor(masked),
        seed=e.seed,
        readings={READING: torch.tensor(right)},
    )
    keys = (*METRICS.reading(READING), METRICS.cost.key)
    world = WORLDS.canonical(str(Spec("text", (), {"source": None, "length": length})))
    shown = [
        {"question": q.text, "wanted": q.answers[0], "written": w, "right": ok}
        for q, w, ok in zip(questions, answers, right)
    ]
    return {
        "schema": SCHEMA,
        "version": __version__,
        "world": world,
        "task": "unconditional()",
        "sampler": sampler,
        "denoiser": short(e.model),
        "mode": mode_name(e.draw, e.ties),
        "kind": result_kind(rule.law_kind, draw.exact, widest <= 1),
        "draw": e.draw,
        "ties": e.ties,
        "count": len(right),
        "per_prompt": 1,
        "seed": e.seed,
        "metrics": measure(sample, keys),
        "texts": [f"{s['question']}{s['written']}" for s in shown[:SHOWN]],
        "answers": shown,
        "seconds": round(max(seconds, 0.0), 3),
        "notes": [*getattr(model.denoiser, "notes", ())],
        "sources": e.sources,
    }
