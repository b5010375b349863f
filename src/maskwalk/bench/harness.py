"""A model of lm-evaluation-harness: any denoiser with any sampler, on the harness's own tasks.

    python -m maskwalk.bench.harness --model maskwalk \\
        --model_args denoiser=hf:PATH 'sampler=bisection(order=4)' --tasks arc_easy

takes the words of `lm_eval` itself. The harness (0.4.13) has no entry points for models: a class is
known once its module was imported, which this module does before it hands over. In Python
`import maskwalk.bench.harness` is enough for `lm_eval.simple_evaluate(model="maskwalk", …)`.

    generate_until          the sampler writes `max_gen_toks` tokens after a prompt, cut at `until`
    loglikelihood           of a continuation: forced through the sampler (analysis/replay.py), of a
                            stochastic one along one path; `is_greedy` is whether the same sampler
                            with argmax draws writes it
    loglikelihood_rolling   of a whole text, in windows of the model's length

Requests are tokenized apart, context and continuation, as for any model here. Those of one length
go through the network together, `rows` at a time; which ones does not matter to a score.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from lm_eval import models as _models  # noqa: F401  # the harness's own come first
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from tqdm import tqdm

from maskwalk.analysis.paths import batch_for
from maskwalk.analysis.replay import check_replayable, replay
from maskwalk.bench.scoring import written_by
from maskwalk.decoding.answers import turn_ends
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import DRAWS, preset_sampler, read_draw
from maskwalk.decoding.generation import generate
from maskwalk.decoding.presets import around
from maskwalk.decoding.reader import answering
from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.source import OPTIONS, read_options, read_pairs, text_model
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.worlds.text.questions import cut_at

AT_ONCE = 8  # batches of `rows` prompts between two steps of the progress bar
NEW = 256  # tokens written where neither task nor user says
OWN = ("denoiser", "sampler", "preset", "draw", "seed", "device", "new")


@register_model("maskwalk")
class MaskwalkLM(LM):  # type: ignore[misc]  # the harness has no types
    """A denoiser and a sampler as a model of the harness."""

    def __init__(
        self,
        denoiser: str,
        sampler: str | None = None,
        preset: str = "exact",
        draw: str | None = None,
        seed: int = 0,
        device: str | None = None,
        new: int = NEW,
        **options: Any,
    ) -> None:
        super().__init__()
        for key in ("batch_size", "max_batch_size"):  # the harness's own; rows says it here
            options.pop(key, None)
        for key in options:
            if key not in OPTIONS:
                raise unknown("argument of --model_args:", key, (*OWN, *OPTIONS))
        told = read_options(f"{key}={value}" for key, value in options.items())
        self.model = text_model(denoiser, device=_device(device), options=told)
        spec, self.ties = read_draw(preset, draw)
        self.draw = DRAWS.build(spec)
        plain = "left_to_right" if self.model.causal else "confidence(block=1)"
        self.rule = SAMPLERS.build(sampler or preset_sampler(preset, plain))
        self.around = around(preset)
        reading = (self.around["score_grid"], self.around["special"])
        self.denoiser = answering(self.model.denoiser, *reading)
        self.seed, self.new, self.name = int(seed), int(new), denoiser
        self.chats = False  # whether contexts are chats

    @classmethod
    def create_from_arg_string(
        cls, arg_string: str, additional_config: dict[str, Any] | None = None
    ) -> "MaskwalkLM":
        """`key=value` pairs apart by commas or semicolons; commas in brackets belong to a spec."""
        more: dict[str, Any] = {k: v for k, v in (additional_config or {}).items() if v is not None}
        return cls(**more | read_pairs(arg_string))

    @property
    def tokenizer_name(self) -> str:
        """What chat templates are kept apart by."""
        return str(getattr(self.model.tokenizer, "name_or_path", self.name)).replace("/", "__")

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """A conversation as the tokenizer's template writes it."""
        self.chats = True
        return str(
            self.model.tokenizer.apply_chat_template(
                chat_history, tokenize=False, add_generation_prompt=add_generation_prompt
            )
        )

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Texts after contexts, cut at the first of `until`; as many go together as `rows` says."""
        asked = [request.args for request in requests]
        sizes = [int(settings.get("max_gen_toks") or self.new) for _, settings in asked]
        texts = [""] * len(asked)
        together = int(getattr(self.model.denoiser, "rows", 1)) * AT_ONCE
        with tqdm(total=len(asked), desc="generate_until", disable=disable_tqdm) as bar:
            for new in dict.fromkeys(sizes):
                same = [number for number, size in enumerate(sizes) if size == new]
                for first in range(0, len(same), together):
                    numbers = same[first : first + together]
                    contexts = [self._fitting(asked[number][0], new) for number in numbers]
                    for number, text in zip(numbers, self._texts(numbers, contexts, new)):
                        texts[number] = cut_at(text, _list(asked[number][1].get("until")))
                    bar.update(len(numbers))
        return texts

    def _texts(self, numbers: list[int], contexts: list[str], new: int) -> list[str]:
        made = generate(
            self._ending(contexts),
            self.rule,
            prompt=contexts,
            numbers=numbers,
            new_tokens=new,
            seed=self.seed,
            draw=self.draw,
            ties=self.ties,
            **self.around,
        )
        return [written.text for written in written_by(self.model, made)]

    def _ending(self, contexts: list[str]) -> LanguageModel:
        """The model; in a chat the end of a turn ends its texts, too."""
        if not self.chats:
            return self.model
        tokens = [token for text in contexts for token in self.model.encode(text)]
        more = turn_ends(self.model, torch.tensor(tokens))
        return replace(self.model, more_ends=(*self.model.more_ends, *more))

    def _fitting(self, context: str, new: int) -> str:
        """The context without its beginning, where it does not fit beside what is written."""
        limit, tokens = self.model.longest, self.model.encode(context)
        if limit is None:
            return context
        room = limit - new - len(self.model.begin) - len(self.model.end)
        if room < 1:
            raise MaskwalkError(
                f"{self.name} reads {limit} tokens: {new} new ones leave no room for a prompt; "
                "lower max_gen_toks (--gen_kwargs max_gen_toks=…)."
            )
        if len(tokens) <= room:
            return context
        return str(self.model.tokenizer.decode(tokens[-room:], skip_special_tokens=False))

    def loglikelihood(
        self, requests: list[Any], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """(log p, whether argmax draws write it) of continuations after contexts."""
        asks = [
            self._ask(number, *(self.model.encode(text) for text in request.args))
            for number, request in enumerate(requests)
        ]
        return self._scored(asks, "loglikelihood", disable_tqdm)

    def _ask(self, number: int, before: Sequence[int], after: Sequence[int]) -> "Ask":
        """A question; a beginning that its context has, as that of a chat may, is given once."""
        own, begin = self.model.denoiser, self.model.begin
        bare = False
        if isinstance(own, Causal):
            begin = () if own.begin is None else (own.begin,)
            bare = bool(before) and not own.adds and before[0] != own.begin
        if begin and tuple(before[: len(begin)]) == begin:
            before = before[len(begin) :]
        return Ask(number, tuple(before), tuple(after), bare=bare)

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """log p of whole texts, window by window."""
        around = len(self.model.begin) + len(self.model.end)
        asks = []
        for number, request in enumerate(requests):
            tokens = tuple(self.model.encode(request.args[0]))
            width = max(1, (self.model.longest or len(tokens) + around) - around)
            asks += [
                Ask(number, (), tokens[at : at + width], at // width, False)
                for at in range(0, len(tokens), width)
            ]
        sums = [0.0] * len(requests)
        scores = self._scored(asks, "loglikelihood_rolling", disable_tqdm)
        for ask, (log_prob, _) in zip(asks, scores):
            sums[ask.number] += log_prob
        return sums

    def _scored(
        self, asks: Sequence["Ask"], name: str = "", quiet: bool = True
    ) -> list[tuple[float, bool]]:
        """log p of tokens after others along the sampler's path, and whether argmax draws write
        them; rows of one length go together."""
        check_replayable(self.rule, self.draw)
        found = [(0.0, True)] * len(asks)
        groups: dict[tuple[int, int, bool], list[int]] = {}
        for at, ask in enumerate(asks):
            if ask.after:  # windows of one text share its number, so they go apart
                groups.setdefault((self._size(ask), ask.window, ask.bare), []).append(at)
        with tqdm(total=len(asks), desc=name, disable=quiet) as bar:
            bar.update(sum(not ask.after for ask in asks))
            for (size, *_), group in groups.items():
                rows = int(getattr(self.model.denoiser, "rows", 1))
                most = batch_for(self.model, size, AT_ONCE * rows)
                for first in range(0, len(group), most):
                    part = group[first : first + most]
                    for at, score in zip(part, self._forced([asks[at] for at in part])):
                        found[at] = score
                    bar.update(len(part))
        return found

    def _size(self, ask: "Ask") -> int:
        """The tokens of its row, context cut in front where it does not fit."""
        whole = len(self.model.begin) + len(ask.before) + len(ask.after) + len(self.model.end)
        least = whole - len(ask.before)
        return whole if self.model.longest is None else max(least, min(whole, self.model.longest))

    def _forced(self, asks: list["Ask"]) -> list[tuple[float, bool]]:
        """The scores of rows of one length."""
        begin, end, size = self.model.begin, self.model.end, self._size(asks[0])
        rows, given = [], torch.ones(len(asks), size, dtype=torch.bool)
        for line, ask in enumerate(asks):
            room = size - len(begin) - len(end) - len(ask.after)
            before = ask.before[len(ask.before) - room :]
            rows.append([*begin, *before, *ask.after, *end])
            first = len(begin) + room
            given[line, first : first + len(ask.after)] = False
        row, given = torch.tensor(rows, device=self.model.device), given.to(self.model.device)
        numbers = torch.tensor([ask.number for ask in asks], device=row.device)
        streams = Streams(self.seed, numbers)
        told: dict[str, Any] = {"streams": streams, "ties": self.ties}
        denoiser: Any = self.denoiser
        denoiser = denoiser.plain() if asks[0].bare else denoiser
        found = replay(self.rule, denoiser, row, draw=self.draw, given=given, **told)
        log_probs = [float(value) for value in found.log_prob.sum(1)]
        if not any(ask.greedy for ask in asks):
            return [(value, False) for value in log_probs]
        blank = torch.where(given, row, self.model.mask)
        best = DRAWS.build("draw(temperature=0)")
        written = decode(self.rule, denoiser, blank, draw=best, **told)
        return list(zip(log_probs, (written.tokens == row).all(1).tolist()))


@dataclass(frozen=True)
class Ask:
    """Tokens whose log-likelihood after others is asked for."""

    number: int  # of the request: what its randomness goes by
    before: tuple[int, ...]
    after: tuple[int, ...]
    window: int = 0  # of the request's text
    greedy: bool = True  # whether to look if argmax draws write it
    bare: bool = False  # whether a causal model reads nothing before it


def _list(until: str | list[str] | None) -> list[str]:
    return [until] if isinstance(until, str) else list(until or [])


def _device(name: str | None) -> str:
    """The harness says cuda:0 where it could, and None where nobody did."""
    return "cpu" if name is None or not torch.cuda.is_available() else name


def main() -> None:
    """`lm_eval`, with this model in its table."""
    from lm_eval.__main__ import cli_evaluate

    sys.argv[0] = "lm_eval"
    cli_evaluate()


if __name__ == "__main__":
    main()
