"""The job of `maskwalk text score`: questions answered with one sampler, and how many are right.

Its record is one of any run: `maskwalk report DIR` draws accuracy against calls.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from maskwalk import __version__, resources
from maskwalk.bench.plan import Job
from maskwalk.bench.records import SCHEMA
from maskwalk.bench.subject import short
from maskwalk.decoding.draw import DRAWS, decoding_of, mode_name
from maskwalk.decoding.generation import Generated, generate
from maskwalk.decoding.guard import believed_kind
from maskwalk.decoding.kinds import result_kind
from maskwalk.decoding.policy import Sampler
from maskwalk.decoding.presets import around_line
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
from maskwalk.worlds.text.questions import Marking, Question, read_questions
from maskwalk.worlds.world import WORLDS

SHOWN = 5  # answers a record carries
READING = "score"
SEEDS = 2  # how questions are drawn apart: by the numbers of their texts


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
    score_grid: float | None = None  # these three as `generate` takes them
    stop: bool | None = None
    special: bool = False
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
        ours = not is_text_model(self.model)
        known = own_weights(self.model) if ours else text_weights(self.model, self.options)
        content = hashlib.sha256(read_file(Path(self.questions))).hexdigest()
        return {short(k): v for k, v in known.items()} | {Path(self.questions).name: content}

    @property
    def about(self) -> dict[str, Any]:
        """What a key is made of: everything but names of folders."""
        told = {k: v for k, v in vars(self).items() if k not in ("model", "questions")}
        return told | {"options": dict(self.options), "sources": sorted(self.sources.values())}

    @property
    def around(self) -> dict[str, Any]:
        """What is said around the draw."""
        return {"score_grid": self.score_grid, "stop": self.stop, "special": self.special}

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


@dataclass(frozen=True)
class Written:
    """What a model wrote for one question, and what that cost."""

    text: str
    calls: int
    masked: int  # tokens to fill
    length: int


Answers = dict[int, Written]  # by the questions' numbers


def written_by(model: LanguageModel, made: Generated) -> list[Written]:
    """Of every text what was drawn, up to its end."""
    found = []
    for row, given, new, calls in zip(made.tokens, made.given, made.new, made.calls):
        tokens = row[~given][: int(new)]  # what is drawn after the text's end is not counted
        filled = int(((row == model.mask) & given).sum())  # where others are longer
        length = len(row) - filled
        text = model.decode(tokens.tolist())
        found.append(Written(text, int(calls), int((~given).sum()), length))
    return found


def answered(model: LanguageModel, exam: Exam, rule: Sampler, asked: Sequence[Question]) -> Answers:
    """The answers to questions: prompts go together, as many as the model reads at once; gaps one
    by one. A question's answer depends on its number, not on the others."""
    if exam.chat and any(question.template for question in asked):
        raise MaskwalkError("A template with gaps is no chat: leave --chat out.")
    sums = exam.new is None and isinstance(model.tokenizer, Digits)
    how: dict[str, Any] = {"seed": exam.seed, "ties": exam.ties, "draw": exam.draw, **exam.around}
    found: Answers = {}
    prompts = [number for number, question in enumerate(asked) if not question.template]
    if prompts:
        made = generate(
            model,
            rule,
            prompt=[asked[number].text for number in prompts],
            numbers=prompts,
            chat=exam.chat,
            length=model.longest if sums else None,  # a sum takes all that fits
            new_tokens=exam.new,
            **how,
        )
        found |= dict(zip(prompts, written_by(model, made)))
    for number, question in enumerate(asked):
        if question.template:
            made = generate(model, rule, template=question.text, numbers=[number], **how)
            found[number] = written_by(model, made)[0]
    return found


def exam_jobs(exam: Exam, samplers: list[str]) -> list[Job]:
    """A job for every sampler."""
    commit = resources.commit()
    jobs = []
    for cell, spec in enumerate(samplers):
        files = sources(spec, exam.draw)
        about = ["score", SEEDS, exam.about, spec, sorted(files.values())]
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
    began = time.perf_counter()
    found = answered(model, e, rule, questions)
    seconds = time.perf_counter() - began
    written = [found[number] for number in range(len(questions))]
    right = [e.marking.right(w.text, q.answers) for w, q in zip(written, questions)]
    widest = max(1, *(-(-w.masked // max(1, w.calls)) for w in written))
    length = max(w.length for w in written)
    sample = Sample(
        world=None,
        tokens=torch.zeros((len(right), 1), dtype=torch.int64),
        calls=torch.tensor([w.calls for w in written]),
        prompts=torch.arange(len(right)),
        masked=torch.tensor([w.masked for w in written]),
        seed=e.seed,
        readings={READING: torch.tensor(right)},
    )
    keys = (*METRICS.reading(READING), METRICS.cost.key)
    world = WORLDS.canonical(str(Spec("text", (), {"source": None, "length": length})))
    shown = [
        {"question": q.text, "wanted": q.answers[0], "written": w.text, "right": ok}
        for q, w, ok in zip(questions, written, right)
    ]
    return {
        "schema": SCHEMA,
        "version": __version__,
        "world": world,
        "task": "unconditional()",
        "sampler": sampler,
        "denoiser": short(e.model),
        "mode": mode_name(e.draw, e.ties),
        "kind": result_kind(believed_kind(rule), DRAWS.build(e.draw).exact, widest <= 1),
        "draw": e.draw,
        "ties": e.ties,
        "decoding": decoding_of(sampler, e.draw, e.ties) + around_line(**e.around),
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
